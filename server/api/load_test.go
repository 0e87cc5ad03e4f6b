package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/server/api"
)

// Many channels are listed, filtered and paged; neither an answer nor what the
// hub keeps of it grows with how many there are.
func TestManyChannels(t *testing.T) { // not parallel: it measures the heap, which is everyone's
	const loaded, page = 64, 100
	s := newSiteOn(t, hub.Options{Limits: hub.Limits{LoadedChannels: loaded}})
	alice, bob := s.agent("alice"), s.agent("bob")
	s.agent("carol")
	n := min(scale.N(2_500), 10_000)
	ids := s.channels(n, alice, bob)
	slices.Sort(ids)
	s.hub.Evict()

	before := liveHeap()
	var peak uint64
	got := s.listAll(fmt.Sprintf("/v1/channels?limit=%d", page), func(size int) {
		if size > page*1500 {
			t.Errorf("a page has %d bytes", size)
		}
		peak = max(peak, liveHeap())
	})
	if !slices.Equal(got, ids) {
		t.Errorf("listed %d channels of %d, or not in order", len(got), n)
	}
	if grown := int64(peak) - int64(before); grown > 8<<20 {
		t.Errorf("listing made the heap grow by %d bytes", grown)
	}
	if now := s.hub.Stats().Loaded; now > 2*loaded {
		t.Errorf("%d channels are loaded", now)
	}
	for path, want := range map[string]int{
		"label=group=3":                      n / 10,
		"label=group=3&label=half=1":         n / 10,
		"label=group=3&label=half=0":         0,
		"agent=alice&type=conversation":      n,
		"agent=carol":                        0,
		"state=closed":                       0,
		"newest&label=group=7&state=active":  n / 10,
		"type=workflow":                      0,
		"label=group=3&agent=bob&limit=1000": n / 10,
	} {
		if got := s.listAll("/v1/channels?"+path, func(int) {}); len(got) != want {
			t.Errorf("%s: %d, want %d", path, len(got), want)
		}
	}
}

// channels opens n conversations with labels.
func (s *site) channels(n int, creator, other string) []string {
	s.t.Helper()
	ids := make([]string, n)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				opened, err := s.hub.Open(s.t.Context(), hub.Opening{
					Creator: creator, Type: "conversation", Participants: []string{other},
					Labels: map[string]string{"group": fmt.Sprint(i % 10), "half": fmt.Sprint(i % 2)},
				})
				if err != nil {
					s.t.Error(err)
					return
				}
				ids[i] = opened.ID
			}
		})
	}
	wg.Wait()
	return ids
}

// listAll pages through a list of channels.
func (s *site) listAll(path string, each func(size int)) (ids []string) {
	s.t.Helper()
	after := ""
	for {
		resp := s.do(operator, "GET", path+after, "")
		var page struct {
			Channels []struct {
				ID string `json:"channel_id"`
			} `json:"channels"`
			Next string `json:"next"`
		}
		raw := readAll(s.t, resp)
		if err := json.Unmarshal(raw, &page); err != nil {
			s.t.Fatalf("%v: %s", err, raw)
		}
		each(len(raw))
		for _, ch := range page.Channels {
			ids = append(ids, ch.ID)
		}
		if page.Next == "" {
			return ids
		}
		after = "&after=" + page.Next
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A long channel is followed from its start while it grows, without gap.
func TestLongChannelFollowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice := s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	n := min(scale.N(25_000), 100_000)
	s.unbounded("bob")
	posted := make(chan error, 1)
	go func() {
		var last *hub.Pending
		for i := range n {
			last = s.hub.Admit(context.Background(), &envelope.Envelope{
				Channel: ch, Sender: alice, Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":"word %d"}`, i),
			}, nil)
			if i%500 == 499 {
				if _, err := last.Wait(context.Background()); err != nil {
					posted <- err
					return
				}
			}
		}
		_, err := last.Wait(context.Background())
		posted <- err
	}()
	for _, path := range []string{"/v1/channels/" + ch + "/events", "/v1/events"} {
		f := s.follow(operator, path)
		for i := range n + 3 {
			var ev struct {
				Sequence int            `json:"sequence"`
				Data     map[string]any `json:"event_data"`
			}
			if err := json.Unmarshal([]byte(f.next().data), &ev); err != nil {
				t.Fatal(err)
			}
			if ev.Sequence != i+1 || i >= 3 && ev.Data["text"] != fmt.Sprintf("word %d", i-3) {
				t.Fatalf("%s: event %d is %+v", path, i+1, ev)
			}
		}
		_ = f.body.Close()
	}
	if err := <-posted; err != nil {
		t.Fatal(err)
	}
}

// narrow gives every connection small buffers, so that a reader that stops is
// noticed soon.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(8 << 10)
	}
	return conn, err
}

