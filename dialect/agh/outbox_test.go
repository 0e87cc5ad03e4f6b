package agh_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/fault"
)

// shaky is a broker that fails, and does not report a lost connection.
type shaky struct {
	*air
	mu                   sync.Mutex
	publishing, flushing []error // results of the next calls
}

func (s *shaky) take(list *[]error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(*list) == 0 {
		return nil
	}
	err := (*list)[0]
	*list = (*list)[1:]
	return err
}

func (s *shaky) fail(publishing, flushing []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishing, s.flushing = publishing, flushing
}

func (s *shaky) Publish(subject string, data []byte) error {
	if err := s.take(&s.publishing); err != nil {
		return err
	}
	return s.air.Publish(subject, data)
}

func (s *shaky) Flush(context.Context) error { return s.take(&s.flushing) }

func TestOutbox(t *testing.T) {
	t.Parallel()
	gone := errors.New("connection reset")
	check := func(name string, fn func(r *rig, b *shaky, crane *host)) {
		b := &shaky{air: newAir()}
		runs(t, name, agh.Config{Broker: b, GreetInterval: time.Hour}, func(r *rig) {
			crane := r.join("dock", "crane", "crane.s01")
			pass(time.Second)
			fn(r, b, crane)
		})
	}
	published := func(b *shaky) []string { return each(b.published("say"), "id") }

	check("what fails is tried again, in its order", func(r *rig, b *shaky, crane *host) {
		b.fail([]error{nil, gone, gone}, nil)
		var sent []string
		for i := range 5 {
			sent = append(sent, crane.say(fmt.Sprint(i), nil))
		}
		pass(2 * time.Second)
		r.Equal(published(b), sent)
	})
	check("what the broker may not have is published once more", func(r *rig, b *shaky, crane *host) {
		b.fail(nil, []error{gone})
		id := crane.say("once more", nil)
		pass(2 * time.Second)
		r.Equal(published(b), []string{id, id})
	})
	check("what can never be published is given up, and nothing waits for it", func(r *rig, b *shaky, crane *host) {
		b.fail([]error{fault.New(fault.TooLarge, "too large")}, nil)
		crane.say("large", nil)
		next := crane.say("small", nil)
		pass(2 * time.Second)
		r.Equal(published(b), []string{next})
		r.Equal(r.get("/agh/network/status")["network"].(obj)["messages_rejected"], any(1.0))
	})
	check("what is no longer fresh is given up", func(r *rig, b *shaky, crane *host) {
		b.fail(slices.Repeat([]error{gone}, 2000), nil)
		crane.say("late", obj{"expires_at": time.Now().Unix() + 10})
		pass(time.Minute)
		b.fail(nil, nil)
		fresh := crane.say("fresh", nil)
		pass(2 * time.Second)
		r.Equal(published(b), []string{fresh})
	})
	check("a flood of sends is published whole, in its order", func(r *rig, b *shaky, crane *host) {
		var sent []string
		for i := range 500 {
			sent = append(sent, crane.say(fmt.Sprint(i), nil))
		}
		pass(time.Second)
		r.Equal(published(b), sent)
	})
}
