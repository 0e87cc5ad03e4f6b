package message_test

import (
	"bytes"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/sample"
	"github.com/parley-hub/parley/message/value"
)

// anyMessage draws rows and envelopes with the keys that rules look at.
func anyMessage() *rapid.Generator[any] {
	text := rapid.SampledFrom([]string{
		"", "0", " ", "text", "tool_call", "tool_result", "multimodal", "multimodal_part", "error", "delta", "user", "assistant", "1", "1abc", "é\x00",
	})
	scalar := rapid.OneOf(
		rapid.Just(any(nil)), rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.SampledFrom([]string{"0", "1", "1.0", "2", "9007199254740993", "1e400"}), func(s string) any { return value.Number(s) }),
	)
	keys := rapid.SampledFrom([]string{
		"schema", "version", "type", "role", "content", "payload", "data", "metadata", "id", "created_at", "updated_at",
		"tool_name", "parameters", "turn", "success", "error", "parts", "0", "1", "05", "k",
	})
	var anything func(depth int) *rapid.Generator[any]
	anything = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		list := rapid.Map(rapid.SliceOfN(anything(depth-1), 0, 3), func(l []any) any { return l })
		object := rapid.Map(rapid.SliceOfNDistinct(keys, 0, 8, rapid.ID[string]), func(keys []string) []string { return keys })
		return rapid.Custom(func(t *rapid.T) any {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				return scalar.Draw(t, "scalar")
			case 1:
				return list.Draw(t, "list")
			default:
				m := value.New()
				for _, key := range object.Draw(t, "keys") {
					m.Set(key, anything(depth-1).Draw(t, key))
				}
				return m
			}
		})
	}
	return anything(3)
}

// checkLaws holds for whatever normalizes: it is idempotent, the projection
// says the same before and after, and what comes back from a projection is the
// same message, texts with nothing but blocks apart.
func checkLaws(t interface {
	Helper()
	Fatalf(string, ...any)
}, e message.Envelope, source any,
) {
	t.Helper()
	text := written(e, nil)
	if again := normalized(text); again != text {
		t.Fatalf("normalized twice:\n%s\n%s", text, again)
	}
	again, err := message.Normalize(e)
	if written(again, err) != text {
		t.Fatalf("an envelope normalized:\n%s\n%s", text, written(again, err))
	}
	projected, err := message.ToProvider(source)
	if err != nil || written(projected, nil) != written(e.Provider(), nil) {
		t.Fatalf("projections differ: %v\n%s\n%s", err, written(projected, nil), written(e.Provider(), nil))
	}
	back, err := message.Normalize(projected)
	if err != nil {
		t.Fatalf("a projection is refused: %v\n%s", err, written(projected, nil))
	}
	want := e.Type
	if e.Type == message.TypeText && value.IsContainer(e.Content) && e.Payload.Len() == 0 && e.Metadata.Len() == 0 {
		want = message.TypeMultimodalPart
	}
	if back.Type != want || back.Role != e.Role || !value.Equal(back.Content, e.Content) {
		t.Fatalf("came back as\n%s\nfrom\n%s", written(back, nil), text)
	}
	if want == e.Type && written(back.Provider(), nil) != written(projected, nil) {
		t.Fatalf("projected twice:\n%s\n%s", written(projected, nil), written(back.Provider(), nil))
	}
}

func TestLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		source := anyMessage().Draw(t, "message")
		before, _ := value.Append(nil, source)
		e, err := message.Normalize(source)
		if after, _ := value.Append(nil, source); !bytes.Equal(before, after) {
			t.Fatalf("the input changed:\n%s\n%s", before, after)
		}
		if got := normalized(string(before)); got != written(e, err) {
			t.Fatalf("text and value differ:\n%s\n%s", got, written(e, err))
		}
		if err == nil {
			checkLaws(t, e, source)
		}
	})
}

func TestCoalesceTwiceIsOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(anyMessage(), 0, 6).Draw(t, "messages")
		once, err := message.Coalesce(list)
		if err != nil {
			return
		}
		twice := message.CoalesceEnvelopes(once)
		if len(once) != len(twice) {
			t.Fatalf("%d became %d", len(once), len(twice))
		}
		for i := range once {
			if written(once[i], nil) != written(twice[i], nil) {
				t.Fatalf("%s became %s", written(once[i], nil), written(twice[i], nil))
			}
			if i > 0 && once[i].Role == once[i-1].Role {
				t.Fatalf("neighbours of role %q are left", once[i].Role)
			}
		}
	})
}

// FuzzNormalize feeds any bytes: nothing panics, and what is taken obeys the
// laws.
func FuzzNormalize(f *testing.F) {
	vectors, err := os.ReadFile("testdata/agent-message-vectors.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(vectors) {
		input, _ := value.Append(nil, object(f, string(line)).At("input"))
		f.Add(input)
	}
	for line := range bytes.Lines(sample.Conversation()) {
		f.Add(line)
	}
	f.Add([]byte(nested(600)))
	f.Add([]byte("{\"content\":\"\xff\"}"))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := message.NormalizeJSON(data)
		if err != nil {
			return
		}
		source, err := value.Decode(data)
		if err != nil {
			t.Fatalf("normalized, but not decoded: %v", err)
		}
		checkLaws(t, e, source)
	})
}
