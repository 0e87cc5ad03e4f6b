// Package expect measures whether a channel's participants do what is expected of
// them in time. It is pure: it reads no clock and changes nothing.
package expect

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Rule is one expectation of a list, decoded.
type Rule struct {
	channel.Expectation
	Within  time.Duration
	index   int            // in its list
	limit   jsontext.Value // params.seconds as it was written
	measure measure        // nil: no built-in measure has its name
}

// New decodes an expectation. If its name has no built-in measure, the rule
// measures nothing.
func New(x channel.Expectation, index int) (Rule, error) {
	r := Unmeasured(x, index)
	m, builtIn := measures[x.Name]
	if !builtIn {
		return r, nil
	}
	var err error
	r.measure = m.measure
	r.Within, r.limit, err = within(x, m.seconds)
	return r, err
}

// Unmeasured returns an expectation that a custom evaluator judges.
func Unmeasured(x channel.Expectation, index int) Rule { return Rule{Expectation: x, index: index} }

// Measured reports whether the rule has a built-in measure.
func (r *Rule) Measured() bool { return r.measure != nil }

// Replies reports whether the rule measures replies.
func (r *Rule) Replies() bool { return r.measure != nil && r.Name == "reply_within" }

// Awaited appends the participants that the rule waits for.
func (r *Rule) Awaited(s Situation, to []Wait) []Wait {
	if r.measure == nil {
		return to
	}
	return r.measure(s, r, to)
}

// within returns how long an expectation waits: params.seconds, any number.
func within(x channel.Expectation, standard int) (time.Duration, jsontext.Value, error) {
	var params struct {
		Seconds jsontext.Value `json:"seconds"`
	}
	if len(x.Params) > 0 {
		if err := json.Unmarshal(x.Params, &params, jsontext.AllowDuplicateNames(true)); err != nil {
			return 0, nil, fault.Wrap(fault.Invalid, err, "params of expectation %q are refused: %v", x.Name, err)
		}
	}
	text := params.Seconds
	if len(text) == 0 || text.Kind() == 'n' {
		text = jsontext.Value(strconv.Itoa(standard))
	}
	seconds, err := strconv.ParseFloat(string(text), 64)
	if text.Kind() != '0' || err != nil && seconds == 0 {
		return 0, nil, fault.New(fault.Invalid, "params.seconds of expectation %q is %s; a number of seconds is wanted", x.Name, text)
	}
	switch ns := seconds * float64(time.Second); {
	case ns <= 0:
		return 0, text, nil
	case ns >= math.MaxInt64:
		return math.MaxInt64, text, nil
	default:
		return time.Duration(ns), text, nil
	}
}

// Concerns reports whether the expectation applies to a participant.
func (r *Rule) Concerns(m *channel.Metadata, agent string) bool {
	if r.AppliesTo == nil || slices.Contains(r.AppliesTo, agent) {
		return true
	}
	p, ok := m.Participant(agent)
	return ok && slices.Contains(r.AppliesTo, string(p.Role))
}

// FiredKey returns the key of an expectation that fires at most once in a channel's
// life.
func (r *Rule) FiredKey(agent string) string {
	return strconv.Itoa(r.index) + "/" + r.Name + "/" + agent
}

// Detail returns a JSON object with how long the hub waited, and the limit.
func (r *Rule) Detail(violators []string, elapsed Instant) []byte {
	buf := &jsonbuf.Buffer{}
	buf.Open('{')
	if r.Name != "reply_within" { // each participant has its own waiting time
		buf.Key("elapsed_seconds").Value(seconds(elapsed))
	}
	buf.Key("threshold_seconds").Value(r.limit)
	if r.Name == "turn_within" {
		buf.Key("expected_speaker").String(violators[0])
	}
	buf.Close('}')
	return buf.Bytes
}

// seconds writes a span of time as a JSON number of seconds, exactly.
func seconds(i Instant) jsontext.Value {
	whole, rest := int64(i)/int64(time.Second), int64(i)%int64(time.Second)
	text := strconv.FormatInt(whole, 10)
	if rest != 0 {
		fraction := strconv.FormatInt(rest+int64(time.Second), 10)[1:]
		text += "." + strings.TrimRight(fraction, "0")
	}
	return jsontext.Value(text)
}
