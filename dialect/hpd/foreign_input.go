package hpd

import (
	"net/http"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/message"
)

// Canonical is an input as a canonical message: what its messages say, in their
// order. What is not text is named.
func Canonical(in *wire.Input) message.Envelope {
	var lines []string
	for i := range in.Messages {
		for j := range in.Messages[i].Contents {
			if text := contentText(&in.Messages[i].Contents[j]); text != "" {
				lines = append(lines, text)
			}
		}
	}
	return message.Envelope{Type: message.TypeText, Role: message.RoleUser, Content: strings.Join(lines, "\n")}
}

func contentText(c *wire.Content) string {
	if c.Text != nil {
		return *c.Text
	}
	parts := []string{c.Type}
	for _, text := range []*string{c.MediaType, c.Name, c.URI} {
		if text != nil {
			parts = append(parts, *text)
		}
	}
	return channel.Attachment(parts...)
}

// postInput says an input in a channel of another dialect, as whoever the caller
// is. The run that it begins is shown, and not stored: its id is the envelope's.
func (f *foreign) postInput(c *call) error {
	s := f.server
	in, err := s.readInput(c)
	if err != nil {
		return err
	}
	by, err := s.actor(c.Context(), c.who)
	if err != nil {
		return err
	}
	saying := hub.Saying{
		Channel: f.meta.ID, Sender: by, Message: Canonical(in), Origin: envelope.Origin{Dialect: dialectName},
	}
	if id := deref(in.ClientInputID); id != "" {
		saying.Origin.ID = by + "/" + id // others may choose the same
	}
	p := s.hub.Say(c.Context(), saying, caller(c.who, by))
	id, err := p.Wait(c.Context())
	if err != nil {
		return f.explain(c, by, err)
	}
	s.location(c, "agents", c.agent, "sessions", f.meta.ID, c.surface.Segment(), wire.MainBranch, "runs", id)
	return c.write(http.StatusAccepted, wire.InputAccepted{RuntimeRunID: id, StartedAt: s.now()})
}

// explain makes conflicts of refusals that pass with time, and says whose turn it
// is.
func (f *foreign) explain(c *call, sender string, err error) error {
	switch fault.ReasonOf(err) {
	case fault.ChannelEnded:
		return c.refuse(http.StatusConflict, c.code, err.Error())
	case fault.OutOfTurn:
		text := err.Error()
		if turn, ok, lookErr := f.server.hub.Expected(c.Context(), f.meta.ID); lookErr == nil && ok && turn.Agent != "" && turn.Agent != sender {
			text += "; it is the turn of '" + f.name(turn.Agent) + "'"
		}
		return c.refuse(http.StatusConflict, wire.OutOfTurn, text)
	}
	return err
}
