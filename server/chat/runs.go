package chat

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	adapter "github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message"
	messages "github.com/parley-hub/parley/message/chat"
	"github.com/parley-hub/parley/message/result"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

// keepTimeout bounds how long the end of a run waits for the disk.
const keepTimeout = 30 * time.Second

// run executes one run, from its claim to its end.
func (s *Service) run(channelID string, r Request, live *running) {
	ctx, cancel := context.WithTimeoutCause(context.WithValue(s.ctx, runOf{}, r.Run), s.cfg.Timeout,
		fault.New(fault.Unavailable, "no answer came within %v (chat.timeout)", s.cfg.Timeout))
	defer cancel()
	claims := &claims{service: s, channel: channelID, request: r, live: live}
	defer claims.settled()
	input, err := r.input()
	if err != nil {
		live.err = err
		return
	}
	said := value.MapOrEmpty(input).Clone().Set("agent", r.Agent).Set("session_id", r.Session).Set("run_id", r.Run).
		Set("workspace", r.Scope.Canonical())
	output, err := messages.Dispatcher{
		Runners: []messages.Runner{func(ctx context.Context, turn messages.Turn) (any, error) { return s.answer(ctx, claims, turn) }},
		Runs:    claims, Store: s.store,
	}.Chat(ctx, r.Principal, said)
	switch {
	case err != nil && live.err == nil:
		live.err = err
	case err == nil && live.answer == nil && !s.stopping(): // not run: another writer has the session
		live.answer, live.err = encodeAnswer(output)
	}
}

// claims keep one run in its session's log.
type claims struct {
	service *Service
	channel string
	request Request
	live    *running
	talk    int // conversations used up
	once    sync.Once
}

var (
	_ messages.Claims  = (*claims)(nil)
	_ messages.Settler = (*claims)(nil)
)

// settled wakes those who wait until the run is claimed, or was refused.
func (c *claims) settled() { c.once.Do(func() { close(c.live.begun) }) }

// Claim writes that the run begins. A run that began before a restart is
// resumed.
func (c *claims) Claim(ctx context.Context, id, _ string, _ transcript.Owner) error {
	defer c.settled()
	data, err := adapter.Encode(adapter.Started{Run: id, Agent: c.request.Agent, Input: c.request.Input})
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the request cannot be written: %v", err)
	}
	m, err := c.service.hub.Channel(ctx, c.channel)
	if err != nil {
		return err
	}
	e := record(m.Creator, adapter.TypeStarted, data, "run/"+id)
	e.Channel = c.channel
	p := c.service.hub.Admit(ctx, e, nil)
	if _, err := p.Wait(ctx); err != nil {
		c.live.err = err
		return err
	}
	if p.Channel() != c.channel {
		return &messages.Error{Code: messages.CodeRunForbidden, Text: "the run id belongs to another session"}
	}
	c.live.began = p.Seq()
	return nil
}

// Bind has nothing to do: the claim names the session.
func (*claims) Bind(context.Context, string, string) error { return nil }

// Abandon ends a run that did not execute.
func (c *claims) Abandon(ctx context.Context, id string) error {
	return c.Finish(ctx, id, messages.StatusContention)
}

// Finish ends a run that changed nothing.
func (c *claims) Finish(ctx context.Context, id, status string) error {
	if c.service.stopping() {
		return nil // the next process resumes it
	}
	output := value.New().Set("session_id", c.request.Session).Set("reply", "").Set("run_id", id).
		Set("completed", false).Set("status", status)
	ended, answer, err := c.end(id, status, output)
	if err != nil {
		return err
	}
	m, err := c.service.hub.Channel(ctx, c.channel)
	if err != nil {
		return err
	}
	e := record(m.Creator, adapter.TypeEnded, ended, "")
	e.Channel = c.channel
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	if _, err := c.service.hub.Post(ctx, e, nil); err != nil {
		return err
	}
	c.live.answer = answer
	return nil
}

// Settle writes the messages of a run, and its end, as one batch.
func (c *claims) Settle(ctx context.Context, id, sessionID string, update transcript.Update, status string, output *value.Map) error {
	if c.service.stopping() {
		return fault.New(fault.Unavailable, "the hub is shutting down")
	}
	rows, err := transcript.Rows(update.Messages)
	if err != nil {
		return err
	}
	details, err := detailsOf(update)
	if err != nil {
		return err
	}
	ended, answer, err := c.end(id, status, output)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	kept, err := c.service.store.replace(ctx, sessionID, rows, details, id, record("", adapter.TypeEnded, ended, ""))
	if err == nil && !kept {
		err = fault.New(fault.NotFound, "the session was deleted")
	}
	if err != nil {
		return err
	}
	c.live.answer = answer
	return nil
}

