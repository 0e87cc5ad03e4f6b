package agh_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/natsbroker"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/message"
)

// site is a hub of its own, with a relay that posts in its channels everything that
// it receives over AGH.
type site struct {
	*rig
	peer     string
	relay    string // its identity
	channels []string

	hub.NoopListener
	mu       sync.Mutex
	circling int // refusals, because of too many hops
}

// TurnFailed counts messages that are no longer sent because of too many hops.
func (s *site) TurnFailed(_, _, _, why string) {
	if strings.Contains(why, "bridge.max_hops") {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.circling++
	}
}

// EnvelopeRejected counts envelopes that circulate.
func (s *site) EnvelopeRejected(_ *envelope.Envelope, err error) {
	if fault.ReasonOf(err) == fault.TooManyHops {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.circling++
	}
}

func (s *site) circles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.circling
}

// newSite starts a hub whose relay is hosted in the room dock.
func newSite(t *testing.T, broker agh.Broker, name string) *site {
	t.Helper()
	s := &site{rig: &rig{T: &spec.T{T: t}}, peer: name + ".s01"}
	var err error
	s.engine, err = mem.Open(mem.Options{Store: mem.NewStore()})
	s.NoError(err)
	log := slog.New(slog.DiscardHandler)
	s.hub, err = hub.Open(context.Background(), s.engine, hub.Options{
		Adapters: append(adapter.All(), room.New(room.Options{}), thread.New(thread.Options{}), direct.New(direct.Options{})), Log: log,
		Listeners: []hub.Listener{s}, Limits: hub.Limits{DocumentBytes: 1 << 20},
	})
	s.NoError(err)
	s.server, err = agh.New(agh.Config{Hub: s.hub, Log: log, Broker: broker, GreetInterval: 50 * time.Millisecond, Who: func(*http.Request) agh.Who { return agh.Who{Role: agh.Operator} }})
	s.NoError(err)
	s.NoError(s.server.Start(context.Background()))
	t.Cleanup(s.stop)
	s.join("dock", name, s.peer)
	s.relay, _ = s.hub.FindAgent(name)
	return s
}

// bridge opens a conversation of the relay with the relay of another hub.
func (s *site) bridge(t *testing.T, to *site) {
	t.Helper()
	o, err := s.hub.WithIDs(hub.Opening{Creator: s.relay, Type: "conversation", Participants: []string{"agh/ws_harbor/" + to.peer}})
	s.NoError(err)
	opened, err := s.hub.Open(t.Context(), o)
	s.NoError(err)
	s.channels = append(s.channels, opened.ID)
}

// relays posts in the site's channels what its relay receives. A careless relay
// drops the origin.
func (s *site) relays(t *testing.T, careless bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	inbox := hub.NewInbox(0)
	s.NoError(s.hub.Attach(ctx, s.relay, inbox, hub.Attachment{Reader: "relay", Dialect: "agh"}))
	var running sync.WaitGroup
	running.Go(func() {
		for {
			n, err := inbox.Next(ctx)
			if err != nil {
				return
			}
			e, _, err := wire.Message(n.Envelope)
			if err != nil || e.Kind != wire.Say || e.Work == "" {
				continue
			}
			for _, id := range s.channels {
				origin := wire.FirstOrigin(e.Ext, envelope.Origin{Dialect: "agh", ID: e.ID})
				if careless {
					origin.ID = ""
				}
				_, _ = s.hub.Say(ctx, hub.Saying{ // a refusal ends it here
					Channel: id, Sender: s.relay, Origin: origin,
					Message: message.Envelope{Type: message.TypeText, Content: channel.TextMember(e.Body, "text")},
				}, nil).Wait(ctx)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (s *site) says(t *testing.T, text string) {
	t.Helper()
	for _, id := range s.channels {
		data := must(jsonText(text))
		_, err := s.hub.Post(t.Context(), &envelope.Envelope{Channel: id, Sender: s.relay, Type: envelope.TypeText, Data: data}, nil)
		s.NoError(err)
	}
}

func jsonText(text string) ([]byte, error) {
	return []byte(`{"text":` + strconv.Quote(text) + `}`), nil
}

// count returns how often a text is in the site's channels.
func (s *site) count(text string) (n int) {
	for _, id := range s.channels {
		for e, err := range s.hub.Log(context.Background(), id, 0, 0) {
			if err == nil && e.Type == envelope.TypeText && channel.TextMember(e.Data, "text") == text {
				n++
			}
		}
	}
	return n
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// However hubs are connected over NATS, each text is once in every channel; even a
// relay that drops the origin of texts ends.
func TestRingsOverNATS(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hubs     int
		ways     [][2]int
		careless bool
	}{
		"two hubs to each other":       {hubs: 2, ways: [][2]int{{0, 1}, {1, 0}}},
		"two hubs, joined twice":       {hubs: 2, ways: [][2]int{{0, 1}, {1, 0}, {0, 1}, {1, 0}}},
		"a ring of three":              {hubs: 3, ways: [][2]int{{0, 1}, {1, 2}, {2, 0}}},
		"careless ones to each other":  {hubs: 2, ways: [][2]int{{0, 1}, {1, 0}}, careless: true},
		"a careless ring, joined once": {hubs: 3, ways: [][2]int{{0, 1}, {1, 2}, {2, 0}}, careless: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sites []*site
			url := ""
			for i := range c.hubs {
				o := natsbroker.Options{URL: url, Token: "open-sesame-1"}
				if i == 0 {
					o.Listen = "127.0.0.1:0"
				}
				broker, err := natsbroker.Open(o)
				if err != nil {
					t.Fatal(err)
				}
				if _, port := broker.Address(); i == 0 {
					url = "nats://127.0.0.1:" + strconv.Itoa(port)
				}
				sites = append(sites, newSite(t, broker, "relay"+strconv.Itoa(i)))
			}
			for _, way := range c.ways {
				from, to := sites[way[0]], sites[way[1]]
				until(t, "the relays know each other", func() bool { return slices.Contains(from.present(), to.peer) })
				from.bridge(t, to)
			}
			for _, s := range sites {
				s.relays(t, c.careless)
			}
			first := sites[0]
			first.says(t, "once")
			if c.careless {
				until(t, "the circle is broken", func() bool {
					return slices.ContainsFunc(sites, func(s *site) bool { return s.circles() > 0 })
				})
				for i, s := range sites {
					if n := s.count("once"); n == 0 || n > 8 {
						t.Errorf("%d: %d times", i, n)
					}
				}
				return
			}
			all := func(text string) bool {
				return !slices.ContainsFunc(sites, func(s *site) bool { return s.count(text) < len(s.channels) })
			}
			until(t, "it is everywhere", func() bool { return all("once") })
			first.says(t, "twice") // takes every path after the first
			until(t, "the second one is everywhere", func() bool { return all("twice") })
			for i, s := range sites {
				// Each of the first hub's channels posts it separately.
				if n, most := s.count("once"), len(s.channels)*len(first.channels); n > most {
					t.Errorf("%d: %d times in %d channels", i, n, len(s.channels))
				}
				if s.circles() > 0 {
					t.Errorf("%d: something went in a circle until it was refused", i)
				}
			}
		})
	}
}
