package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view"
)

func text(sender, text string) *envelope.Envelope {
	return &envelope.Envelope{Sender: sender, Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":%q}`, text)}
}

func private(e *envelope.Envelope, audience ...string) *envelope.Envelope {
	e.Audience = append([]string{}, audience...)
	return e
}

func user(text string) view.Event      { return view.Event{Kind: view.User, Text: text} }
func assistant(text string) view.Event { return view.Event{Kind: view.Assistant, Text: text} }
func summary(n int, text string) view.Event {
	return view.Event{Kind: view.Summary, Text: text, Elided: n}
}

func windowed(t *spec.T, recent int) view.View {
	t.Helper()
	v, err := view.Windowed(recent)
	t.NoError(err)
	return v
}

func namedWindowed(t *spec.T, recent int) view.View {
	t.Helper()
	v, err := view.NamedWindowed(recent)
	t.NoError(err)
	return v
}

// names resolves a to Zoe and z to Bob, which sort the other way round.
func names(id string) string { return map[string]string{"a": "Zoe", "z": "Bob"}[id] }

func TestTranscripts(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#102: within the window the projection is plain", func(t *spec.T) {
		log := []*envelope.Envelope{text("a", "one"), text("me", "two"), text("b", "three")}
		want := []view.Event{user("one"), assistant("two"), user("three")}
		t.Equal(windowed(t, 3).Project(view.Input{Log: log, Participant: "me"}), want)
		t.Equal(windowed(t, 4).Project(view.Input{Log: log, Participant: "me"}), want)
		t.Equal(view.Full().Project(view.Input{Log: log, Participant: "me"}), want)
	})
	spec.Check(t, "ag2-channels#103: what is before the window becomes a summary", func(t *spec.T) {
		var log []*envelope.Envelope
		for i := range 8 {
			log = append(log, text("a", fmt.Sprint("t", i)))
		}
		t.Equal(windowed(t, 3).Project(view.Input{Log: log, Participant: "me"}), []view.Event{
			summary(5, "Earlier in this channel: 5 messages from a."), user("t5"), user("t6"), user("t7"),
		})
	})
	t.Run("one message is singular", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		log := []*envelope.Envelope{text("a", "one"), text("me", "two")}
		c.Equal(windowed(c, 1).Project(view.Input{Log: log, Participant: "me"}), []view.Event{
			summary(1, "Earlier in this channel: 1 message from a."), assistant("two"),
		})
	})
	t.Run("a summary lists each speaker once, itself too, in order", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		log := []*envelope.Envelope{text("z", "1"), text("me", "2"), text("a", "3"), text("z", "4"), text("b", "5")}
		got := windowed(c, 1).Project(view.Input{Log: log, Participant: "me"})
		c.Equal(got[0], summary(4, "Earlier in this channel: 4 messages from a, me, z."))
		kind, message := got[0].Message()
		c.Equal(kind, view.User)
		c.Equal(message, "[Summary of earlier conversation]\nEarlier in this channel: 4 messages from a, me, z.")
		kind, message = got[1].Message()
		c.Equal(kind, view.User)
		c.Equal(message, "5")
	})
	spec.Check(t, "ag2-channels#104 seed-000#56: private envelope absent from a third party's projection", func(t *spec.T) {
		log := []*envelope.Envelope{text("a", "all"), private(text("a", "for bob"), "bob"), private(text("a", "nobody"))}
		project := func(who string) []view.Event {
			return view.Full().Project(view.Input{Log: log, Participant: who})
		}
		t.Equal(project("carol"), []view.Event{user("all")})
		t.Equal(project("bob"), []view.Event{user("all"), user("for bob")})
		t.Equal(project("a"), []view.Event{assistant("all"), assistant("for bob"), assistant("nobody")})
	})
	spec.Check(t, "seed-000#57: the windowed view leaves it out and does not count it", func(t *spec.T) {
		log := []*envelope.Envelope{
			text("a", "1"), private(text("b", "secret"), "bob"), text("a", "2"), private(text("b", "secret"), "bob"), text("a", "3"),
		}
		t.Equal(windowed(t, 2).Project(view.Input{Log: log, Participant: "carol"}), []view.Event{
			summary(1, "Earlier in this channel: 1 message from a."), user("2"), user("3"),
		})
		t.Equal(windowed(t, 3).Project(view.Input{Log: log, Participant: "carol"}), []view.Event{user("1"), user("2"), user("3")})
	})
	t.Run("what has no text is not counted", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		opened := &envelope.Envelope{Sender: "hub", Type: envelope.TypeOpened, Data: []byte(`{}`)}
		odd := &envelope.Envelope{Sender: "x", Type: envelope.TypeText, Data: []byte(`{"text":7}`)}
		log := []*envelope.Envelope{opened, text("a", "1"), opened, odd, text("a", ""), opened}
		c.Equal(windowed(c, 2).Project(view.Input{Log: log, Participant: "me"}), []view.Event{user("1"), user("")})
	})
	spec.Check(t, "ag2-channels#105: named views label others and not oneself", func(t *spec.T) {
		log := []*envelope.Envelope{text("a", "hi"), text("me", "ho"), text("who", "hm")}
		want := []view.Event{user("[Zoe]: hi"), assistant("ho"), user("[who]: hm")}
		t.Equal(view.Named().Project(view.Input{Log: log, Participant: "me", Name: names}), want)
		t.Equal(namedWindowed(t, 3).Project(view.Input{Log: log, Participant: "me", Name: names}), want)
	})
	spec.Check(t, "ag2-channels#105: an unknown sender is labelled by id", func(t *spec.T) {
		log := []*envelope.Envelope{text("who", "hm")}
		t.Equal(view.Named().Project(view.Input{Log: log, Participant: "me", Name: names}), []view.Event{user("[who]: hm")})
		t.Equal(view.Named().Project(view.Input{Log: log, Participant: "me"}), []view.Event{user("[who]: hm")})
	})
	spec.Check(t, "ag2-channels#105: a summary uses names, not ids", func(t *spec.T) {
		log := []*envelope.Envelope{text("a", "1"), text("z", "2"), text("a", "3"), text("z", "4")}
		t.Equal(namedWindowed(t, 1).Project(view.Input{Log: log, Participant: "me", Name: names}), []view.Event{
			summary(3, "Earlier in this channel: 3 messages from Bob, Zoe."), user("[Bob]: 4"),
		})
		same := func(string) string { return "Twin" }
		t.Equal(namedWindowed(t, 1).Project(view.Input{Log: log, Participant: "me", Name: same})[0],
			summary(3, "Earlier in this channel: 3 messages from Twin."))
	})
	spec.Check(t, "ag2-channels#106: unnamed views ignore the resolver", func(t *spec.T) {
		log := []*envelope.Envelope{text("a", "1"), text("z", "2"), text("a", "3")}
		t.Equal(view.Full().Project(view.Input{Log: log, Participant: "me", Name: names}), []view.Event{user("1"), user("2"), user("3")})
		t.Equal(windowed(t, 1).Project(view.Input{Log: log, Participant: "me", Name: names}), []view.Event{
			summary(2, "Earlier in this channel: 2 messages from a, z."), user("3"),
		})
	})
	spec.Check(t, "ag2-channels#107: single-envelope projection labelled in named views only", func(t *spec.T) {
		in := view.Input{Log: []*envelope.Envelope{text("a", "hi")}, Participant: "me", Name: names}
		t.Equal(view.Named().Project(in), []view.Event{user("[Zoe]: hi")})
		t.Equal(namedWindowed(t, 1).Project(in), []view.Event{user("[Zoe]: hi")})
		t.Equal(view.Full().Project(in), []view.Event{user("hi")})
		t.Equal(windowed(t, 1).Project(in), []view.Event{user("hi")})
	})
	spec.Check(t, "seed-000#80: a custom type addressed to one is hidden from the views of the rest", func(t *spec.T) {
		custom := &envelope.Envelope{Sender: "a", Type: "app.note", Audience: []string{"bob"}, Data: []byte(`{"note":"psst"}`)}
		project := func(who string) []view.Event {
			return view.Full().Project(view.Input{Log: []*envelope.Envelope{custom}, Participant: who, Render: note{}})
		}
		t.Equal(project("bob"), []view.Event{user("note")})
		t.Equal(project("carol"), []view.Event(nil))
	})
	t.Run("a channel's own rule of visibility", func(t *testing.T) {
		t.Parallel()
		log := []*envelope.Envelope{text("a", "1"), text("b", "2")}
		in := view.Input{Log: log, Participant: "me", Visible: func(e *envelope.Envelope) bool { return e.Sender == "b" }}
		(&spec.T{T: t}).Equal(view.Full().Project(in), []view.Event{user("2")})
	})
}