// end returns the record of the run's end, with the answer to its client.
func (c *claims) end(id, status string, output *value.Map) (record []byte, answer jsontext.Value, err error) {
	if answer, err = encodeAnswer(output); err != nil {
		return nil, nil, err
	}
	record, err = adapter.Encode(adapter.Ended{Run: id, Status: status, Answer: answer, Began: c.live.began, Talk: c.talk})
	return record, answer, err
}

// encodeAnswer writes the answer to a client, without the whole conversation,
// which is in its session.
func encodeAnswer(output *value.Map) (jsontext.Value, error) {
	shown := value.New()
	for key, v := range output.All() {
		if key != "messages" {
			shown.Set(key, v)
		}
	}
	return value.Append(nil, shown)
}

// place finds a run in the home of a session.
func (s *Service) place(ctx context.Context, channelID, runID string) (runPlace, bool, error) {
	page, err := s.hub.Entries(ctx, hub.EntryQuery{Type: adapter.Type, Home: hub.HomeOf(channelID), Prefix: adapter.IndexRun + runID, Limit: 1})
	if err != nil || len(page.Entries) == 0 || page.Entries[0].Key != adapter.IndexRun+runID {
		return runPlace{}, false, err
	}
	place := runPlace{channel: page.Entries[0].Channel}
	if err := json.Unmarshal(page.Entries[0].Value, &place.RunPlace); err != nil {
		return runPlace{}, false, fault.Wrap(fault.Internal, err, "run %.100q cannot be read: %v", runID, err)
	}
	return place, true, nil
}

// answerOf reads the answer to the client of a run that has ended.
func (s *Service) answerOf(ctx context.Context, channelID, runID string) (jsontext.Value, error) {
	place, ok, err := s.place(ctx, channelID, runID)
	if err != nil || !ok || place.Ended == 0 {
		return nil, errors.Join(err, fault.New(fault.NotFound, "run %.100q has not ended", runID))
	}
	for e, err := range s.hub.Log(ctx, channelID, place.Ended, place.Ended) {
		if err != nil {
			return nil, err
		}
		var ended adapter.Ended
		if err := json.Unmarshal(e.Data, &ended); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the end of run %.100q cannot be read: %v", runID, err)
		}
		return ended.Answer, nil
	}
	return nil, fault.New(fault.NotFound, "run %.100q is gone", runID)
}

// Resume resumes the runs that an earlier process left.
func (s *Service) Resume(ctx context.Context) error {
	after := ""
	for {
		page, err := s.hub.Entries(ctx, hub.EntryQuery{Type: adapter.Type, Kind: adapter.Dialect, Prefix: adapter.IndexOpen, After: after, Limit: 100})
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			if err := s.resume(ctx, e.Channel); err != nil {
				s.cfg.Log.Warn("a chat run was not taken up", "channel_id", e.Channel, "error", err)
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

func (s *Service) resume(ctx context.Context, channelID string) error {
	session, err := s.store.read(ctx, channelID, false)
	if err != nil {
		return err
	}
	state, err := s.store.state(ctx, channelID)
	if err != nil || state.Run == nil {
		return err
	}
	for e, err := range s.hub.Log(ctx, channelID, state.Run.Seq, state.Run.Seq) {
		if err != nil {
			return err
		}
		var started adapter.Started
		if err := json.Unmarshal(e.Data, &started); err != nil {
			return err
		}
		_, err := s.begin(channelID, Request{
			Principal: transcript.Principal{OwnerType: session.Owner.Type, OwnerKey: session.Owner.Key}, Scope: session.Scope,
			Agent: started.Agent, Session: session.ID, Run: started.Run, Input: started.Input,
		})
		return err
	}
	return nil
}

// refusal gives a dispatcher's error a code of the catalogue.
func refusal(err error) error {
	var coded *fault.Error
	var own *messages.Error
	if err == nil || errors.As(err, &coded) || !errors.As(err, &own) {
		return err
	}
	switch own.Status() {
	case 400:
		return fault.Wrap(fault.Invalid, err, "%s", own.Text)
	case 403:
		return fault.Wrap(fault.AccessDenied, err, "%s", own.Text)
	case 409:
		return fault.Wrap(fault.Conflict, err, "%s", own.Text)
	case 429:
		return fault.Wrap(fault.Unavailable, err, "%s", own.Text)
	}
	return fault.Wrap(fault.Internal, err, "%s", own.Text)
}

// assistant returns the answer of a turn: the conversation and what was said to it.
func assistant(turn messages.Turn, text string, metadata *value.Map) (any, error) {
	e, err := message.Text(message.RoleAssistant, text, metadata)
	if err != nil {
		return nil, err
	}
	return value.New().Set("messages", append(value.List(turn.Messages), e.Canonical())).Set("status", result.StatusCompleted).Set("completed", true), nil
}
