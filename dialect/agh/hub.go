package agh

import (
	"context"

	"github.com/parley-hub/parley/dialect/agh/bridge"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/turns"
	"github.com/parley-hub/parley/journal"
)

// Hub has the methods of *hub.Hub that the dialect calls.
type Hub interface {
	bridge.Hub

	Home(ctx context.Context, kind, name string) (hub.Home, error)
	Homes(ctx context.Context, kind string, page hub.HomePage) (list []hub.Home, next string, err error)
	Entries(ctx context.Context, q hub.EntryQuery) (hub.EntryPage, error)
	Named(ctx context.Context, home, kind, name string) (channelID string, err error)

	Agent(nameOrID string) (hub.Profile, error)
	FindAgent(name string) (id string, ok bool)
	Attend(agent, dialect, address string) (leave func())
	Register(ctx context.Context, r hub.Registration) (hub.Profile, error)

	// Adopt adds an identity that is not stored.
	Adopt(ctx context.Context, id string, r hub.Registration) (hub.Profile, error)
	Disown(id string)
	// Outside sets the function that finds identities whose names have a prefix.
	Outside(prefix string, find func(name string) (id string, ok bool))

	AdmitNamed(ctx context.Context, o hub.Opening, e *envelope.Envelope, by *hub.Caller) *hub.Pending
	// Delete removes a channel and what is part of it.
	Delete(ctx context.Context, channelID string, by *hub.Caller) error

	Document(ctx context.Context, kind, name string) (hub.Document, error)
	EditDocuments(ctx context.Context, edits []hub.DocumentEdit, notes ...hub.AuditNote) (uint64, error)

	Follow(ctx context.Context, channelID string, o hub.FollowOptions) (*hub.Follower, error)
	Position(ctx context.Context, channelID string) (journal.Position, error)
	FollowAll(ctx context.Context, o hub.WideOptions) (*hub.WideFollower, error)
	Now(ctx context.Context) (hub.WidePosition, error)
	Listen(l hub.Listener)
	// Reading returns the turn of a caller to read logs.
	Reading(who string) *turns.Turn
}
