package hub_test

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// world is a few agents in a few channels of every kind.
type world struct {
	*rig
	rt       *rapid.T
	people   []*agent
	channels []string
}

func newWorld(rt *rapid.T, r *rig) *world {
	w := &world{rig: r, rt: rt}
	for i := range 3 {
		w.people = append(w.people, r.agent(fmt.Sprint("agent", i)))
	}
	for range rapid.IntRange(1, 3).Draw(rt, "channels") {
		w.openAny()
	}
	return w
}

func (w *world) anyone(label string) *agent {
	return w.people[rapid.IntRange(0, len(w.people)-1).Draw(w.rt, label)]
}

func (w *world) anywhere() string {
	return w.channels[rapid.IntRange(0, len(w.channels)-1).Draw(w.rt, "where")]
}

func (w *world) openAny() {
	creator := w.anyone("creator")
	var others []*agent
	for _, p := range w.people {
		if p != creator {
			others = append(others, p)
		}
	}
	kind := rapid.SampledFrom([]string{"consulting", "conversation", "discussion", "workflow"}).Draw(w.rt, "kind")
	var edit func(*hub.Opening)
	switch kind {
	case "consulting", "conversation":
		others = others[:1]
	case "workflow":
		edit = knobs(w.anyGraph(creator))
	}
	w.channels = append(w.channels, w.openWith(kind, edit, creator, others...))
}

// anyGraph draws rules over the agents in the world.
func (w *world) anyGraph(creator *agent) string {
	var rules []string
	for range rapid.IntRange(0, 4).Draw(w.rt, "rules") {
		when := rapid.SampledFrom([]string{
			`{"name":"always","args":{}}`,
			fmt.Sprintf(`{"name":"from_speaker","args":{"agent_id":%q}}`, w.anyone("from").id),
			`{"name":"tool_called","args":{"tool_name":"t"}}`,
			`{"name":"context_equals","args":{"key":"k","value":1}}`,
			`{"name":"context_threshold","args":{"key":"k","threshold":2}}`,
		}).Draw(w.rt, "when")
		then := rapid.SampledFrom([]string{
			fmt.Sprintf(`{"name":"agent","args":{"agent_id":%q}}`, w.anyone("to").id),
			`{"name":"round_robin","args":{}}`, `{"name":"stay","args":{}}`,
			`{"name":"revert_to_initiator","args":{}}`, `{"name":"terminate","args":{"reason":"enough"}}`,
		}).Draw(w.rt, "then")
		rules = append(rules, fmt.Sprintf(`{"when":%s,"then":%s,"priority":%d}`, when, then, rapid.IntRange(-1, 1).Draw(w.rt, "priority")))
	}
	return fmt.Sprintf(`{"graph":{"initial_speaker":%q,"transitions":[%s],"default_target":{"name":"round_robin","args":{}},"max_turns":20}}`,
		creator.id, strings.Join(rules, ","))
}

// speak posts something random, which may be refused.
func (w *world) speak() (*envelope.Envelope, error) {
	e := w.anything()
	_, err := w.Post(ctx, e, nil)
	return e, err
}

func (w *world) anything() *envelope.Envelope {
	e := &envelope.Envelope{Channel: w.anywhere(), Sender: w.anyone("sender").id}
	e.Type = rapid.SampledFrom([]string{
		envelope.TypeText, envelope.TypeText, envelope.TypePacket, envelope.TypePacket, envelope.TypeContextSet, "my.own",
		envelope.TypeTaskProgress, envelope.TypeClosed, envelope.TypeInviteAck,
	}).Draw(w.rt, "type")
	e.Data = []byte(rapid.SampledFrom([]string{
		`{"text":"x"}`, `{"set":{"k":1}}`, `{"set":{"k":3},"delete":["k"]}`, `{"routing":{"kind":"handoff","tool":"t"},"body":"b"}`,
		fmt.Sprintf(`{"routing":{"kind":"handoff","target":%q}}`, w.anyone("target").id),
		`{"routing":{"kind":"finish","reason":"f"}}`, `{}`,
	}).Draw(w.rt, "data"))
	if rapid.IntRange(0, 3).Draw(w.rt, "directed") == 0 {
		e.Audience = []string{w.anyone("reader").id}
	}
	return e
}

// turmoil restarts, crashes, evicts, or lets time pass.
func (w *world) turmoil() {
	switch rapid.IntRange(0, 9).Draw(w.rt, "turmoil") {
	case 0:
		w.restart()
	case 1:
		w.crash()
	case 2:
		w.pass(3 * time.Minute)
	}
}

func (w *world) states() map[string]string {
	states := map[string]string{}
	for _, ch := range w.channels {
		meta, err := w.channel(ch).MarshalJSON()
		if err != nil {
			w.rt.Fatal(err)
		}
		states[ch] = string(meta) + w.state(ch)
	}
	return states
}
