package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/sse"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/server/chat"
)

// chatScope is the workspace of every session: a hub has only one.
var chatScope = transcript.Scope{Type: "hub", ID: "default"}

// chatBody is a message for a session.
type chatBody struct {
	As            string         `json:"as"`
	Agent         string         `json:"agent"`
	Message       string         `json:"message"`
	SessionID     string         `json:"session_id"`
	RunID         string         `json:"run_id"`
	InputMessages jsontext.Value `json:"input_messages"`
}

// chats returns the chat service, or a refusal if there is none.
func (a *API) chats() (*chat.Service, error) {
	if a.cfg.Chat == nil {
		return nil, fault.New(fault.Unavailable, "this hub runs no chats")
	}
	return a.cfg.Chat, nil
}

// chatter returns the owner of the sessions that a request is about. With an agent's
// key that is the agent; for an operator, the identity that the request names or the
// one of the setting chat.user.
func (a *API) chatter(c *call, as string) (transcript.Principal, error) {
	id, err := "", error(nil)
	if as == "" && c.who.Agent == "" && a.cfg.ChatUser != nil {
		id, err = a.cfg.ChatUser(c.Context())
	} else {
		id, err = a.actor(c, "as", as)
	}
	return transcript.Principal{OwnerType: "agent", OwnerKey: id}, err
}

func (a *API) say(c *call) error {
	service, err := a.chats()
	if err != nil {
		return err
	}
	var body chatBody
	if err := c.read(&body); err != nil {
		return err
	}
	run, err := c.key("run_id", body.RunID)
	if err != nil {
		return err
	}
	if run == "" {
		run = "run_" + envelope.NewID()
	}
	if len(run) > maxRunID || strings.ContainsFunc(run, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fault.New(fault.Invalid, "a run's id has 1 to %d printable characters of ASCII without spaces", maxRunID)
	}
	who, err := a.chatter(c, body.As)
	if err != nil {
		return err
	}
	input := map[string]any{"message": body.Message}
	typed := unlessNull(body.InputMessages)
	if len(typed) > 0 {
		if kind := typed.Kind(); kind != '[' && kind != '{' {
			return fault.New(fault.Invalid, "input_messages is a list of tool calls and their results")
		}
		input["input_messages"] = typed
	}
	data, err := json.Marshal(input)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "message is not text: %v", err)
	}
	if value.Trim(body.Message) == "" && len(typed) == 0 {
		return fault.New(fault.Invalid, "message is empty; say something")
	}
	begun, err := service.Start(c.Context(), chat.Request{
		Principal: who, Scope: chatScope, Agent: body.Agent, Session: body.SessionID, Run: run, Input: data,
	})
	if err != nil {
		return err
	}
	follow, err := c.wantsStream()
	if err != nil {
		return err
	}
	if follow {
		return a.streamSession(c, begun.Channel, begun.ID, begun.Began)
	}
	answer, err := begun.Wait(c.Context())
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, answer)
}

const maxRunID = 200

// errRunEnded ends the stream of a run.
var errRunEnded = errors.New("api: the run has ended")

func (a *API) chatEvents(c *call) error {
	m, err := a.chatChannel(c)
	if err != nil {
		return err
	}
	return a.streamSession(c, m, "", 0)
}

// chatChannel returns the channel of the session in the path, if the caller may see
// it.
func (a *API) chatChannel(c *call) (string, error) {
	service, err := a.chats()
	if err != nil {
		return "", err
	}
	id, err := service.ChannelOf(c.Context(), c.PathValue("id"))
	if err != nil {
		return "", err
	}
	none := fault.New(fault.NotFound, "there is no session %.100q of yours", c.PathValue("id"))
	if id == "" {
		return "", none
	}
	if _, err := a.as(c).Channel(c.Context(), id); err != nil {
		if code := fault.CodeOf(err); code == fault.AccessDenied || code == fault.NotFound {
			return "", none
		}
		return "", err
	}
	return id, nil
}

// streamSession streams a session's events: all of them, or those of a run. The id of
// a stored event is its position, so that a reader who reconnects misses none and
// sees none twice; text that is being written is live.
func (a *API) streamSession(c *call, channelID, run string, began uint64) error {
	after, err := a.sessionPosition(c, channelID, began)
	if err != nil {
		return err
	}
	f, err := a.hub.Follow(c.Context(), channelID, hub.FollowOptions{After: after})
	if err != nil {
		return err
	}
	defer f.Close()
	s, ctx, done, err := a.stream(c)
	if err != nil {
		return err
	}
	defer done()
	_ = s.Run(ctx, func() (<-chan struct{}, error) {
		return c.answer.Step(s.Buffered(), func() (read int, wake <-chan struct{}, err error) {
			ev, wake, err := f.TryNext(ctx)
			if err != nil || wake != nil {
				return 0, wake, err
			}
			frame := chatFrame(ev)
			s.Append(frame)
			if run != "" && chat.Ends(ev, run) {
				return len(frame), nil, errRunEnded
			}
			return len(frame), nil, nil
		})
	})
	return nil // the answer has begun, so an error cannot be sent
}

// sessionPosition returns where a stream begins: at the reader's position, or before
// the run.
func (a *API) sessionPosition(c *call, channelID string, began uint64) (journal.Position, error) {
	if text := c.resume(); text != "" {
		after, err := journal.ParsePosition(text)
		if err != nil {
			return after, fault.Wrap(fault.Invalid, err, "%v", err)
		}
		return after, nil
	}
	if began <= 1 {
		return journal.Position{}, nil
	}
	at, err := a.hub.Position(c.Context(), channelID)
	at.Seq = began - 1
	return at, err
}

func chatFrame(ev hub.Event) []byte {
	name, ok := chat.EventName(ev)
	if !ok {
		return nil
	}
	position := ""
	if !ev.Live {
		position = ev.Position.String()
	}
	return sse.AppendEvent(nil, position, name, ev.Envelope.Data)
}
