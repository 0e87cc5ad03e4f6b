package agent

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// maxListed is how many channels are listed at once; maxLooked is how many are
// read at least to find them.
const (
	maxListed = 50
	maxLooked = 200 * maxListed
)

type channelsArgs struct {
	Action  string         `json:"action"`
	Type    string         `json:"type"`
	Target  texts          `json:"target"`
	Knobs   jsontext.Value `json:"knobs"`
	Intent  string         `json:"intent"`
	TTL     jsontext.Value `json:"ttl"`
	Message string         `json:"message"`
	Channel string         `json:"channel_id"`
	State   string         `json:"state"`
}

// texts is one text or a list of them.
type texts []string

// UnmarshalJSONFrom reads either form.
func (t *texts) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '"':
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		*t = texts{token.String()}
		return nil
	case '[':
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		for dec.PeekKind() == '"' {
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			*t = append(*t, token.String())
		}
		if token, err := dec.ReadToken(); err != nil || token.Kind() != ']' {
			return errors.Join(err, errors.New("a list of names holds only texts"))
		}
		return nil
	}
	value, err := dec.ReadValue()
	if err == nil && value.Kind() != 'n' {
		err = errors.New("a name or a list of names is wanted")
	}
	return err
}

func channelsTool() *Tool {
	return NewTool("channels", "List, open, inspect and close your conversations.", `{"type":"object",
"properties":{"action":{"enum":["list","open","info","close"]},"type":{"type":["string","null"],"description":"consulting, conversation, discussion or workflow"},
"target":{"type":["string","array","null"],"items":{"type":"string"},"description":"names of those to invite"},"knobs":{"type":["object","null"]},
"intent":{"type":["string","null"]},"ttl":{"type":["string","integer","null"]},"message":{"type":["string","null"],"description":"a first message"},
"channel_id":{"type":["string","null"]},"state":{"enum":["active","all"],"default":"active"}},"required":["action"]}`,
		func(ctx context.Context, call *Call, in channelsArgs) (any, error) {
			switch in.Action {
			case "list":
				return listChannels(ctx, call.link(), in)
			case "open":
				return openChannel(ctx, call, in)
			case "info":
				return channelInfo(ctx, call, in)
			case "close":
				return closeChannel(ctx, call, in)
			}
			return unknownAction(in.Action, "list", "open", "info", "close")
		})
}

type listedChannel struct {
	ID           string   `json:"channel_id"`
	Type         string   `json:"type"`
	State        string   `json:"state"`
	Participants []string `json:"participants"`
}

func listChannels(ctx context.Context, link Link, in channelsArgs) (any, error) {
	listed := []listedChannel{}
	// A link lists from the oldest on and cannot leave out ended channels, so
	// the limit grows until enough are found.
	for limit := 4 * maxListed; ; limit *= 4 {
		all, err := link.ListChannels(ctx, limit)
		if err != nil && len(listed) == 0 {
			return refusal("list failed: %v", err)
		}
		if err != nil {
			return listed, nil // more than the link can bring at once
		}
		listed = listed[:0]
		for _, m := range all {
			if in.State != "all" && m.State.Terminal() || len(listed) == maxListed {
				continue
			}
			listed = append(listed, listedChannel{m.ID, m.Manifest.Type, m.State.String(), m.IDs()})
		}
		if len(listed) == maxListed || len(all) < limit || limit >= maxLooked {
			return listed, nil
		}
	}
}

func openChannel(ctx context.Context, call *Call, in channelsArgs) (any, error) {
	if in.Type == "" || len(in.Target) == 0 {
		return refusal("open requires `type` and `target`")
	}
	link := call.link()
	ids, unknown := resolve(ctx, link, in.Target)
	if unknown != "" {
		return refusal("open failed: peer '%s' not found", unknown)
	}
	o := Opening{Type: in.Type, Participants: ids, Intent: in.Intent, TTL: unquoted(in.TTL)}
	if in.Knobs.Kind() == '{' {
		o.Knobs = in.Knobs
	}
	m, err := link.OpenChannel(ctx, o)
	if err != nil {
		return refusal("open failed: %v", err)
	}
	opened := struct {
		ID           string   `json:"channel_id"`
		Type         string   `json:"type"`
		Participants []string `json:"participants"`
		Seed         string   `json:"seed_envelope_id,omitempty"`
	}{ID: m.ID, Type: m.Manifest.Type, Participants: m.IDs()}
	if in.Message == "" {
		return opened, nil
	}
	if opened.Seed, err = seed(ctx, call, m, in.Message); err != nil {
		_, _ = link.CloseChannel(ctx, m.ID, "seed_failed") // the failure is reported below
		return refusal("seed send failed: %v", err)
	}
	return opened, nil
}

