package agh

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/dialect/agh/bridge"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/gate"
	"github.com/parley-hub/parley/internal/logsample"
)

// Server is the runtime.
type Server struct {
	cfg     Config
	hub     Hub
	mux     *http.ServeMux
	ledger  *ledger
	counts  counters
	metrics *metrics

	slowReaders logsample.Limiter

	catalogs   sync.Map   // of hosted identities, by id
	cataloging sync.Mutex // held while one is written

	submitted submitted
	published *recent // names of published messages
	received  *recent // names of received greetings and questions
	outbox    *outbox // nil: there is no broker
	bridge    *bridge.Bridge
	senders   budgets
	adopted   adopted
	waiting   chan struct{} // a place for each message that becomes durable
	rejecting sync.Mutex
	rejected  map[string]*rejects // by sender
	broken    atomic.Pointer[string]
	gate      gate.Gate // checked for each received message

	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	draining context.Context // of streams and waiting requests; ends with Drain
	drain    context.CancelFunc
	streams  chan struct{} // live ones
	work     sync.WaitGroup

	mu     sync.RWMutex
	spaces map[string]*space // by name
	homes  map[string]*space // by the home's id
	// opening serializes the making of workspaces.
	opening sync.Mutex
}

// mostWaiting bounds how many received messages become durable at once.
const mostWaiting = 1024

