package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/task"
)

// nothingDue leaves out what a channel's type expects: a test that takes minutes on a
// slow machine would find more events than were seeded.
var nothingDue = []any{}

// long seeds one discussion of many events.
func (s *seeder) long(ctx context.Context) (any, error) {
	ids, err := s.agents(ctx, "ada", "bob")
	if err != nil {
		return nil, err
	}
	channel, err := s.open(ctx, "Long", "discussion", []byte(`{"expectations":[]}`), ids...)
	if err != nil {
		return nil, err
	}
	for from := 0; from < s.count; from += hub.MaxAdmitAll {
		var list []*envelope.Envelope
		for n := from; n < min(from+hub.MaxAdmitAll, s.count); n++ {
			// A note is no turn, so nobody has to be waited for.
			list = append(list, &envelope.Envelope{Channel: channel, Sender: ids[0], Type: "app.note", Data: fmt.Appendf(nil, `{"text":"line %d"}`, n)})
		}
		if _, err := s.hub.AdmitAll(ctx, list, nil).Wait(ctx); err != nil {
			return nil, err
		}
	}
	head, err := s.hub.Position(ctx, channel)
	return map[string]any{"channel_id": channel, "length": head.Seq}, err
}

// tasks seeds many tasks of ada, of which each third has failed and the second
// was cancelled.
func (s *seeder) tasks(ctx context.Context) (any, error) {
	ids, err := s.agents(ctx, "ada", "bob")
	if err != nil {
		return nil, err
	}
	for n := range s.count {
		state := task.Running
		switch {
		case n == 1:
			state = task.Cancelled
		case n%3 == 0:
			state = task.Failed
		}
		t := task.Task{ID: fmt.Sprintf("task-%06d", n), Owner: ids[0], State: state, Spec: task.Spec{Title: fmt.Sprint("Task ", n)}}
		if err := s.hub.ObserveTask(ctx, t, nil, hub.MirrorOff); err != nil {
			return nil, err
		}
	}
	return map[string]any{"tasks": s.count}, nil
}

// channels seeds many open channels.
func (s *seeder) channels(ctx context.Context) (any, error) {
	ids, err := s.agents(ctx, "ada", "bob")
	if err != nil {
		return nil, err
	}
	hana, err := s.agent(ctx, "hana", identity.Human)
	if err != nil {
		return nil, err
	}
	const atOnce = 32
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for worker := range atOnce {
		all.Go(func() {
			for n := worker; n < s.count && errs[worker] == nil; n += atOnce {
				// Nothing is due while a test runs, however slow the machine is: a hub that
				// notes thousands of late turns is no measure of its lists.
				with, knobs := ids[1], []byte(`{"expectations":[]}`)
				if n%8 == 0 {
					with = hana
				}
				kind := "discussion"
				if n%4 == 0 { // its turn is due
					kind = "workflow"
					knobs = fmt.Appendf(nil, `{"graph":{"initial_speaker":%q,"transitions":[],"default_target":{"name":"round_robin","args":{}}},"expectations":[{"name":"turn_within","params":{"seconds":%d},"on_violation":"audit"}]}`, with, 7200+n)
				}
				_, errs[worker] = s.open(ctx, fmt.Sprint("Talk ", n), kind, knobs, ids[0], with)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return map[string]any{"channels": s.count}, nil
}
