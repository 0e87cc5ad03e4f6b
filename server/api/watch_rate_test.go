package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

// tape is a reader that takes everything at once, and notes when rows came.
type tape struct {
	header    http.Header
	rows      []time.Time
	summaries []time.Time
	last      []byte // the rows that were written last
}

func (w *tape) Header() http.Header { return w.header }
func (*tape) WriteHeader(int)       {}
func (*tape) Flush()                {}
func (w *tape) Write(b []byte) (int, error) {
	for range bytes.Count(b, []byte("event: row\n")) {
		w.rows = append(w.rows, time.Now())
	}
	for range bytes.Count(b, []byte("event: summary\n")) {
		w.summaries = append(w.summaries, time.Now())
	}
	if bytes.Contains(b, []byte("event: row\n")) {
		w.last = append(w.last[:0], b...)
	}
	return len(b), nil
}
func (*tape) SetWriteDeadline(time.Time) error { return nil }

// 10,000 posts a second over 1,000 channels, by the clock of the test: who watches 50
// of them is told of 200 rows and one summary a second, and in the end of the newest.
func TestWatchersOfBusyRowsAreToldOfTheNewestAFewTimesASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quiet := slog.New(slog.DiscardHandler)
		h, err := hub.Open(t.Context(), openMem(t), hub.Options{Adapters: adapter.All(), Log: quiet, Limits: hub.Limits{Inbox: 1 << 30}})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		channels, sender, others := busyChannels(t, h, 1000)
		v1 := api.New(api.Config{Hub: h, Version: "test", Log: quiet})
		ctx, cancel := context.WithCancel(access.With(t.Context(), access.Principal{Role: access.Operator}))
		defer cancel()
		w := &tape{header: http.Header{}}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			v1.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, watchPath("summary", "rows:"+strings.Join(channels[:50], ",")), nil))
		}()
		synctest.Wait()
		for n := range 20 {
			for _, id := range channels {
				note := &envelope.Envelope{Channel: id, Sender: sender, Audience: []string{sender}, Type: "app.note", Data: fmt.Appendf(nil, `{"text":"note %d"}`, n)}
				if _, err := h.Post(t.Context(), note, nil); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := h.Open(t.Context(), hub.Opening{Creator: sender, Type: "discussion", Participants: others}); err != nil { // one more to count
				t.Fatal(err)
			}
			<-time.After(100 * time.Millisecond)
		}
		<-time.After(time.Second)
		synctest.Wait()
		cancel()
		<-ended
		const most = 200
		if len(w.rows) < most {
			t.Fatalf("%d rows in three seconds", len(w.rows))
		}
		for i := range w.rows[most:] {
			if took := w.rows[i+most].Sub(w.rows[i]); took < time.Second {
				t.Fatalf("more than %d rows came within %s", most, took)
			}
		}
		if len(w.summaries) < 2 {
			t.Errorf("%d summaries in three seconds", len(w.summaries))
		}
		for i := range w.summaries[1:] {
			if took := w.summaries[i+1].Sub(w.summaries[i]); took < time.Second {
				t.Errorf("a summary came %s after the one before", took)
			}
		}
		head, err := h.Position(t.Context(), channels[0])
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(w.last, fmt.Appendf(nil, `"sequence":%d`, head.Seq)); n != 50 {
			t.Errorf("the newest of %d rows was told in the end, not of 50", n)
		}
	})
}

// busyChannels are channels of two who never read, and the two.
func busyChannels(t *testing.T, h *hub.Hub, count int) (ids []string, sender string, others []string) {
	t.Helper()
	var who []string
	for _, name := range []string{"alice", "bob"} {
		rule := identity.DefaultRule()
		rule.Limits.Inbox.MaxPending = 0
		p, err := h.Register(t.Context(), hub.Registration{Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}, Rule: &rule})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Bind(p.ID(), acker{h}); err != nil {
			t.Fatal(err)
		}
		who = append(who, p.ID())
	}
	for range count {
		opened, err := h.Open(t.Context(), hub.Opening{Creator: who[0], Type: "discussion", Participants: who[1:]})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, opened.ID)
	}
	return ids, who[0], who[1:]
}