// note renders everything.
type note struct{}

func (note) Render(*envelope.Envelope) (string, bool) { return "note", true }

func TestRegistry(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := view.NewRegistry()
	for _, test := range []struct {
		name   string
		params view.Params
		recent int
	}{
		{"full_transcript", view.Params{}, 0},
		{"named_transcript", view.Params{Recent: 3}, 0},
		{"windowed_summary", view.Params{Participants: 2}, 10},
		{"windowed_summary", view.Params{Participants: 3}, 6},
		{"named_windowed_summary", view.Params{Participants: 1}, 4},
		{"named_windowed_summary", view.Params{Participants: 5}, 10},
		{"named_windowed_summary", view.Params{Recent: 1, Participants: 5}, 1},
	} {
		v, err := r.New(test.name, test.params)
		c.NoError(err)
		c.Equal(v.Name(), test.name)
		c.Equal(v.(view.Transcript).Recent(), test.recent)
	}
	_, err := r.New("telepathy", view.Params{})
	c.ErrorContains(err, "telepathy", "full_transcript")
	c.Equal(fault.CodeOf(err), fault.NotFound)
	for _, name := range []string{"windowed_summary", "named_windowed_summary"} {
		_, err := r.New(name, view.Params{Recent: -1})
		c.ErrorContains(err, "recent_n")
		c.Equal(fault.CodeOf(err), fault.Invalid)
	}
	_, err = view.Windowed(0)
	c.ErrorContains(err, "recent_n", "not 0")
	_, err = view.NamedWindowed(0)
	c.ErrorContains(err, "recent_n")
	r.Register("full_transcript", func(view.Params) (view.View, error) { return view.Named(), nil })
	v, err := r.New("full_transcript", view.Params{})
	c.NoError(err)
	c.Equal(v.Name(), "named_transcript")
}

