package ag2_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// watching is a stream that is read while things happen.
type watching struct {
	*httptest.ResponseRecorder
	mu    sync.Mutex
	marks map[string]chan struct{} // closed once the stream has shown their texts
	done  chan struct{}
	end   func()
}

func (w *watching) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.ResponseRecorder.Write(b)
	for text, seen := range w.marks {
		if strings.Contains(w.Body.String(), text) {
			close(seen)
			delete(w.marks, text)
		}
	}
	return n, err
}

func (*watching) SetWriteDeadline(time.Time) error { return nil }

// watch follows a path as an identity, from the beginning of the channel.
func (d *dialects) watch(h http.Handler, name, path, after string) *watching {
	ctx, end := context.WithTimeout(d.t.Context(), wait)
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	req.Header.Set("X-As", name)
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	w := &watching{ResponseRecorder: httptest.NewRecorder(), marks: map[string]chan struct{}{}, done: make(chan struct{}), end: end}
	go func() {
		defer close(w.done)
		defer func() {
			r := recover()
			if err, ok := r.(error); r != nil && (!ok || !errors.Is(err, http.ErrAbortHandler)) { // HPD ends a stream this way
				panic(r)
			}
		}()
		h.ServeHTTP(w, req)
	}()
	return w
}

// await waits until the stream has shown a text; false if the stream has ended.
func (w *watching) await(text string) bool {
	seen := make(chan struct{})
	w.mu.Lock()
	if strings.Contains(w.Body.String(), text) {
		close(seen)
	} else {
		w.marks[text] = seen
	}
	w.mu.Unlock()
	select {
	case <-seen:
		return true
	case <-w.done:
		return false
	}
}

// shown ends the stream, and returns everything that it showed.
func (w *watching) shown() string {
	w.end()
	<-w.done
	return w.Body.String()
}

// A live envelope is shown to its audience, over every dialect that streams,
// and never to AG2's clients and AGH's peers.
func TestNobodySeesMoreLive(t *testing.T) {
	t.Parallel()
	d := newDialects(t, options{}, hpd.Config{Who: asNamed})
	own, p, q := d.dial(), d.dial(), d.dial()
	ids := map[string]string{"ada": own.register("ada"), "bob": p.register("bob"), "eve": q.register("eve")}
	tug := d.join("tug", "tug.s01")
	peer, _ := d.rig.hub.FindAgent("agh/ws_harbor/tug.s01")
	rapid.Check(t, func(r *rapid.T) {
		o, err := d.rig.hub.WithIDs(hub.Opening{
			Creator: ids["ada"], Type: "workflow", Participants: []string{ids["bob"], peer}, RequiredAcks: new(int),
			Knobs: []byte(`{"graph":{"initial_speaker":"ada","transitions":[{"when":{"name":"always","args":{}},"then":{"name":"stay","args":{}}}]}}`),
		})
		if err != nil {
			r.Fatal(err)
		}
		opened, err := d.rig.hub.Open(t.Context(), o)
		if err != nil {
			r.Fatal(err)
		}
		say := func(text string) {
			e := &envelope.Envelope{Channel: opened.ID, Sender: ids["ada"], Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":%q}`, text)}
			if _, err := d.rig.hub.Post(t.Context(), e, nil); err != nil {
				r.Fatal(err)
			}
		}
		first, last := "first of "+opened.ID, "last of "+opened.ID
		say(first)
		type seat struct{ how, name string }
		streams := map[seat]*watching{}
		for name := range ids {
			streams[seat{"/v1", name}] = d.watch(d.v1, name, "/v1/channels/"+opened.ID+"/events?follow", "")
			streams[seat{"HPD", name}] = d.watch(d.hpd, name, "/hpd/agents/any/sessions/"+opened.ID+"/branches/main/events/live", "0")
		}
		for at, w := range streams {
			if in := at.name != "eve"; w.await(first) != in {
				r.Errorf("%s takes part: %v; a stream of %s shows %s", at.name, in, at.how, w.shown())
			}
		}
		var audiences [][]string
		for n := range rapid.IntRange(1, 6).Draw(r, "pieces") {
			e := &envelope.Envelope{
				Channel: opened.ID, Sender: ids["ada"], Type: envelope.TypeDelta, Priority: envelope.Normal,
				Data: fmt.Appendf(nil, `{"causation_id":"c%d","at":0,"text":"piece %d of %s"}`, n, n, opened.ID),
			}
			if rapid.Bool().Draw(r, "whispered") {
				e.Audience = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{ids["ada"], ids["bob"], peer}), 1, 3, rapid.ID).Draw(r, "audience")
			}
			audiences = append(audiences, e.Audience)
			if err := d.rig.hub.SendLive(t.Context(), e, nil); err != nil {
				r.Fatal(err)
			}
		}
		say(last)
		for at, w := range streams {
			w.await(last)
			stream := w.shown()
			for n, to := range audiences {
				if at.name == "ada" {
					continue // the speaker itself
				}
				may := at.name == "bob" && (to == nil || slices.Contains(to, ids["bob"]))
				if text := fmt.Sprintf("piece %d of %s", n, opened.ID); may != strings.Contains(stream, text) {
					r.Errorf("%s may see %q, for %q: %v; a stream of %s shows %s", at.name, text, to, may, at.how, stream)
				}
			}
		}
		var heard []string
		until(t, "the AGH peer is told", func() bool {
			heard = append(heard, d.inbox(tug, opened.ID)...)
			return len(heard) >= 2
		})
		if !slices.Equal(heard, []string{first, last}) {
			r.Errorf("tug is told %q over AGH", heard)
		}
		for got := p.notified(); got.Envelope["event_data"].(object)["text"] != last; got = p.notified() {
			if got.Envelope["event_type"] == envelope.TypeDelta {
				r.Errorf("bob is told %v over AG2", got)
			}
		}
	})
}
