package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/graph"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/internal/wsconn"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/chat"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/hosted"
	hpdevents "github.com/parley-hub/parley/view/branch"
)

// This file and dialect_NAME.go are the only ones of the command that name dialects.

// allSettings are the settings of the server and the dialects.
var allSettings = config.Core.With(ag2.Section.Keys(), hpd.Section.Keys(), agh.Section.Keys(), chat.Section.Keys())

// dialects are the protocols of a hub besides /v1.
type dialects []server.Dialect

// dialectsOf makes all dialects, or none if one fails.
func dialectsOf(cfg config.Config, h *hub.Hub, keys *access.Keys, budget *answers.Budget, host *hosted.Host, log *slog.Logger) (dialects, error) {
	var all dialects
	for _, make := range []func(config.Config, *hub.Hub, *access.Keys, *answers.Budget, *slog.Logger) (server.Dialect, error){
		serveAG2,
		serveHPD(host),
		serveAGH,
	} {
		d, err := make(cfg, h, keys, budget, log)
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all = append(all, d)
	}
	return all, nil
}

func (all dialects) close() error {
	var err error
	for _, d := range all {
		err = errors.Join(err, d.Close())
	}
	return err
}

// reach is implemented by a dialect whose clients cannot read every envelope: an
// envelope that could never be delivered to them is refused on every surface.
type reach interface {
	CheckEnvelope(e *envelope.Envelope) error
	CheckOpening(o hub.Opening) error
	ChannelWarnings(ctx context.Context, m *channel.Metadata) ([]string, error)
}