// New makes a runtime. It serves nothing until Start.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	switch {
	case cfg.Hub == nil:
		return nil, errors.New("agh: Config.Hub is missing")
	case !wire.ValidChannel(cfg.DefaultChannel):
		return nil, fault.New(fault.Invalid, "agh.default_channel is %q; a channel matches ^[a-z0-9][a-z0-9_-]{0,63}$", cfg.DefaultChannel)
	}
	s := &Server{cfg: cfg, hub: cfg.Hub, metrics: newMetrics(), spaces: map[string]*space{}, homes: map[string]*space{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.draining, s.drain = context.WithCancel(s.ctx)
	s.streams = make(chan struct{}, cfg.Limits.Streams)
	s.ledger, s.published, s.received, s.waiting = newLedger(s), newRecent(), newRecent(), make(chan struct{}, mostWaiting)
	if cfg.Broker != nil {
		s.outbox = newOutbox(s)
	}
	s.bridge = bridge.New(bridge.Config{
		Hub: cfg.Hub, Network: s, Accept: cfg.BridgeAccept, Log: cfg.Log, Now: cfg.Now, Resumes: cfg.GreetInterval / 2,
	})
	s.mux = s.routes()
	return s, nil
}

// Start loads the workspaces and their joined peers.
func (s *Server) Start(ctx context.Context) error {
	if s.cfg.Disabled {
		return nil
	}
	s.gate = gate.Of(ctx)
	s.hub.Listen(&listener{s: s})
	err := s.load(ctx)
	if err == nil {
		err = s.recoverOutbox(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped before it began
		}
		return err
	}
	s.work.Go(s.ledger.run)
	s.hub.Outside(bridge.Prefix, s.findPeer)
	if err := s.bridge.Start(ctx); err != nil {
		return err
	}
	return s.connect()
}

// connect attaches every hosted peer to the broker.
func (s *Server) connect() error {
	if s.cfg.Broker == nil {
		return nil
	}
	s.cfg.Broker.Watch(s.reconnected)
	s.work.Go(s.outbox.run)
	for _, p := range s.hostedPeers() {
		if err := s.attach(p); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) hostedPeers() (all []*peer) {
	for _, sp := range s.list() {
		for _, r := range sp.list() {
			all = append(all, r.everyone()...)
		}
	}
	return all
}

// reconnected handles changes of the connection to the broker: when it is back, every
// hosted peer greets.
func (s *Server) reconnected(err error) {
	if err != nil {
		text := err.Error()
		s.broken.Store(&text)
		s.outbox.changed(err)
		return
	}
	s.broken.Store(nil)
	s.outbox.changed(nil)
	s.work.Go(func() {
		for _, p := range s.hostedPeers() {
			s.greet(p)
		}
	})
}

// load finds the workspaces and who is joined there.
func (s *Server) load(ctx context.Context) error {
	for after := ""; ; {
		homes, next, err := s.hub.Homes(ctx, wire.Dialect, hub.HomePage{After: after, Limit: 500})
		if err != nil {
			return err
		}
		for _, home := range homes {
			sp := s.add(home)
			err := sp.loadTrust(ctx)
			if err == nil {
				err = sp.load(ctx)
			}
			if err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

// Drain ends live streams and requests that wait for messages.
func (s *Server) Drain(context.Context) error {
	s.drain()
	return nil
}

// Close ends everything. It is safe to call twice.
func (s *Server) Close() error {
	s.bridge.Close()
	for _, p := range s.hostedPeers() {
		s.release(p)
	}
	if s.outbox != nil && s.ctx.Err() == nil {
		s.outbox.drain(s.ctx)
	}
	s.cancel()
	s.work.Wait()
	if s.cfg.Broker != nil {
		return s.cfg.Broker.Close()
	}
	return nil
}

// add adds a workspace.
func (s *Server) add(home hub.Home) *space {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sp := s.homes[home.ID]; sp != nil {
		return sp
	}
	sp := &space{s: s, name: home.Name, home: home, rooms: map[string]*netChannel{}, sessions: map[string]*peer{}}
	s.spaces[home.Name], s.homes[home.ID] = sp, sp
	return sp
}

// find returns a workspace that exists.
func (s *Server) find(name string) (*space, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if sp := s.spaces[name]; sp != nil {
		return sp, nil
	}
	return nil, fault.New(fault.NotFound, "there is no workspace %.100q; it begins with its first channel or peer", name)
}

// open returns a workspace, and makes it if there is none.
func (s *Server) open(ctx context.Context, name string) (*space, error) {
	if sp, err := s.find(name); err == nil {
		return sp, nil
	}
	if !wire.ValidWorkspace(name) {
		return nil, fault.New(fault.Invalid, "%.100q cannot be a workspace: a name is one token of a NATS subject, without dots, spaces, * and >", name)
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	home, err := s.hub.Home(ctx, wire.Dialect, name)
	if err != nil {
		return nil, err
	}
	return s.add(home), nil
}

// list returns the workspaces, in no order.
func (s *Server) list() []*space {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*space, 0, len(s.spaces))
	for _, sp := range s.spaces {
		all = append(all, sp)
	}
	return all
}

// entries calls each with an adapter's entries of a workspace, page by page.
func (sp *space) entries(ctx context.Context, q hub.EntryQuery, each func(hub.Entry) (more bool, err error)) error {
	return sp.pages(ctx, q, func(page []hub.Entry) (bool, error) { return eachOf(page, each) })
}

// eachOf calls each with the items of a list until one needs no more.
func eachOf[T any](list []T, each func(T) (more bool, err error)) (more bool, err error) {
	for _, item := range list {
		if more, err := each(item); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// pages calls each with pages of an adapter's entries of a workspace.
func (sp *space) pages(ctx context.Context, q hub.EntryQuery, each func([]hub.Entry) (more bool, err error)) error {
	q.Home = sp.home.ID
	for {
		page, err := sp.s.hub.Entries(ctx, q)
		if err != nil {
			return err
		}
		if more, err := each(page.Entries); err != nil || !more {
			return err
		}
		switch {
		case page.Next == "":
			return nil
		case q.Reverse:
			q.Before = page.Next
		default:
			q.After = page.Next
		}
	}
}

// entry returns the entry of a key.
func (sp *space) entry(ctx context.Context, kind, key string) (hub.Entry, bool, error) {
	page, err := sp.s.hub.Entries(ctx, hub.EntryQuery{Type: kind, Home: sp.home.ID, Prefix: key, Limit: 1})
	if err != nil || len(page.Entries) == 0 || page.Entries[0].Key != key {
		return hub.Entry{}, false, err
	}
	return page.Entries[0], true, nil
}

// load finds the rooms of a workspace and who is joined.
func (sp *space) load(ctx context.Context) error {
	err := sp.entries(ctx, hub.EntryQuery{Type: room.Type, Prefix: room.RowsPrefix, Limit: 500}, func(e hub.Entry) (bool, error) {
		row, err := room.ParseRow(e.Value)
		if err != nil {
			return false, fault.Wrap(fault.Internal, err, "workspace %q: %v", sp.name, err)
		}
		sp.room(row.Channel, e.Channel).describe(row)
		return true, nil
	})
	if err != nil {
		return err
	}
	return sp.entries(ctx, hub.EntryQuery{Type: room.Type, Prefix: room.PeersPrefix, Limit: 500}, func(e hub.Entry) (bool, error) {
		channel, id, joined, err := room.ParsePeer(e.Key, e.Value)
		if err != nil {
			return false, fault.Wrap(fault.Internal, err, "workspace %q: %v", sp.name, err)
		}
		p := sp.join(sp.room(channel, e.Channel), id, joined)
		return true, p.recover(ctx)
	})
}