// Of many who follow one channel, one stops reading: it is cut off within its
// bound, the others miss nothing, and it resumes where it was.
func TestOneOfManyFollowersStopsReading(t *testing.T) {
	t.Parallel()
	readers, events := min(scale.N(250), 1_000), 30
	limit := max(5*time.Second, time.Duration(readers)*20*time.Millisecond) // the others are slow too, on few cores
	s := newSite(t, func(c *api.Config) { c.Limits.Write = limit })
	alice := s.agent("alice")
	s.agent("bob")
	s.unbounded("bob")
	ch := s.open("conversation", "alice", "bob")
	path := "/v1/channels/" + ch + "/events"

	var wg sync.WaitGroup
	ready := make(chan struct{}, readers)
	for range readers {
		wg.Go(func() {
			f := s.follow(operator, path)
			defer f.body.Close()
			for i := range events + 3 {
				got, ok := f.try()
				if !ok || !strings.Contains(got.data, fmt.Sprintf(`"sequence":%d,`, i+1)) {
					t.Errorf("event %d is %.80s (%v)", i+1, got.data, f.scan.Err())
				}
				if i == 2 {
					ready <- struct{}{}
				}
			}
		})
	}
	stopped := s.stopReading(path)
	for range readers {
		<-ready
	}
	s.awaitFollowers(readers + 1)
	padding := strings.Repeat("x", 6<<10)
	for i := range events {
		_, err := s.hub.Post(t.Context(), &envelope.Envelope{
			Channel: ch, Sender: alice, Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":"%d %s"}`, i, padding),
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	s.awaitFollowers(0)
	if cut := s.v1.(*api.API).SlowReaders(); cut != 1 {
		t.Errorf("%d slow readers were counted", cut)
	}
	// It takes what reached it, then goes on from the last whole event.
	seen := stopped.rest()
	last := seen[len(seen)-1]
	f := s.follow(operator, path, "Last-Event-ID", last.id)
	defer f.body.Close()
	for len(seen) < events+3 {
		seen = append(seen, f.next())
	}
	for i, got := range seen {
		if !strings.Contains(got.data, fmt.Sprintf(`"sequence":%d,`, i+1)) {
			t.Fatalf("event %d is %.80s", i+1, got.data)
		}
	}
	if len(seen) != events+3 {
		t.Errorf("%d events", len(seen))
	}
}

// stopReading follows on a connection with a small buffer and reads nothing.
func (s *site) stopReading(path string) *frames {
	s.t.Helper()
	dialer := &net.Dialer{}
	client := &http.Client{Transport: &http.Transport{
		ReadBufferSize: 512,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetReadBuffer(8 << 10)
			}
			return conn, err
		},
	}}
	return s.followWith(client, operator, path)
}

// rest reads whole frames until the connection ends.
func (f *frames) rest() (got []frame) {
	for {
		next, ok := f.try()
		if !ok {
			return got
		}
		got = append(got, next)
	}
}

// awaitFollowers waits until so many streams are open.
func (s *site) awaitFollowers(n int) {
	s.t.Helper()
	late := time.Now().Add(30 * time.Second)
	for {
		_, health := s.ask(operator, "GET", "/v1/health", "")
		open := health["stats"].(map[string]any)["followers"]
		if open == float64(n) {
			return
		}
		if time.Now().After(late) {
			s.t.Fatalf("%v streams are open, want %d", open, n)
		}
		runtime.Gosched()
	}
}
