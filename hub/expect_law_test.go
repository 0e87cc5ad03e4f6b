package hub_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/envelope"
)

// judge evaluates expectations as the specification words them: it checks
// everything, at every tick, from the whole log.
type judge struct {
	silence, reply, turn time.Duration
	fired                map[string]bool
}

// tick returns what fires now in a channel, in order.
func (j *judge) tick(r *rig, ch string) (fired []string) {
	m, now := r.channel(ch), time.Now()
	content := m.CreatedAt
	inbound, own := map[string]time.Time{}, map[string]time.Time{}
	var trigger time.Time
	for _, e := range r.log(ch) {
		if envelope.IsContent(e.Type) {
			content = e.CreatedAt
		}
		if e.Type != envelope.TypeText {
			continue
		}
		trigger = e.CreatedAt
		for _, p := range m.Participants {
			if p.Agent == e.Sender {
				own[p.Agent] = e.CreatedAt
			} else if e.VisibleTo(p.Agent) {
				inbound[p.Agent] = e.CreatedAt
			}
		}
	}
	fire := func(index int, name string, violators []string) {
		for _, agent := range violators {
			if key := fmt.Sprint(index, ch, agent); !j.fired[key] {
				j.fired[key] = true
				listed := violators
				if agent == "" {
					listed = nil
				}
				fired = append(fired, fmt.Sprint(ch, " ", name, " ", listed))
			}
		}
	}
	if now.Sub(content) >= j.silence {
		fire(0, "max_silence", []string{""})
	}
	var silent []string
	for _, p := range m.Participants {
		if asked := inbound[p.Agent]; !asked.IsZero() && own[p.Agent].Before(asked) && now.Sub(asked) >= j.reply {
			silent = append(silent, p.Agent)
		}
	}
	fire(1, "reply_within", silent)
	turn, ok, err := r.Expected(context.Background(), ch)
	if err != nil {
		r.t.Fatal(err)
	}
	if trigger.IsZero() {
		trigger = m.CreatedAt
	}
	if ok && now.Sub(trigger) >= j.turn {
		fire(2, "turn_within", []string{turn.Agent})
	}
	return fired
}

func TestLawExpectationsFireAsSpecified(t *testing.T) {
	t.Parallel()
	law(t, func(rt *rapid.T, r *rig) {
		seconds := rapid.IntRange(1, 200)
		j := &judge{fired: map[string]bool{}}
		within := func(name string, d *time.Duration) string {
			n := seconds.Draw(rt, name)
			*d = time.Duration(n) * time.Second
			return expectation(name, "audit", fmt.Sprintf(`{"seconds":%d}`, n))
		}
		list := "[" + within("max_silence", &j.silence) + "," + within("reply_within", &j.reply) + "," + within("turn_within", &j.turn) + "]"
		people := []*agent{r.agent("a"), r.agent("b"), r.agent("c")}
		var channels []string
		for range 2 {
			channels = append(channels, r.openWith("discussion", expecting(list), people[0], people[1:]...))
		}
		var want []string
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			ch := rapid.SampledFrom(channels).Draw(rt, "channel")
			who := rapid.SampledFrom(people).Draw(rt, "who")
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				r.restart()
			case 1:
				r.crash()
			case 2:
				r.post(who, ch, "my.own", `{}`)
			case 3:
				r.post(who, ch, envelope.TypeTaskProgress, `{}`)
			case 4, 5:
				_, _ = r.trySay(who, ch, "out of turn, perhaps")
			default:
				turn, _, err := r.Expected(context.Background(), ch)
				if err != nil {
					rt.Fatal(err)
				}
				for _, p := range people {
					if p.id == turn.Agent {
						r.say(p, ch, "my turn")
					}
				}
			}
			r.pass(time.Duration(rapid.IntRange(0, 90).Draw(rt, "wait")) * time.Second)
			for _, ch := range channels {
				want = append(want, j.tick(r, ch)...)
			}
			r.sweep()
			var got []string
			for _, record := range r.audit("expectation_violated") {
				violators := []string{}
				for _, v := range record["violators"].([]any) {
					violators = append(violators, v.(string))
				}
				got = append(got, fmt.Sprint(record["channel_id"], " ", record["expectation"], " ", violators))
			}
			// Channels are checked in the order in which they are due, so only the
			// order within each channel is defined.
			slices.Sort(got)
			sorted := slices.Clone(want)
			if slices.Sort(sorted); !slices.Equal(got, sorted) {
				rt.Fatalf("fired %q, want %q", got, sorted)
			}
		}
	})
}
