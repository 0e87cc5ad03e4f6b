package hpd

import (
	"context"
	"io"
	"iter"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/turns"
	"github.com/parley-hub/parley/journal"
)

// Hub is the part of the hub that the dialect uses; *hub.Hub implements it.
type Hub interface {
	As(by *hub.Caller) hub.Access
	Register(ctx context.Context, r hub.Registration) (hub.Profile, error)
	FindAgent(name string) (id string, ok bool)
	Name(id string) string
	Bound(agent string) (endpointID string, ok bool)
	Attend(agent, dialect, address string) (leave func())
	AwaitAck(ctx context.Context, agent, channelID string) error
	Listen(l hub.Listener)
	Reading(who string) *turns.Turn

	Home(ctx context.Context, kind, name string) (hub.Home, error)
	FindHome(ctx context.Context, kind, name string) (hub.Home, error)
	DeleteHome(ctx context.Context, homeID string, by *hub.Caller) error
	Entries(ctx context.Context, q hub.EntryQuery) (hub.EntryPage, error)
	Named(ctx context.Context, home, kind, name string) (channelID string, err error)

	Seed(ctx context.Context, o hub.Opening, envelopes iter.Seq2[*envelope.Envelope, error]) (hub.Opened, error)
	Delete(ctx context.Context, channelID string, by *hub.Caller) error
	Channel(ctx context.Context, id string) (*channel.Metadata, error)
	Adapter(ctx context.Context, channelID string) (channel.Adapter, error)
	State(ctx context.Context, id string) (channel.State, error)
	Expected(ctx context.Context, channelID string) (turn channel.Turn, ok bool, err error)
	Viewer(ctx context.Context, channelID, agent string) (func(*envelope.Envelope) (bool, error), error)

	Admit(ctx context.Context, e *envelope.Envelope, by *hub.Caller) *hub.Pending
	AdmitAll(ctx context.Context, list []*envelope.Envelope, by *hub.Caller) *hub.Pending
	AdmitOpening(ctx context.Context, o hub.Opening, first *envelope.Envelope) (hub.Opened, string, error)
	AdmitSide(ctx context.Context, e *envelope.Envelope, by *hub.Caller) *hub.Pending
	Say(ctx context.Context, s hub.Saying, by *hub.Caller) *hub.Pending
	SendLiveShared(ctx context.Context, e *envelope.Envelope, shared *hub.Shared, by *hub.Caller) error

	Log(ctx context.Context, channelID string, from, to uint64) iter.Seq2[*envelope.Envelope, error]
	Length(ctx context.Context, channelID string) (uint64, error)
	Position(ctx context.Context, channelID string) (journal.Position, error)
	Follow(ctx context.Context, channelID string, o hub.FollowOptions) (*hub.Follower, error)

	Ask(ctx context.Context, q hub.Asking, by *hub.Caller) (hub.Request, error)
	Answer(ctx context.Context, id string, a hub.Answer, by *hub.Caller) (hub.Request, error)
	Request(ctx context.Context, id string) (hub.Request, error)
	Requests(ctx context.Context, q hub.RequestQuery) (hub.RequestPage, error)
	AwaitRequest(ctx context.Context, id string) (hub.Request, error)
	CancelRequests(ctx context.Context, channelID, run, reason string) error

	Document(ctx context.Context, kind, name string) (hub.Document, error)
	Documents(ctx context.Context, kind string, page hub.DocumentPage) (list []hub.Document, next string, err error)
	PutDocument(ctx context.Context, kind, name string, data []byte, expect *uint64) (uint64, error)
	RemoveDocument(ctx context.Context, kind, name string, expect *uint64) error

	Content(ctx context.Context, home, id string) (hub.ContentInfo, io.ReadSeekCloser, error)
	Contents(ctx context.Context, home string, page hub.ContentPage) (list []hub.ContentInfo, next string, err error)
	PutContent(ctx context.Context, home string, info hub.ContentInfo, from io.Reader) (hub.ContentInfo, error)
	DropContent(ctx context.Context, home, id string, by *hub.Caller) error
}
