package main

import (
	"context"
	"encoding/json"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

// hostile seeds what only agents can report: results of tasks, and why a turn failed.
func (s *seeder) hostile(ctx context.Context) (any, error) {
	const evil = "<img src=x onerror=alert(1)>\u202e"
	ids, err := s.agents(ctx, "cleo", "dan")
	if err != nil {
		return nil, err
	}
	talk, err := s.open(ctx, evil, "discussion", nil, ids...)
	if err != nil {
		return nil, err
	}
	said, err := s.say(ctx, talk, ids[0], evil)
	if err != nil {
		return nil, err
	}
	if err := s.hub.ReportTurnFailure(ctx, talk, ids[1], said, evil, evil); err != nil {
		return nil, err
	}
	object, err := json.Marshal(map[string]any{evil: evil, "__proto__": map[string]any{"polluted": 1}, "text": "[x](javascript:alert(1)) ![p](http://127.0.0.1:1/p.png)"})
	if err != nil {
		return nil, err
	}
	done := task.Task{
		ID: "task-1", Owner: ids[0], Channel: talk, State: task.Completed, Spec: task.Spec{Title: evil, Description: evil, Payload: object, Capability: evil}, Progress: object, Result: object,
	}
	failed := task.Task{ID: "task-2", Owner: ids[0], State: task.Failed, Spec: task.Spec{Title: evil}, Error: evil}
	for _, t := range []task.Task{done, failed} {
		if err := s.hub.ObserveTask(ctx, t, nil, hub.MirrorOff); err != nil {
			return nil, err
		}
	}
	return map[string]any{"channel_id": talk, "task_ids": []string{done.ID, failed.ID}}, nil
}