func TestTextOnly(t *testing.T) {
	t.Parallel()
	type shown struct {
		Text string
		OK   bool
	}
	for data, want := range map[string]shown{
		`{"text":"hi"}`:         {"hi", true},
		`{"text":"\u00e9\n"}`:   {"é\n", true},
		`{"text":""}`:           {"", true},
		`{}`:                    {"", true},
		`{"text":null}`:         {"", false},
		`{"text":["x"]}`:        {"", false},
		`{"x":1,"text":"last"}`: {"last", true},
		`[]`:                    {"", false},
		``:                      {"", false},
	} {
		got, ok := view.TextOnly{}.Render(&envelope.Envelope{Type: envelope.TypeText, Data: []byte(data)})
		if diff := cmp.Diff(want, shown{got, ok}); diff != "" {
			t.Errorf("%s:\n%s", data, diff)
		}
	}
	if _, ok := (view.TextOnly{}).Render(&envelope.Envelope{Type: "app.x", Data: []byte(`{"text":"hi"}`)}); ok {
		t.Error("a custom type is shown")
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	shape := func(threads []*view.Thread) string {
		var b strings.Builder
		view.Walk(threads, func(th *view.Thread, depth int) bool {
			fmt.Fprintf(&b, "%s%s:%s\n", strings.Repeat("  ", depth), th.Envelope.ID, th.Text)
			return true
		})
		return b.String()
	}
	entry := func(id, cause, sender string) *envelope.Envelope {
		e := text(sender, "from "+sender)
		e.ID, e.Causation = id, cause
		return e
	}
	spec.Check(t, "seed-000#72: envelopes nest under the one they answer", func(t *spec.T) {
		log := []*envelope.Envelope{
			entry("1", "", "a"), entry("2", "1", "b"), entry("3", "unknown", "c"),
			entry("4", "2", "a"), entry("5", "1", "c"), entry("6", "", "b"), entry("7", "6", "a"),
		}
		t.Equal(shape(view.Threads(view.Input{Log: log, Participant: "a"})), `1:from a
  2:from b
    4:from a
  5:from c
3:from c
6:from b
  7:from a
`)
	})
	t.Run("what may not be seen is not there, and nothing hangs from it", func(t *testing.T) {
		t.Parallel()
		log := []*envelope.Envelope{entry("1", "", "a"), private(entry("2", "1", "a"), "b"), entry("3", "2", "b")}
		(&spec.T{T: t}).Equal(shape(view.Threads(view.Input{Log: log, Participant: "c"})), "1:from a\n3:from b\n")
	})
	t.Run("a cause that comes later, or is itself, is none", func(t *testing.T) {
		t.Parallel()
		log := []*envelope.Envelope{entry("1", "2", "a"), entry("2", "2", "b"), entry("3", "1", "c")}
		(&spec.T{T: t}).Equal(shape(view.Threads(view.Input{Log: log, Participant: "a"})), "1:from a\n  3:from c\n2:from b\n")
	})
	t.Run("walking stops on request", func(t *testing.T) {
		t.Parallel()
		log := []*envelope.Envelope{entry("1", "", "a"), entry("2", "1", "b"), entry("3", "", "c")}
		visited := 0
		view.Walk(view.Threads(view.Input{Log: log, Participant: "a"}), func(*view.Thread, int) bool { visited++; return visited < 2 })
		(&spec.T{T: t}).Equal(visited, 2)
	})
}

func drawLog(t *rapid.T) []*envelope.Envelope {
	agents := []string{"a", "b", "c"}
	log := make([]*envelope.Envelope, rapid.IntRange(0, 20).Draw(t, "length"))
	for i := range log {
		log[i] = text(rapid.SampledFrom(agents).Draw(t, "sender"), fmt.Sprint("text ", i))
		log[i].ID = fmt.Sprint("e", i)
		log[i].Type = rapid.SampledFrom([]string{envelope.TypeText, envelope.TypeText, "app.x"}).Draw(t, "type")
		if rapid.Bool().Draw(t, "private") {
			log[i].Audience = rapid.SliceOfN(rapid.SampledFrom(agents), 0, 2).Draw(t, "audience")
		}
		if rapid.Bool().Draw(t, "answers") {
			log[i].Causation = fmt.Sprint("e", rapid.IntRange(0, len(log)).Draw(t, "cause"))
		}
	}
	return log
}

func TestLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		recent := rapid.IntRange(1, 6).Draw(t, "recent")
		window, err := view.Windowed(recent)
		if err != nil {
			t.Fatal(err)
		}
		in := view.Input{Log: log, Participant: "a"}
		full := view.Full().Project(in)
		var want []view.Event
		for _, e := range log {
			if !e.VisibleTo("a") || e.Type != envelope.TypeText {
				continue
			}
			said, _ := view.TextOnly{}.Render(e)
			if e.Sender == "a" {
				want = append(want, assistant(said))
			} else {
				want = append(want, user(said))
			}
		}
		if diff := cmp.Diff(want, full); diff != "" {
			t.Fatalf("shows other than what may be seen:\n%s", diff)
		}
		got := window.Project(in)
		if diff := cmp.Diff(got, window.Project(in)); diff != "" {
			t.Fatalf("two projections differ:\n%s", diff)
		}
		if len(full) <= recent {
			if diff := cmp.Diff(full, got); diff != "" {
				t.Fatalf("a window that holds everything differs:\n%s", diff)
			}
			return
		}
		if got[0].Elided != len(full)-recent || got[0].Kind != view.Summary {
			t.Fatalf("the summary stands for %d of %d", got[0].Elided, len(full))
		}
		if diff := cmp.Diff(full[len(full)-recent:], got[1:]); diff != "" {
			t.Fatalf("the window is not the end of the transcript:\n%s", diff)
		}
	})
}

func TestThreadLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		seen := map[string]int{}
		view.Walk(view.Threads(view.Input{Log: log, Participant: "a"}), func(th *view.Thread, _ int) bool {
			seen[th.Envelope.ID]++
			for _, reply := range th.Replies {
				if reply.Envelope.Causation != th.Envelope.ID {
					t.Fatalf("%s hangs from %s", reply.Envelope.ID, th.Envelope.ID)
				}
			}
			return true
		})
		for _, e := range log {
			if want := e.VisibleTo("a"); want != (seen[e.ID] == 1) {
				t.Fatalf("%s is there %d times, visible: %v", e.ID, seen[e.ID], want)
			}
		}
	})
}
