// Package replay folds a recorded conversation again and reports where an
// adapter now behaves differently. It is pure: it reads envelopes and asks
// adapters.
package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/bundle"
)

// Difference is where behaviour differs.
type Difference struct {
	Sequence uint64 `json:"sequence"` // 0: the channel as a whole
	Says     string `json:"says"`
}

// Made reports whether the hub itself wrote an envelope: adapters do not judge those.
type Made func(*envelope.Envelope) bool

// Fold folds the history of one channel.
type Fold struct {
	adapter channel.Adapter
	meta    channel.Metadata
	state   channel.State
	made    Made
}

// New begins a fold, as if the channel had just been opened.
func New(a channel.Adapter, m *channel.Metadata, made Made) (*Fold, error) {
	f := &Fold{adapter: a, meta: *m, made: made}
	f.meta.State = channel.Active // as it was when they were sent
	var err error
	if f.state, err = a.Initial(&f.meta); err != nil {
		return nil, fmt.Errorf("the channel would not be opened: %w", err)
	}
	return f, nil
}

// Step is the result of one envelope.
type Step struct {
	Sent     bool   // by somebody, and not made by the hub
	Refused  string // why it would be refused; empty: it would not
	Expected string // who is to speak next
	Ends     string // the reason with which the channel would end; empty: it continues
}

// Next folds one envelope.
func (f *Fold) Next(e *envelope.Envelope) Step {
	e.Channel = f.meta.ID
	step := Step{Sent: !f.made(e) && !envelope.IsProtocol(e.Type)}
	if step.Sent {
		if err := f.adapter.ValidateSend(&f.meta, f.state, e); err != nil && !f.supervised(e) {
			step.Refused = err.Error()
		}
	}
	f.state = f.adapter.Fold(f.state, e)
	if step.Sent {
		if after := f.adapter.OnAccepted(&f.meta, f.state, e); after.Next == channel.Closing || after.Next.Terminal() {
			step.Ends = cmp.Or(after.Reason, "adapter_ended")
		}
	}
	step.Expected = f.Expected()
	return step
}

// Beside folds an envelope that is kept beside the history.
func (f *Fold) Beside(e *envelope.Envelope) {
	e.Channel = f.meta.ID
	if folder, ok := f.adapter.(channel.SideFolder); ok {
		f.state = folder.FoldSide(f.state, e)
	}
}

func (f *Fold) supervised(e *envelope.Envelope) bool {
	by, ok := f.adapter.(channel.Supervised)
	return ok && by.Supervisor(&f.meta, f.state, e.Sender)
}

// Expected returns who is to speak next.
func (f *Fold) Expected() string {
	turn, _ := f.adapter.Expected(&f.meta, f.state)
	return turn.Agent
}

// State returns what the envelopes folded to.
func (f *Fold) State() (jsontext.Value, error) { return f.adapter.Codec().Encode(f.state) }

// Outcome is what was recorded at the end of a channel.
type Outcome struct {
	State    jsontext.Value // folded; empty: it is not compared
	Expected string
}

// Compare folds a channel and compares the result with the record. It calls
// recorded after all envelopes were read.
func Compare(a channel.Adapter, m *channel.Metadata, envelopes iter.Seq2[bundle.Entry, error], recorded func() Outcome, made Made) ([]Difference, error) {
	fold, err := New(a, m, made)
	if err != nil {
		return nil, err
	}
	var found list
	ended, reason := uint64(0), ""
	for e, err := range envelopes {
		if err != nil {
			return nil, err
		}
		if e.Side {
			fold.Beside(e.Envelope)
			continue
		}
		step := fold.Next(e.Envelope)
		if step.Refused != "" {
			found.add(e.Seq, "what %s sent was accepted, and would be refused: %s", e.Sender, step.Refused)
		}
		if ended != 0 && step.Sent {
			found.add(e.Seq, "the channel went on, and would have ended at %d with %q", ended, reason)
			ended = 0
		}
		if step.Ends != "" {
			ended, reason = e.Seq, step.Ends
		}
	}
	if ended != 0 && m.State.Terminal() && m.CloseReason != reason {
		found.add(ended, "the channel ended with %q, and would end with %q", m.CloseReason, reason)
	}
	was := recorded()
	if now := fold.Expected(); now != was.Expected {
		found.add(0, "at the end %s was to speak, and now it would be %s", someone(was.Expected), someone(now))
	}
	if len(was.State) == 0 {
		return found, nil
	}
	now, err := fold.State()
	if err != nil {
		return nil, fmt.Errorf("the folded state cannot be written: %w", err)
	}
	if !sameJSON(now, was.State) {
		found.add(0, "the folded state was %s, and would be %s", was.State, now)
	}
	return found, nil
}

// CompareKnobs folds a channel with its own knobs and with others, and
// compares the results of each envelope.
func CompareKnobs(a channel.Adapter, m *channel.Metadata, knobs []byte, envelopes iter.Seq2[bundle.Entry, error], made Made) ([]Difference, error) {
	with := *m
	with.Knobs = knobs
	before, err := New(a, m, made)
	if err != nil {
		return nil, err
	}
	after, err := New(a, &with, made)
	if err != nil {
		return nil, err
	}
	var found list
	for e, err := range envelopes {
		if err != nil {
			return nil, err
		}
		if e.Side {
			before.Beside(e.Envelope)
			after.Beside(e.Envelope)
			continue
		}
		was, now := before.Next(e.Envelope), after.Next(e.Envelope)
		switch {
		case now.Refused != was.Refused && now.Refused != "":
			found.add(e.Seq, "what %s sent would be refused: %s", e.Sender, now.Refused)
		case now.Refused != was.Refused:
			found.add(e.Seq, "what %s sent would no longer be refused", e.Sender)
		case now.Ends != was.Ends && now.Ends != "":
			found.add(e.Seq, "the channel would end with %q", now.Ends)
		case now.Ends != was.Ends:
			found.add(e.Seq, "the channel ended with %q, and would go on with %s", was.Ends, someone(now.Expected))
		case now.Expected != was.Expected:
			found.add(e.Seq, "%s was to speak next, and now it would be %s", someone(was.Expected), someone(now.Expected))
		}
	}
	return found, nil
}

// maxFound is how many differences are reported: an early one usually causes all
// later ones.
const maxFound = 1000

type list []Difference

func (l *list) add(seq uint64, format string, args ...any) {
	if len(*l) < maxFound {
		*l = append(*l, Difference{seq, fmt.Sprintf(format, args...)})
	}
}

func someone(agent string) string { return cmp.Or(agent, "nobody") }

func sameJSON(a, b jsontext.Value) bool {
	a, b = a.Clone(), b.Clone()
	return a.Canonicalize() == nil && b.Canonicalize() == nil && bytes.Equal(a, b)
}
