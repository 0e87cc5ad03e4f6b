package ag2_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
)

// The seeds' statements about the wire.
func TestSeedStatements(t *testing.T) {
	t.Parallel()
	// between opens a conversation of alice and bob.
	between := func(t *spec.T, o options) (r *rig, p, q *peer, alice, ch string) {
		r = newRig(t, o)
		p, q = r.dial(), r.dial()
		alice = p.register("alice")
		ch = p.open("conversation", alice, map[string]*peer{q.register("bob"): q})
		return r, p, q, alice, ch
	}
	for clause, audience := range map[string]string{"null": "null", "a list": `["%s"]`} {
		spec.Check(t, "seed-000#6: the audience is "+clause, func(t *spec.T) {
			t.Parallel()
			r, p, q, alice, ch := between(t, options{})
			want := strings.ReplaceAll(audience, "%s", idOf(r, "bob"))
			request := fmt.Sprintf(`{"kind":"request","request_id":"x","op":"post_envelope","params":{"envelope":{"channel_id":%q,"sender_id":%q,"audience":%s,"event_type":"app.note","event_data":{}}}}`, ch, alice, want)
			p.send(request)
			_, err := p.response("x")
			t.NoError(err)
			key := regexp.MustCompile(`"audience":(null|\[[^]]*\])`)
			t.Equal(key.FindStringSubmatch(q.recv())[1], want)
			raw, err := q.try("read_wal", object{"channel_id": ch, "since": -1})
			t.NoError(err)
			t.Equal(key.FindStringSubmatch(string(raw))[1], want)
		})
	}
	spec.Check(t, "seed-000#6 seed-000#9: null when left out", func(t *spec.T) {
		t.Parallel()
		_, p, q, alice, ch := between(t, options{})
		p.send(fmt.Sprintf(`{"kind":"send","envelope":{"channel_id":%q,"sender_id":%q,"event_type":"app.note","event_data":{}}}`, ch, alice))
		told := q.recv()
		t.Contains(told, `"audience":null`, `"causation_id":null`)
		raw, err := q.try("read_wal", object{"channel_id": ch, "since": -1})
		t.NoError(err)
		t.Contains(string(raw), `"audience":null`, `"causation_id":null`)
	})
	spec.Check(t, "seed-000#11: empty until it is posted", func(t *spec.T) {
		t.Parallel()
		draft := wire.AppendEnvelope(nil, &envelope.Envelope{Channel: "c", Sender: "s", Type: "app.note"})
		t.Contains(string(draft), `"created_at":""`)
	})
	for field, wrong := range map[string]string{
		"seed-000#4: channel_id is a string given by the sender": `"channel_id":5`, "seed-000#5: sender_id is the sender's agent id": `"sender_id":["a"]`, "seed-000#6: audience is a list of agent ids or null": `"audience":[5]`,
		"seed-000#7: event_type is given by the sender": `"event_type":true`, "seed-000#8: event_data is a JSON object given by the sender": `"event_data":["text"]`, "seed-000#9: causation_id is null where the sender gives none": `"causation_id":{}`,
	} {
		spec.Check(t, field+": of another type it is refused and logs nothing", func(t *spec.T) {
			t.Parallel()
			r, p, q, alice, ch := between(t, options{})
			name, _, _ := strings.Cut(wrong, ":")
			fields := slices.DeleteFunc([]string{
				fmt.Sprintf(`"channel_id":%q`, ch), fmt.Sprintf(`"sender_id":%q`, alice), `"event_type":"app.note"`,
			}, func(f string) bool { return strings.HasPrefix(f, name) })
			before, err := r.hub.Length(t.Context(), ch)
			t.NoError(err)
			p.send(`{"kind":"request","request_id":"x","op":"post_envelope","params":{"envelope":{` + strings.Join(append(fields, wrong), ",") + `}}}`)
			_, err = p.response("x")
			t.ErrorContains(err, "envelope."+strings.Trim(name, `"`)+" must be")
			q.quiet()
			after, err := r.hub.Length(t.Context(), ch)
			t.NoError(err)
			t.Equal(after, before)
		})
	}
	spec.Check(t, "seed-000#10: priority is NORMAL by default", func(t *spec.T) {
		t.Parallel()
		_, p, q, alice, ch := between(t, options{})
		p.post(ch, alice, "app.note", object{})
		p.post(ch, alice, "app.note", object{}, object{"priority": nil})
		t.Equal([]any{q.notified().Envelope["priority"], q.notified().Envelope["priority"]}, []any{"normal", "normal"})
	})
	spec.Check(t, "seed-000#82: hello is answered by welcome, deliveries are notify", func(t *spec.T) {
		t.Parallel()
		_, p, q, alice, ch := between(t, options{})
		q.send(`{"kind":"hello","name":"bob"}`)
		t.True(strings.HasPrefix(q.recv(), `{"kind":"welcome","endpoint_id":"`), "hello is answered by welcome")
		id := p.say(ch, alice, "hi")
		got := q.recv()
		t.True(strings.HasPrefix(got, `{"kind":"notify","envelope":{`), "a delivery is a notify")
		t.Contains(got, `"envelope_id":"`+id+`"`)
	})
	spec.Check(t, "seed-000#83: a send frame holding an envelope is taken as a post", func(t *spec.T) {
		t.Parallel()
		_, p, q, alice, ch := between(t, options{})
		p.send(fmt.Sprintf(`{"kind":"send","envelope":{"channel_id":%q,"sender_id":%q,"audience":null,"event_type":"ag2.msg.text","event_data":{"text":"hi"}}}`, ch, alice))
		n := q.notified()
		t.Equal([]any{n.Envelope["sender_id"], n.Envelope["event_data"]}, []any{alice, object{"text": "hi"}})
		var log []object
		q.call("read_wal", object{"channel_id": ch, "since": -1}, &log)
		t.Equal(log[0]["envelope_id"], n.Envelope["envelope_id"])
		p.quiet()
	})
	for clause, on := range map[string]bool{"on": true, "off": false} {
		spec.Check(t, "seed-000#84: frame debugging "+clause, func(t *spec.T) {
			t.Parallel()
			r := newRig(t, options{config: ag2.Config{DebugFrames: on}})
			p := r.dial()
			p.open("conversation", p.register("alice"), map[string]*peer{p.register("bob"): p})
			p.drain()
			p.hello("alice", nil)
			p.send("no frame at all")
			p.send(`{"kind":"receipt","envelope_id":"e","status":"ack"}`)
			p.quiet()
			lines := regexp.MustCompile(`msg=frame direction=(in|out) kind=("?[a-z]*"?)`).FindAllStringSubmatch(r.log.String(), -1)
			got := []string{}
			for _, line := range lines {
				got = append(got, line[1]+" "+strings.Trim(line[2], `"`))
			}
			slices.Sort(got) // reading and writing are concurrent
			want := []string{}
			if on {
				want = []string{
					"in ", "in hello", "in ping", "in ping", "in receipt", "in request", "in request", "in request", "in request",
					"out notify", "out notify", "out notify", "out pong", "out pong",
					"out response", "out response", "out response", "out response", "out welcome",
				}
			}
			t.Equal(got, want)
		})
	}
}
