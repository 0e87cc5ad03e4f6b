package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/sse"
)

// watchEvent is an event of an exact topic.
type watchEvent struct {
	topic, place, name string
	data               []byte
}

type helloBody struct {
	Topic     string    `json:"topic"`
	Watch     string    `json:"watch"`
	Now       time.Time `json:"now"`
	Epoch     string    `json:"epoch"`
	KeepAlive float64   `json:"keep_alive"` // seconds
}

type byeBody struct {
	Topic  string `json:"topic"`
	Reason string `json:"reason"`
}

// watch streams several topics at once.
func (a *API) watch(c *call) error {
	topics, err := parseTopics(c.URL.Query()["topic"])
	if err != nil {
		return err
	}
	resumed := places{}
	if id := sse.LastEventID(c.Request); id != "" {
		if resumed, err = decodePlaces(id); err != nil {
			return err
		}
	}
	at := places{}
	var exact []*exactTopic
	defer func() {
		for _, x := range exact {
			x.close()
		}
	}()
	conflated := []topic{}
	for _, t := range topics {
		if !t.exact() {
			conflated = append(conflated, t)
			continue
		}
		if place, ok := resumed[t.name()]; ok {
			t.place = place
		}
		x, err := a.openTopic(c, t)
		if err != nil {
			return err
		}
		exact = append(exact, x)
		at[t.name()] = x.place
	}
	w, err := a.watches.add(c, conflated)
	if err != nil {
		return err
	}
	defer a.watches.remove(w)
	return a.streamWatch(c, w, exact, at)
}

// streamWatch sends the events of the topics until the stream ends.
func (a *API) streamWatch(c *call, w *watcher, exact []*exactTopic, at places) error {
	epoch, err := a.hub.Epoch(c.Context())
	if err != nil {
		return err
	}
	s, ctx, done, err := a.stream(c)
	if err != nil {
		return err
	}
	defer done()
	feed := startFeed(ctx, func(ctx context.Context, put func(watchEvent) bool) error {
		return runAll(ctx, exact, put)
	}, func(ev watchEvent) int { return len(ev.data) })
	defer feed.stop()
	w.listen(feed.signal)
	s.Comment("a watch") // shows that comments, which keep the connection alive, arrive
	_ = s.json("", "hello", helloBody{Topic: "hello", Watch: w.id, Now: a.hub.Clock(), Epoch: epoch, KeepAlive: a.cfg.Limits.KeepAlive.Seconds()})
	err = s.Run(ctx, func() (<-chan struct{}, error) {
		ev, wake, err := feed.tryNext()
		if err != nil {
			return nil, err
		}
		if wake == nil {
			at[ev.topic] = ev.place
			s.Event(at.encode(), ev.name, ev.data)
			return nil, nil
		}
		name, data, err := w.next(ctx)
		if err != nil || name == "" {
			return wake, err
		}
		s.Event("", name, data)
		return nil, nil
	})
	if reason := byeReason(ctx, err); reason != "" {
		if data, err := encode(byeBody{Topic: "bye", Reason: reason}); err == nil {
			_ = s.Farewell("bye", data)
		}
	}
	return nil // the answer has begun, so an error cannot be sent
}

// byeReason returns the reason in the last event of a watch.
func byeReason(ctx context.Context, err error) string {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errDraining):
		return "draining"
	case errors.Is(cause, errRevoked) || errors.Is(err, errRevoked):
		return "revoked"
	case fault.CodeOf(err) == fault.SlowReader:
		return "slow"
	}
	return ""
}

type watchBody struct {
	Topics []string `json:"topics"`
}

// changeWatch replaces the conflated topics of a watch of the same caller.
func (a *API) changeWatch(c *call) error {
	var body watchBody
	if err := c.read(&body); err != nil {
		return err
	}
	var topics []topic
	if len(body.Topics) > 0 {
		var err error
		if topics, err = parseTopics(body.Topics); err != nil {
			return err
		}
	}
	for _, t := range topics {
		if t.exact() {
			return fault.New(fault.Invalid, "topic %s is exact: a watch keeps those it was opened with; open another", t.name())
		}
	}
	if err := a.watches.change(c, c.PathValue("id"), topics); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// withTopic puts the topic into an event's object.
func withTopic(topic string, object []byte) []byte {
	out, err := jsontext.AppendQuote([]byte(`{"topic":`), topic)
	if err != nil || len(object) < 2 {
		return object
	}
	if len(object) > 2 {
		out = append(out, ',')
	}
	return append(out, object[1:]...)
}