func seed(ctx context.Context, call *Call, m *channel.Metadata, text string) (string, error) {
	governs, err := call.Turn.Agent.adapterOf(m)
	if err != nil {
		return "", err
	}
	e, err := turn.For(governs).BuildText(m.ID, call.link().Self().ID, text, turn.Address{})
	if err != nil {
		return "", err
	}
	return call.link().Post(ctx, e)
}

func channelInfo(ctx context.Context, call *Call, in channelsArgs) (any, error) {
	id := call.current(in.Channel)
	if id == "" {
		return refusal("info requires `channel_id`")
	}
	m, err := call.link().Channel(ctx, id)
	if fault.CodeOf(err) == fault.AccessDenied || err == nil && !m.Has(call.link().Self().ID) {
		return refusal("not a participant of channel '%s'", id)
	}
	if err != nil {
		return refusal("channel '%s' not found: %v", id, err)
	}
	type participant struct {
		Agent string `json:"agent_id"`
		Role  string `json:"role"`
		Order int    `json:"order"`
	}
	type expectation struct {
		Name        string         `json:"name"`
		OnViolation string         `json:"on_violation"`
		Params      jsontext.Value `json:"params"`
	}
	info := struct {
		ID           string            `json:"channel_id"`
		Type         string            `json:"type"`
		Version      int               `json:"version"`
		State        string            `json:"state"`
		Creator      string            `json:"creator_id"`
		Participants []participant     `json:"participants"`
		Knobs        jsontext.Value    `json:"knobs"`
		Labels       map[string]string `json:"labels"`
		Expectations []expectation     `json:"expectations"`
		CreatedAt    *string           `json:"created_at"`
		ExpiresAt    *string           `json:"expires_at"`
		ClosedAt     *string           `json:"closed_at"`
		CloseReason  string            `json:"close_reason"`
	}{
		ID: m.ID, Type: m.Manifest.Type, Version: m.Manifest.Version, State: m.State.String(), Creator: m.Creator,
		Participants: []participant{}, Knobs: object(m.Knobs), Labels: m.Labels, Expectations: []expectation{},
		CreatedAt: instant(m.CreatedAt), ExpiresAt: instant(m.ExpiresAt), ClosedAt: instant(m.ClosedAt), CloseReason: m.CloseReason,
	}
	if info.Labels == nil {
		info.Labels = map[string]string{}
	}
	for _, p := range m.Participants {
		info.Participants = append(info.Participants, participant{p.Agent, string(p.Role), p.Order})
	}
	expectations, err := m.Expectations()
	if err != nil {
		return refusal("the expectations of channel %s cannot be read: %v", m.ID, err)
	}
	for _, x := range expectations {
		info.Expectations = append(info.Expectations, expectation{x.Name, x.OnViolation, object(x.Params)})
	}
	return info, nil
}

func closeChannel(ctx context.Context, call *Call, in channelsArgs) (any, error) {
	id := call.current(in.Channel)
	if id == "" {
		return refusal("close requires `channel_id`")
	}
	m, err := call.link().CloseChannel(ctx, id, "closed_by_agent")
	if err != nil {
		return refusal("close failed: %v", err)
	}
	return struct {
		ID     string `json:"channel_id"`
		State  string `json:"state"`
		Reason string `json:"close_reason"`
	}{m.ID, m.State.String(), m.CloseReason}, nil
}

// unquoted returns a JSON text or number as plain text; null and nothing are empty.
func unquoted(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, v) // it was decoded, so it is valid
		return string(text)
	case '0':
		return string(v)
	}
	return ""
}

func object(raw []byte) jsontext.Value {
	if len(raw) == 0 {
		return jsontext.Value("{}")
	}
	return raw
}

func instant(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := envelope.FormatTime(t)
	return &text
}
