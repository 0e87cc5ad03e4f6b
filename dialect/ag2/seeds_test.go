package ag2_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/ag2"
)

// What the seeds say of the wire.
func TestSeedStatements(t *testing.T) {
	t.Parallel()
	// between has alice and bob in a conversation.
	between := func(t *spec.T, o options) (r *rig, p, q *peer, alice, ch string) {
		r = newRig(t, o)
		p, q = r.dial(), r.dial()
		alice = p.register("alice")
		ch = p.open("conversation", alice, map[string]*peer{q.register("bob"): q})
		return r, p, q, alice, ch
	}
	for clause, audience := range map[string]string{"null": "null", "a list": `["%s"]`} {
		spec.Check(t, "seed-000#6: "+clause, func(t *spec.T) {
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
	spec.Check(t, "seed-000#10", func(t *spec.T) {
		t.Parallel()
		_, p, q, alice, ch := between(t, options{})
		p.post(ch, alice, "app.note", object{})
		p.post(ch, alice, "app.note", object{}, object{"priority": nil})
		t.Equal([]any{q.notified().Envelope["priority"], q.notified().Envelope["priority"]}, []any{"normal", "normal"})
	})
	spec.Check(t, "seed-000#82", func(t *spec.T) {
		t.Parallel()
		_, p, q, alice, ch := between(t, options{})
		q.send(`{"kind":"hello","name":"bob"}`)
		t.True(strings.HasPrefix(q.recv(), `{"kind":"welcome","endpoint_id":"`), "hello is answered by welcome")
		id := p.say(ch, alice, "hi")
		got := q.recv()
		t.True(strings.HasPrefix(got, `{"kind":"notify","envelope":{`), "a delivery is a notify")
		t.Contains(got, `"envelope_id":"`+id+`"`)
	})
	spec.Check(t, "seed-000#83", func(t *spec.T) {
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
		spec.Check(t, "seed-000#84: "+clause, func(t *spec.T) {
			t.Parallel()
			r := newRig(t, options{config: ag2.Config{DebugFrames: on}})
			p := r.dial()
			p.register("alice")
			p.hello("alice", nil)
			p.send("no frame at all")
			p.send(`{"kind":"receipt","envelope_id":"e","status":"ack"}`)
			p.quiet()
			lines := regexp.MustCompile(`msg=frame direction=(in|out) kind=("?[a-z]*"?)`).FindAllStringSubmatch(r.log.String(), -1)
			got := []string{}
			for _, line := range lines {
				got = append(got, line[1]+" "+strings.Trim(line[2], `"`))
			}
			slices.Sort(got) // reading and writing are not one after the other
			want := []string{}
			if on {
				want = []string{"in ", "in hello", "in ping", "in receipt", "in request", "out pong", "out response", "out welcome"}
			}
			t.Equal(got, want)
		})
	}
}
