package hub

import (
	"context"
	"iter"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Log reads a channel's history from one sequence to another, both included; 0
// is open. No visibility rule is applied: it is the whole log.
func (h *Hub) Log(ctx context.Context, channelID string, from, to uint64) iter.Seq2[*envelope.Envelope, error] {
	log := h.tenant.Channel(channelID).History()
	return func(yield func(*envelope.Envelope, error) bool) {
		for entry, err := range journal.Records(ctx, h.journal, log, journal.ReadOptions{From: from, To: to}) {
			var e *envelope.Envelope
			if err == nil {
				e, err = decodeEntry(entry)
			}
			if !yield(e, unavailable(err)) || err != nil {
				return
			}
		}
	}
}

// Length is how many envelopes a channel's history holds; an unknown channel
// holds none.
func (h *Hub) Length(ctx context.Context, channelID string) (uint64, error) {
	head, err := h.journal.Head(ctx, h.tenant.Channel(channelID).History())
	return head.Durable.Seq, unavailable(err)
}

// Position is where a channel's history ends now.
func (h *Hub) Position(ctx context.Context, channelID string) (journal.Position, error) {
	head, err := h.journal.Head(ctx, h.tenant.Channel(channelID).History())
	return head.Durable.Position(), unavailable(err)
}

// AnswerTo finds the last envelope by which a sender answered another in a
// channel that has not ended; nil if there is none.
func (h *Hub) AnswerTo(ctx context.Context, channelID, sender, cause string) (*envelope.Envelope, error) {
	if cause == "" {
		return nil, nil
	}
	m, err := h.Channel(ctx, channelID)
	if fault.CodeOf(err) == fault.NotFound || err == nil && m.State.Terminal() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k := schema.CauseKey(channelID, sender, cause)
	page, err := h.journal.Scan(ctx, h.shardOf(channelID), journal.ScanOptions{Prefix: k, Limits: journal.Limits{Entries: 1}})
	if err != nil {
		return nil, unavailable(err)
	}
	if len(page.Entries) == 0 {
		return nil, nil
	}
	return h.envelopeAt(ctx, channelID, schema.DecodeUint(page.Entries[0].Value))
}

// Turn is a turn that an identity has to take.
type Turn struct {
	Channel    string
	Trigger    string // the envelope to answer; empty before anyone has spoken
	ExpectedAt time.Time
}

// Turns lists the turns that are an identity's to take, by age of the channel.
func (h *Hub) Turns(ctx context.Context, agent string) ([]Turn, error) {
	var turns []Turn
	scan := journal.ScanOptions{Prefix: schema.Key(schema.IndexTurn, agent, "")}
	for entry, err := range journal.IndexAll(ctx, h.journal, scan) {
		if err != nil {
			return nil, unavailable(err)
		}
		turn, err := answer(ctx, h, schema.Listed(entry), func(ch *loadedChannel) (*Turn, error) {
			turn := h.turnOf(ch, agent)
			if turn != nil {
				ch.noteTurn(ch.meta, agent, turn.Trigger)
			}
			return turn, nil
		})
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		if turn != nil {
			turns = append(turns, *turn)
		}
	}
	return turns, nil
}

func (h *Hub) turnOf(ch *loadedChannel, agent string) *Turn {
	if ch.meta.State.Terminal() || ch.state == nil {
		return nil
	}
	expected, ok := ch.adapter.Expected(ch.meta, ch.state)
	if !ok || expected.Agent != agent {
		return nil
	}
	at := h.now().UTC()
	if expected.Trigger != "" && !ch.watch.Triggered.IsZero() {
		at = ch.watch.Triggered.Time()
	}
	return &Turn{Channel: ch.id, Trigger: expected.Trigger, ExpectedAt: at}
}

// Expected names who must speak next in a channel, if its adapter takes turns.
func (h *Hub) Expected(ctx context.Context, channelID string) (turn channel.Turn, ok bool, err error) {
	type result struct {
		turn channel.Turn
		ok   bool
	}
	r, err := answer(ctx, h, channelID, func(ch *loadedChannel) (result, error) {
		state, err := h.folded(ctx, ch)
		if err != nil {
			return result{}, err
		}
		turn, ok := ch.adapter.Expected(ch.meta, state)
		return result{turn, ok}, nil
	})
	return r.turn, r.ok, err
}
