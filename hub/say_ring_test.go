package hub_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message"
)

// site is a channel of one hub, and the identity that speaks there for the other
// hubs.
type site struct {
	*rig
	channel string
	relay   *agent
	me      *agent
}

func newSite(t *testing.T, o hub.Options) *site {
	r := newRig(t, o)
	s := &site{rig: r, me: r.agent("me"), relay: r.agent("relay")}
	s.channel = r.open("conversation", s.me, s.relay)
	return s
}

// said returns the texts of the channel.
func (s *site) said() (list []string) {
	reader := channel.ReaderOf(conversation.Adapter{}, nil)
	for _, e := range s.log(s.channel) {
		for _, i := range reader.Read(nil, e) {
			if i.Kind == channel.ItemMessage {
				list = append(list, fmt.Sprint(i.Message.Content))
			}
		}
	}
	return list
}

// relays repeats every text of one site at another, regardless of its sender. A
// careless relay uses a new id each time.
func relays(ctx context.Context, wg *sync.WaitGroup, from, to *site, careless bool) {
	wg.Go(func() {
		f, err := from.Follow(ctx, from.channel, hub.FollowOptions{})
		if err != nil {
			return
		}
		defer f.Close()
		reader := channel.ReaderOf(conversation.Adapter{}, nil)
		for {
			ev, err := f.Next(ctx)
			if err != nil {
				return
			}
			for _, i := range reader.Read(nil, ev.Envelope) {
				if i.Kind != channel.ItemMessage {
					continue
				}
				s := hub.Saying{
					Channel: to.channel, Sender: to.relay.id, Origin: hub.Onward(ev.Envelope, "relay"),
					Message: message.Envelope{Type: message.TypeText, Content: i.Message.Content},
				}
				if careless {
					s.Origin.ID = ""
				}
				_, _ = to.Say(ctx, s, nil).Wait(ctx) // a refusal ends it here
			}
		}
	})
}

// However hubs are connected, each text arrives once everywhere, and even a relay
// that drops the origin of texts ends.
func TestRingsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ways     [][2]int
		careless bool
	}{
		"two hubs, joined twice": {ways: [][2]int{{0, 1}, {1, 0}, {0, 1}, {1, 0}}},
		"a ring of three":        {ways: [][2]int{{0, 1}, {1, 2}, {2, 0}}},
		"everyone with everyone": {ways: [][2]int{{0, 1}, {1, 0}, {1, 2}, {2, 1}, {2, 0}, {0, 2}}},
		"a hub with itself":      {ways: [][2]int{{0, 0}}},
		"a careless ring":        {ways: [][2]int{{0, 1}, {1, 2}, {2, 0}}, careless: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				sites := []*site{newSite(t, byHand), newSite(t, byHand), newSite(t, byHand)}
				var wg sync.WaitGroup
				for _, way := range c.ways {
					relays(ctx, &wg, sites[way[0]], sites[way[1]], c.careless)
				}
				synctest.Wait()
				sites[0].say(sites[0].me, sites[0].channel, "once")
				if _, err := sites[0].Say(ctx, hub.Saying{
					Channel: sites[0].channel, Sender: sites[0].me.id, Origin: envelope.Origin{Dialect: "hpd", ID: "i-1"},
					Message: message.Envelope{Type: message.TypeText, Content: "and once more"},
				}, nil).Wait(ctx); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				joined := map[int]bool{0: true}
				for _, way := range c.ways {
					joined[way[1]] = true
				}
				for i, s := range sites {
					got := s.said()
					slices.Sort(got)
					want := []string{"and once more", "once"}
					switch {
					case c.careless:
						if n := len(got); n == 0 || n > 2*8 {
							t.Errorf("%d: %d texts: %v", i, n, got)
						}
					case joined[i] && !slices.Equal(got, want), !joined[i] && len(got) > 0:
						t.Errorf("%d: %v", i, got)
					}
				}
				cancel()
				wg.Wait()
			})
		})
	}
}