func (all dialects) checkEnvelope(e *envelope.Envelope) error {
	for _, d := range all {
		if d, ok := d.(reach); ok {
			if err := d.CheckEnvelope(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (all dialects) checkOpening(o hub.Opening) error {
	for _, d := range all {
		if d, ok := d.(reach); ok {
			if err := d.CheckOpening(o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (all dialects) channelWarnings(ctx context.Context, m *channel.Metadata) ([]string, error) {
	var list []string
	for _, d := range all {
		if d, ok := d.(reach); ok {
			more, err := d.ChannelWarnings(ctx, m)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	}
	return list, nil
}

// noneFrom says from where the scheme none is accepted, and trustsClients whether a
// connection may act for anyone: both are settings of AG2.
func noneFrom(cfg config.Config) string    { return ag2.Section.Of(&cfg).AllowNone }
func trustsClients(cfg config.Config) bool { return ag2.Section.Of(&cfg).TrustClients }

// ignoresExpectations is a setting of AG2 too: expectations are part of its manifests.
func ignoresExpectations(cfg config.Config) bool {
	return ag2.Section.Of(&cfg).Expectations == ag2.ExpectNothing
}

// accessNote is a line of the start-up screen about access, besides who needs a key.
func accessNote(cfg config.Config) string {
	if noneFrom(cfg) != ag2.NoneFromLoopback {
		return ""
	}
	return "; AG2 clients on this machine need none for names without a key (ag2.allow_none)"
}

// allowNone accepts the scheme none from the addresses of the setting, for names
// without a key.
func allowNone(from string, keys *access.Keys) identity.None {
	return identity.None{Keyed: keys.HasAgent, Allow: func(ctx context.Context) bool {
		switch from {
		case ag2.NoneAlways:
			return true
		case ag2.NoneNever:
			return false
		}
		return identity.PeerOf(ctx).Loopback
	}}
}

// proofs checks whether the identities of one connection are still proved: by a key
// until it is revoked, and without one until a key is made for the name. The
// connection counts against the share of the last key that was shown.
func proofs(keys *access.Keys, seat access.Seat) ag2.Prove {
	return func(name, scheme string, claim []byte) (func() bool, error) {
		if scheme != identity.SchemeAPIKey {
			return func() bool { return !keys.HasAgent(name) }, nil
		}
		token, _ := identity.Token(claim)
		key, ok := keys.Resolve(token)
		if !ok {
			return nil, fault.New(fault.AuthFailed, "the key of %q was revoked", name)
		}
		return func() bool { return keys.Stands(access.Principal{Role: key.Role, Key: key.ID}) }, seat(key.ID)
	}
}

func serveAG2(cfg config.Config, h *hub.Hub, keys *access.Keys, _ *answers.Budget, log *slog.Logger) (server.Dialect, error) {
	set := ag2.Section.Of(&cfg)
	mirror, err := ag2.ParseMirror(set.MirrorTasks)
	if err != nil {
		return nil, err
	}
	wal, err := ag2.ParseWAL(set.ReadWAL)
	if err != nil {
		return nil, err
	}
	s, err := ag2.New(ag2.Config{
		Hub:          h,
		TrustClients: set.TrustClients,
		MirrorTasks:  mirror,
		ReadWAL:      wal,
		DebugFrames:  set.DebugFrames,
		Operator: func(r *http.Request) func() bool {
			who := access.From(r.Context())
			if !who.Has(access.Operator) {
				return nil
			}
			return func() bool { return keys.Stands(who) }
		},
		Prove:      func(r *http.Request) ag2.Prove { return proofs(keys, access.SeatOf(r.Context())) },
		AuthFailed: func(p identity.Peer, name string) { keys.Failed(p.Address, "ag2", name) },
		Strangers: func(p identity.Peer) bool {
			return allowNone(set.AllowNone, keys).Allow(identity.WithPeer(context.Background(), p))
		},
		Peer: func(r *http.Request) identity.Peer {
			return identity.Peer{Address: r.RemoteAddr, Loopback: access.From(r.Context()).Loopback}
		},
		Log: log,
		Limits: ag2.Limits{
			Limits: wsconn.Limits{
				Connections: set.Limits.Connections,
				FrameBytes:  int(set.Limits.FrameBytes),
				QueueBytes:  int(set.Limits.QueueBytes),
				Handshake:   set.Limits.Handshake,
				Message:     set.Limits.Message,
				Ping:        set.Limits.Ping,
				Pong:        set.Limits.Pong,
				Write:       set.Limits.Write,
			},
			Requests:   set.Limits.Requests,
			Openings:   set.Limits.Openings,
			Identities: set.Limits.Identities, Foreign: set.Limits.Foreign,
		},
	})
	if err != nil {
		return nil, err
	}
	keys.OnChange(s.Recheck)
	return s, nil
}

// workflowOptions are the limits of new graphs.
func workflowOptions(cfg config.Config) workflow.Options {
	l := cfg.Limits
	return workflow.Options{Bounds: graph.Bounds{Conditions: l.GraphConditions, Values: l.GraphValues, Vars: l.ContextVars}}
}

// adapters returns the adapters of every dialect.
func adapters(cfg config.Config) ([]channel.Adapter, error) {
	table, err := hpdTable(cfg)
	if err != nil {
		return nil, err
	}
	all := append(adapter.AllWith(workflowOptions(cfg)), branch.New(branch.Options{Table: table, Record: int(cfg.Limits.Record)}))
	all = append(all, transcript.New(transcript.Options{Messages: chat.Section.Of(&cfg).Messages, Record: int(cfg.Limits.Record)}))
	return append(all, aghAdapters(cfg)...), nil
}

// hpdTable says which of HPD's events are stored.
func hpdTable(cfg config.Config) (*hpdevents.Table, error) {
	set := hpd.Section.Of(&cfg)
	transcripts, err := hpdevents.ParseTranscripts(set.Persist.AudioTranscripts)
	if err != nil {
		return nil, err
	}
	table := hpdevents.NewTable()
	table.Policy = hpdevents.Policy{
		Requests: set.Persist.Requests, Workflow: set.Persist.Workflow,
		Content: set.Persist.Content, Transcripts: transcripts,
	}
	return table, nil
}

// hpdWho returns a principal in the form of the dialect.
func hpdWho(r *http.Request) hpd.Who {
	who := access.From(r.Context())
	out := hpd.Who{Agent: who.Agent, Key: who.Key}
	switch who.Role {
	case access.Operator:
		out.Role = hpd.Operator
	case access.Reader:
		out.Role = hpd.Reader
	case access.Agent:
		out.Role = hpd.Agent
	}
	return out
}

// serveHPD makes HPD's dialect. Its agent definitions run on the host, if there is
// one.
func serveHPD(host *hosted.Host) func(config.Config, *hub.Hub, *access.Keys, *answers.Budget, *slog.Logger) (server.Dialect, error) {
	return func(cfg config.Config, h *hub.Hub, keys *access.Keys, budget *answers.Budget, log *slog.Logger) (server.Dialect, error) {
		var run func(wire.StoredAgent) hpd.Producer
		if host != nil {
			run = host.Producer
		}
		return newHPD(cfg, h, keys, budget, run, log)
	}
}

func newHPD(cfg config.Config, h *hub.Hub, keys *access.Keys, budget *answers.Budget, run func(wire.StoredAgent) hpd.Producer, log *slog.Logger) (server.Dialect, error) {
	table, err := hpdTable(cfg)
	if err != nil {
		return nil, err
	}
	set, children := hpd.Section.Of(&cfg), http.StatusBadRequest
	if set.HasChildren == strconv.Itoa(http.StatusConflict) {
		children = http.StatusConflict
	}
	s, err := hpd.New(hpd.Config{
		Hub:             h,
		Registry:        wire.NewRegistry(table),
		Hosted:          run,
		DefaultAgent:    set.DefaultAgent,
		User:            set.User,
		Who:             hpdWho,
		Stands:          func(r *http.Request) bool { return keys.Stands(access.From(r.Context())) },
		RecursiveDelete: set.RecursiveDelete,
		ChildrenStatus:  children,
		InterruptGrace:  set.InterruptGrace,
		ProducerGrace:   set.ProducerGrace,
		InviteTimeout:   cfg.Hub.InviteAckTimeout,
		Log:             log,
		Answers:         budget,
		Limits: hpd.Limits{
			Sessions:    set.Limits.Sessions,
			Streams:     set.Limits.Streams,
			Behind:      set.Limits.Behind,
			BehindBytes: int(set.Limits.BehindBytes),
			Runs:        set.Limits.Runs,
			Work:        set.Limits.Work,
			Keys:        set.Limits.Keys,
			Recent:      set.Limits.Recent,
			Remembered:  set.Limits.Remembered,
			Requests:    set.Limits.Requests,
			Event:       int(cfg.Limits.Event),
			Record:      int(cfg.Limits.Record),
			Content:     int64(cfg.Limits.Content),
			Upload:      set.Limits.Upload,
			Socket: wsconn.Limits{
				Connections: set.Limits.Connections, FrameBytes: int(set.Limits.FrameBytes), QueueBytes: int(set.Limits.QueueBytes),
			},
			Write:     cfg.Limits.FollowerWrite,
			KeepAlive: min(cfg.Limits.KeepAlive, hpd.KeepAlive),
		},
	})
	if err != nil {
		return nil, err
	}
	keys.OnChange(s.Recheck)
	return s, nil
}
