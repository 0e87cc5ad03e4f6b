package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/schemas"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	text, err := schemas.Text("agh-envelope")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Schema     string         `json:"$schema"`
		ID         string         `json:"$id"`
		Title      string         `json:"title"`
		Type       string         `json:"type"`
		Additional bool           `json:"additionalProperties"`
		Required   []string       `json:"required"`
		Properties map[string]any `json:"properties"`
	}
	schema.Additional = true
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	spec.Check(t, "seed-001#98: the schema's draft, id, title and required members", func(t *spec.T) {
		t.Equal([]string{schema.Schema, schema.ID, schema.Title, schema.Type}, []string{
			"https://json-schema.org/draft/2020-12/schema", "https://agh.dev/schemas/network/v0/envelope.schema.json", "AGH Network v0 Envelope", "object",
		})
		t.Equal(schema.Required, []string{"protocol", "id", "workspace_id", "kind", "channel", "from", "ts", "body"})
	})
	spec.Check(t, "seed-001#99: the schema itself", func(t *spec.T) {
		t.False(schema.Additional, "other members are allowed")
		t.True(schemas.Validate("agh-envelope", with(say, "priority", `"high"`)) != nil, "an unknown member is refused")
	})
	members := []string{
		"protocol", "id", "workspace_id", "kind", "channel", "surface", "thread_id", "direct_id", "from", "to", "work_id",
		"reply_to", "trace_id", "causation_id", "ts", "expires_at", "body", "proof", "ext",
	}
	spec.Check(t, "seed-001#100: the schema's properties are exactly the 19 members", func(t *spec.T) {
		var got []string
		for name := range schema.Properties {
			got = append(got, name)
		}
		slices.Sort(got)
		t.Equal(got, slices.Sorted(slices.Values(members)))
	})
	spec.Check(t, "seed-001#101: null is valid for six members and means absent", func(t *spec.T) {
		nullable := []string{"surface", "thread_id", "direct_id", "to", "work_id", "proof"}
		plain, err := wire.Decode(greet, lax)
		t.NoError(err)
		for _, name := range members {
			valid := schemas.Validate("agh-envelope", with(greet, name, "null")) == nil
			t.True(valid == slices.Contains(nullable, name), "%s: null is valid: %v", name, valid)
			if valid {
				e, err := wire.Decode(with(greet, name, "null"), wire.Options{Now: now, Strict: true})
				t.NoError(err)
				t.Equal(e, plain)
			}
		}
	})
	spec.Check(t, "seed-001#102: ext takes keys with any JSON value", func(t *spec.T) {
		t.NoError(schemas.Validate("agh-envelope", with(say, "ext", `{"a":1,"b":"x","c":null,"d":[],"e":{},"f":true,"":0}`)))
		t.True(schemas.Validate("agh-envelope", with(say, "ext", `[]`)) != nil, "an array is no ext")
	})
	spec.Check(t, "seed-001#103: on the vectors", func(t *spec.T) {
		for _, v := range loadVectors(t.T).Signature {
			// Handles belong to the trust profile and are outside of the v0
			// grammar.
			agree(t, v.Envelope, "vector "+v.Name)
		}
		for _, data := range append(slices.Collect(mapValues(kinds())), answer, read(t.T, "seed-thread.json"), read(t.T, "seed-direct.json")) {
			agree(t, data, "sample")
			t.NoError(schemas.Validate("agh-envelope", data))
		}
	})
	spec.Check(t, "seed-001#103: on generated envelopes", func(t *spec.T) {
		rapid.Check(t.T, func(r *rapid.T) {
			data := drawEnvelope(r)
			ours, theirs := strict(data), schemas.Validate("agh-envelope", data)
			if (ours == nil) != (theirs == nil) {
				r.Fatalf("%s\nours: %v\nschema: %v", data, ours, theirs)
			}
		})
		t.True(true, "they agree")
	})
}

func mapValues(m map[wire.Kind][]byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func agree(t *spec.T, data []byte, what string) {
	t.Helper()
	ours, theirs := strict(data), schemas.Validate("agh-envelope", data)
	t.True((ours == nil) == (theirs == nil), "%s: ours %v, the schema's %v", what, ours, theirs)
}

// strict returns the validator's result for what a schema can express: it ignores
// age, surface and work against the kind, and the body.
func strict(data []byte) error {
	_, err := wire.Decode(data, wire.Options{Strict: true, SkipFreshness: true})
	rejection := rejected(err)
	if rejection == nil {
		return nil
	}
	unstated := rejection.Reason == wire.InvalidSurface || rejection.Reason == wire.VerificationFailed || strings.HasPrefix(rejection.Member, "body.") ||
		strings.Contains(rejection.Detail, "is missing; receipts") || strings.Contains(rejection.Detail, "not allowed on greet") ||
		strings.Contains(rejection.Detail, "a whois response names")
	if unstated && grammars(data) {
		return nil
	}
	return err
}

// grammars reports whether surface, ids and work follow the schema's rules. The
// validator does not reach members that are not allowed in the kind.
func grammars(data []byte) bool {
	var e struct {
		Surface *string `json:"surface"`
		Thread  *string `json:"thread_id"`
		Direct  *string `json:"direct_id"`
		Work    *string `json:"work_id"`
	}
	if err := json.Unmarshal(data, &e, json.MatchCaseInsensitiveNames(false)); err != nil {
		return false
	}
	return (e.Surface == nil || *e.Surface == "thread" || *e.Surface == "direct") && (e.Thread == nil || *e.Thread != "") &&
		(e.Direct == nil || wire.ValidDirect(*e.Direct)) && (e.Work == nil || wire.ValidWork(*e.Work))
}

// drawEnvelope draws a valid envelope and corrupts up to three of its members.
func drawEnvelope(r *rapid.T) []byte {
	data := rapid.SampledFrom([][]byte{say, capability, receipt, trace, greet, whois, answer}).Draw(r, "kind")
	odd := []string{
		"", "null", "true", "0", "7", "7.0", "7.5", "-1", "-0", "1e3", "70e-1", `""`, `"x"`, `"X"`, `"a.b-c_d"`, `"a@b"`, `"thread"`, `"direct"`, `"say"`, `"greet"`,
		`"agh-network/v0"`, `"agh-network/v1"`, `"thread_x"`, room, `"direct_AB"`, `"work_1"`, `"work_"`, `"job"`, `[]`, `{}`, `{"a":1}`, `[1]`,
		quoted(repeat("a", 64)), quoted(repeat("a", 65)), quoted(repeat("a", 128)), quoted(repeat("a", 129)), quoted("work_" + repeat("a", 64)), quoted("work_" + repeat("a", 65)),
	}
	names := []string{
		"protocol", "id", "kind", "channel", "surface", "thread_id", "direct_id", "from", "to", "work_id",
		"reply_to", "trace_id", "causation_id", "ts", "expires_at", "body", "proof", "ext", "priority", "Kind",
	}
	for i := range rapid.IntRange(0, 3).Draw(r, "changes") {
		data = with(data, rapid.SampledFrom(names).Draw(r, fmt.Sprint("name", i)), rapid.SampledFrom(odd).Draw(r, fmt.Sprint("value", i)))
	}
	return data
}
