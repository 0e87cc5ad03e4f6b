package agent

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view"
)

// maxExcerpt is how many characters of a found text are shown.
const maxExcerpt = 240

type contextArgs struct {
	Action  string `json:"action"`
	Query   string `json:"query"`
	Scope   string `json:"scope"`
	Speaker string `json:"speaker"`
	Recent  *int   `json:"recent_n"`
	Limit   *int   `json:"limit"`
	Channel string `json:"channel_id"`
}

func contextTool() *Tool {
	return NewTool("context", "Search what was said, or quote someone.", `{"type":"object",
"properties":{"action":{"enum":["search","quote"]},"query":{"type":["string","null"]},"scope":{"enum":["channel","knowledge"],"default":"channel"},
"speaker":{"type":["string","null"]},"recent_n":{"type":"integer","default":1},"limit":{"type":"integer","default":10},
"channel_id":{"type":["string","null"]}},"required":["action"]}`,
		func(ctx context.Context, call *Call, in contextArgs) (any, error) {
			switch in.Action {
			case "search":
				return search(ctx, call, in)
			case "quote":
				return quote(ctx, call, in)
			}
			return unknownAction(in.Action, "search", "quote")
		})
}

type said struct {
	envelope *envelope.Envelope
	text     string
}

// texts returns the texts of a channel that the caller may see. Packets are not
// among them.
func (c *Call) texts(ctx context.Context, channelID string) ([]said, error) {
	m, err := c.link().Channel(ctx, channelID)
	if err != nil {
		return nil, err
	}
	log, err := c.link().Log(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	var list []said
	for _, e := range log {
		if text, ok := (view.TextOnly{}).Render(e); ok && e.VisibleTo(c.link().Self().ID) {
			list = append(list, said{e, text})
		}
	}
	return list, nil
}

func search(ctx context.Context, call *Call, in contextArgs) (any, error) {
	type hit struct {
		ID      string `json:"envelope_id"`
		Sender  string `json:"sender_id"`
		When    string `json:"when"`
		Excerpt string `json:"excerpt"`
	}
	if in.Query == "" {
		return refusal("search requires `query`")
	}
	hits := []hit{}
	if in.Scope == "knowledge" {
		return hits, nil
	}
	id := call.current(in.Channel)
	if id == "" {
		return refusal("search scope=channel requires an active channel")
	}
	list, err := call.texts(ctx, id)
	if err != nil {
		return refusal("channel '%s' not found", id)
	}
	limit := 10
	if in.Limit != nil {
		limit = *in.Limit
	}
	query := strings.ToLower(in.Query)
	for _, s := range list {
		if len(hits) < limit && strings.Contains(strings.ToLower(s.text), query) {
			hits = append(hits, hit{s.envelope.ID, s.envelope.Sender, envelope.FormatTime(s.envelope.CreatedAt), excerpt(s.text)})
		}
	}
	return hits, nil
}

func excerpt(text string) string {
	if utf8.RuneCountInString(text) <= maxExcerpt {
		return text
	}
	return string([]rune(text)[:maxExcerpt-1]) + "…"
}

func quote(ctx context.Context, call *Call, in contextArgs) (any, error) {
	type quoted struct {
		ID   string `json:"envelope_id"`
		When string `json:"when"`
		Text string `json:"text"`
	}
	if in.Speaker == "" {
		return refusal("quote requires `speaker`")
	}
	id := call.current(in.Channel)
	if id == "" {
		return refusal("quote requires an active channel")
	}
	speaker, err := call.link().Peer(ctx, in.Speaker)
	if err != nil {
		return refusal("speaker '%s' not found", in.Speaker)
	}
	list, err := call.texts(ctx, id)
	if err != nil {
		return refusal("channel '%s' not found", id)
	}
	recent := 1
	if in.Recent != nil {
		recent = *in.Recent
	}
	quotes := []quoted{}
	for _, s := range slices.Backward(list) {
		if len(quotes) < recent && s.envelope.Sender == speaker.ID {
			quotes = append(quotes, quoted{s.envelope.ID, envelope.FormatTime(s.envelope.CreatedAt), s.text})
		}
	}
	slices.Reverse(quotes)
	return quotes, nil
}
