package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// runAll posts a list as runs, waits for all, and returns the length of each run
// and the result of each post: its id, or the code of its error.
func runAll(r *rig, list []*envelope.Envelope) (lengths []int, ends []string) {
	r.t.Helper()
	var pending []*hub.Pending
	for rest := list; len(rest) > 0; {
		p, n := r.AdmitRun(ctx, rest, nil)
		if n < 1 || n > len(rest) {
			r.t.Fatalf("%d of %d posts were admitted", n, len(rest))
		}
		pending, lengths, rest = append(pending, p), append(lengths, n), rest[n:]
	}
	for i, p := range pending {
		id, err := p.Wait(ctx)
		if lengths[i] == 1 {
			ends = append(ends, end(id, err))
			continue
		}
		for id, err := range p.Each(err) {
			ends = append(ends, end(id, err))
		}
	}
	return lengths, ends
}

func end(id string, err error) string {
	if err != nil {
		return string(fault.CodeOf(err))
	}
	return id
}

func TestAdmitRun(t *testing.T) {
	t.Parallel()
	runs(t, "stores what follows each other as one batch, and tells everyone of each", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		b.clear()
		length, batches := len(r.log(ch)), r.engine.Stats().Batches
		lengths, ids := runAll(r, texts(a, ch, "", "one", "two", "three"))
		if n := r.engine.Stats().Batches - batches; n != 1 || !slices.Equal(lengths, []int{3}) {
			t.Errorf("%d batches, runs of %v", n, lengths)
		}
		var stored, told []string
		for _, e := range r.log(ch)[length:] {
			stored = append(stored, e.ID)
		}
		for _, e := range b.inbox() {
			told = append(told, e.ID)
		}
		if !slices.Equal(ids, stored) || !slices.Equal(ids, told) {
			t.Errorf("answered %v, stored %v, told %v", ids, stored, told)
		}
	})
	runs(t, "is bounded", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		lengths, _ := runAll(r, texts(a, ch, "", slices.Repeat([]string{"x"}, hub.MaxRun+2)...))
		if !slices.Equal(lengths, []int{hub.MaxRun, 2}) {
			t.Errorf("runs of %v", lengths)
		}
		if p, n := r.AdmitRun(ctx, nil, nil); n != 0 {
			t.Errorf("%d of no posts", n)
		} else if _, err := p.Wait(ctx); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("no posts: %v", err)
		}
	})
	runs(t, "what is refused is refused alone", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		list := texts(a, ch, "", "one", "two", "three", "four", "five")
		list[2].Data = []byte(`no object`)
		lengths, ends := runAll(r, list)
		if !slices.Equal(lengths, []int{2, 1, 2}) || ends[2] != string(fault.Invalid) || ends[1] == "" || ends[3] <= ends[1] {
			t.Errorf("runs of %v ended as %v", lengths, ends)
		}
		if heard := r.ear.heard(); !slices.ContainsFunc(heard, func(line string) bool { return strings.HasPrefix(line, "rejected ag2.msg.text") }) {
			t.Errorf("listeners heard %v", heard)
		}
	})
	runs(t, "what is not stored is acknowledged for none", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		length := len(r.log(ch))
		r.engine.Faults().FailWrite()
		_, ends := runAll(r, texts(a, ch, "", "one", "two"))
		if !slices.Equal(ends, []string{string(fault.Unavailable), string(fault.Unavailable)}) || len(r.log(ch)) != length {
			t.Errorf("ended as %v, stored %v", ends, types(r.log(ch)[length:]))
		}
		if _, ends := runAll(r, texts(a, ch, "", "one", "two")); len(r.log(ch)) != length+2 || ends[0] != r.log(ch)[length].ID {
			t.Errorf("then ended as %v", ends)
		}
	})
}

// Posts that arrive together have the same results as one after the other: each has
// its own answer, and the log and all deliveries are the same.
func TestLawRunsAreSinglePosts(t *testing.T) {
	t.Parallel()
	law(t, func(rt *rapid.T, r *rig) {
		kind := rapid.SampledFrom([]string{"conversation", "discussion"}).Draw(rt, "type")
		full := rapid.IntRange(0, 6).Draw(rt, "inbox")
		type twin struct {
			a, b    *agent
			channel string
		}
		var twins [2]twin
		for i := range twins {
			a, b := r.agent(fmt.Sprint("a", i)), r.agent(fmt.Sprint("b", i), func(reg *hub.Registration) {
				reg.Rule.Limits.Inbox.MaxPending = int64(full)
			})
			twins[i] = twin{a, b, r.open(kind, a, b)}
			b.clear()
		}
		key := 0
		for range rapid.IntRange(1, 4).Draw(rt, "steps") {
			var lists [2][]*envelope.Envelope
			speaks := rapid.Bool().Draw(rt, "speaks")
			for n := range rapid.IntRange(1, 6).Draw(rt, "size") {
				what := rapid.SampledFrom([]string{"text", "text", "text", "key", "same key", "no object", "no type", "other", "protocol", "nobody", "large"}).Draw(rt, "what")
				key++
				for i, w := range twins {
					e := &envelope.Envelope{Channel: w.channel, Sender: w.a.id, Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":"%d"}`, n)}
					if speaks {
						e.Sender = w.b.id
					}
					switch what {
					case "key":
						e.Key = fmt.Sprint(key)
					case "same key":
						e.Key = "same"
					case "no object":
						e.Data = []byte(`7`)
					case "no type":
						e.Type = ""
					case "other":
						e.Type = "custom.note"
					case "protocol":
						e.Type = envelope.TypeInviteAck
					case "nobody":
						e.Audience = []string{"nobody"}
					case "large":
						e.Data = fmt.Appendf(nil, `{"text":%q}`, make([]byte, 60_000))
					}
					lists[i] = append(lists[i], e)
				}
			}
			_, got := runAll(r, lists[0])
			var alone []*hub.Pending
			for _, e := range lists[1] {
				alone = append(alone, r.Admit(ctx, e, nil))
			}
			for i, p := range alone {
				id, err := p.Wait(ctx)
				if (err == nil) != envelope.ValidID(got[i]) || err != nil && end(id, err) != got[i] {
					rt.Fatalf("post %d of %v ended as %s, alone as %s", i, types(lists[0]), got[i], end(id, err))
				}
			}
		}
		shown := func(w twin) (lines []string) {
			for _, list := range [][]*envelope.Envelope{r.log(w.channel), w.a.inbox(), w.b.inbox()} {
				for _, e := range list {
					if !envelope.IsProtocol(e.Type) {
						lines = append(lines, fmt.Sprint(e.Seq, " ", e.Type, " ", e.Key, " ", string(e.Data[:min(12, len(e.Data))]), e.Sender == w.a.id))
					}
				}
				lines = append(lines, "-")
			}
			return lines
		}
		if diff := cmp.Diff(shown(twins[1]), shown(twins[0])); diff != "" {
			rt.Fatalf("together (+) and alone (-):\n%s", diff)
		}
	})
}
