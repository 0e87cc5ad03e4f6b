package wire_test

import (
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/wire"
)

// bodies returns copies of an envelope, each with another body.
func bodies(data []byte, list ...string) [][]byte {
	all := make([][]byte, len(list))
	for i, body := range list {
		all[i] = with(data, "body", body)
	}
	return all
}

const lift = `{"id":"lift-load","summary":"Lift one load.","outcome":"The load stands on the quay.",` +
	`"digest":"sha256:ee37844f021db568e388a9fcb0fa5c476512cc19e1f2713b6e0c9ca4f0b2e898"}`

func inCapability(changes ...string) string {
	return `{"capability":` + string(with([]byte(lift), changes...)) + `}`
}

func inCard(changes ...string) string { return string(with([]byte(card), changes...)) }

func TestBodies(t *testing.T) {
	t.Parallel()
	spec.Check(t, "agh-network#37: a say needs text, and its artifacts are a list of anything", func(t *spec.T) {
		rejects(t, wire.Malformed, bodies(say, `{}`, `{"text":""}`, `{"text":" \n\t"}`, `{"text":5}`, `{"text":null}`, `{"text":["x"]}`,
			`{"text":"x","artifacts":{}}`, `{"text":"x","artifacts":"a"}`, `{"text":"x","intent":5}`)...)
		accepts(t, bodies(say, `{"text":"x","artifacts":[]}`, `{"text":"x","artifacts":[1,"a",null,{"b":[]},[true]]}`,
			`{"text":" x ","intent":"anything at all"}`)...)
	})
	spec.Check(t, "agh-network#38: accepted and kept", func(t *spec.T) {
		for _, data := range kinds() {
			e, err := wire.Decode(data, lax)
			t.NoError(err)
			more := with(data, "body", string(with(e.Body, "acme.more", `{"n":1.50}`)))
			accepts(t, more)
			e, err = wire.Decode(more, lax)
			t.NoError(err)
			t.Contains(string(e.Body), `"acme.more":{"n":1.50}`)
		}
	})
	spec.Check(t, "agh-network#39: a greet's card names its sender and has all four lists", func(t *spec.T) {
		in := func(card string) []byte { return with(greet, "body", `{"peer_card":`+card+`}`) }
		rejects(t, wire.Malformed, in(inCard("peer_id", `"tug.s02"`)), in(inCard("peer_id", "")), in(`null`), in(`[]`), with(greet, "body", `{}`),
			in(inCard("display_name", `5`)), in(inCard("ext", `[]`)), with(greet, "body", `{"summary":5,"peer_card":`+card+`}`))
		for _, list := range []string{"profiles_supported", "capabilities", "artifacts_supported", "trust_modes_supported"} {
			rejects(t, wire.Malformed, in(inCard(list, "")), in(inCard(list, "null")), in(inCard(list, `"x"`)), in(inCard(list, `[1]`)))
			accepts(t, in(inCard(list, "[]")), in(inCard(list, `["a","b"]`)))
		}
		accepts(t, in(inCard("display_name", `"Crane"`, "ext", `{"a.b":1}`)), in(inCard("display_name", "null")))
	})
	spec.Check(t, "agh-network#40: a whois asks without a card or answers with the sender's card", func(t *spec.T) {
		rejects(t, wire.Malformed, bodies(whois, `{}`, `{"type":"ask"}`, `{"type":5}`, `{"type":"request","peer_card":`+card+`}`,
			`{"type":"request","query":5}`)...)
		rejects(t, wire.Malformed, with(answer, "reply_to", ""), with(answer, "body", `{"type":"response"}`),
			with(answer, "body", `{"type":"response","peer_card":null}`),
			with(answer, "body", `{"type":"response","peer_card":`+inCard("peer_id", `"tug.s02"`)+`}`))
		accepts(t, answer, with(whois, "body", `{"type":"request","query":""}`), with(whois, "body", `{"type":"request","peer_card":null}`))
	})
	spec.Check(t, "agh-network#41: a capability is nested and has id, summary, outcome and digest", func(t *spec.T) {
		rejects(t, wire.Malformed, bodies(capability, `{}`, lift, `{"capability":[]}`, `{"capability":null}`)...)
		for _, name := range []string{"id", "summary", "outcome", "digest"} {
			rejects(t, wire.Malformed, bodies(capability, inCapability(name, ""), inCapability(name, `" "`), inCapability(name, `5`), inCapability(name, "null"))...)
		}
		rejects(t, wire.Malformed, bodies(capability, inCapability("examples", `"x"`), inCapability("constraints", `[1]`), inCapability("version", `1`))...)
	})
	spec.Check(t, "agh-network#42: the code, and that no receipt answers", func(t *spec.T) {
		data := with(capability, "to", `"tug.s02"`, "work_id", `"work_1"`, "body", inCapability("digest", quoted("sha256:"+repeat("0", 64))))
		rejects(t, wire.VerificationFailed, data, with(capability, "body", inCapability("summary", `"Lift two loads."`)))
		_, err := wire.Decode(data, lax)
		t.False(rejected(err).Answerable, "a receipt answers it")
	})
	spec.Check(t, "agh-network#43: requirements are distinct, and their order does not change the digest", func(t *spec.T) {
		rejects(t, wire.Malformed, bodies(capability, inCapability("requirements", `["a",""]`), inCapability("requirements", `[" "]`),
			inCapability("requirements", `["a","b"," a "]`))...)
		one, err := wire.ReadCapability(with([]byte(lift), "requirements", `["b","a"]`))
		t.NoError(err)
		other, err := wire.ReadCapability(with([]byte(lift), "requirements", `["a"," b"]`))
		t.NoError(err)
		t.Equal(one.ComputeDigest(), other.ComputeDigest())
		t.False(one.ComputeDigest() == "sha256:ee37844f021db568e388a9fcb0fa5c476512cc19e1f2713b6e0c9ca4f0b2e898", "requirements are not digested")
		accepts(t, with(capability, "body", inCapability("requirements", `["b","a"]`, "digest", quoted(one.ComputeDigest()))))
		// Other lists keep their order and lose blank entries.
		ordered, err := wire.ReadCapability(with([]byte(lift), "examples", `["b"," ","a"]`))
		t.NoError(err)
		t.Contains(string(ordered.DigestBytes()), `"examples":["b","a"]`)
	})
	spec.Check(t, "agh-network#44: a receipt has a known status, and a reason where the status needs one", func(t *spec.T) {
		in := func(status, reason string) string {
			body := `{"for_id":"m-0","status":` + quoted(status)
			if reason != "" {
				body += `,"reason_code":` + reason
			}
			return body + `}`
		}
		accepts(t, bodies(receipt, in("accepted", ""), in("accepted", "null"), in("canceled", ""), in("canceled", "null"), in("canceled", `"busy"`))...)
		rejects(t, wire.Malformed, bodies(receipt, in("accepted", `"busy"`), in("accepted", `""`), in("done", ""), in("", ""), in("canceled", `"bored"`))...)
		for _, status := range []string{"rejected", "duplicate", "expired", "unsupported"} {
			accepts(t, with(receipt, "body", in(status, `"malformed"`)))
			rejects(t, wire.Malformed, bodies(receipt, in(status, ""), in(status, "null"), in(status, `"bored"`), in(status, `""`), in(status, `5`))...)
		}
		rejects(t, wire.Malformed, bodies(receipt, `{"status":"accepted"}`, `{"for_id":" ","status":"accepted"}`, `{"for_id":5,"status":"accepted"}`,
			`{"for_id":"m","status":"accepted","detail":5}`)...)
		accepts(t, with(receipt, "body", `{"for_id":"m","status":"accepted","detail":null}`))
		for _, code := range []string{
			"malformed", "expired", "duplicate", "unsupported_kind", "unsupported_profile", "verification_failed", "not_target", "work_closed",
			"work_container_mismatch", "invalid_surface", "legacy_field_rejected", "not_found", "conversation_not_found", "busy", "internal",
		} {
			accepts(t, with(receipt, "body", in("rejected", quoted(code))))
		}
	})
	spec.Check(t, "agh-network#45: a trace has one of the six states", func(t *spec.T) {
		for _, state := range []string{"submitted", "working", "needs_input", "completed", "failed", "canceled"} {
			accepts(t, with(trace, "body", `{"state":`+quoted(state)+`}`))
		}
		rejects(t, wire.Malformed, bodies(trace, `{}`, `{"state":"done"}`, `{"state":"Working"}`, `{"state":5}`, `{"state":null}`,
			`{"state":"working","message":5}`, `{"state":"working","artifact_refs":{}}`)...)
		accepts(t, bodies(trace, `{"state":"working","result":{}}`, `{"state":"working","result":[1],"artifact_refs":[{}]}`)...)
	})
	spec.Check(t, "agh-network#46: under a policy that looks at proofs", func(t *spec.T) {
		privileged := inCard("capabilities", `["lift"," task.write "]`)
		greets, answers := with(greet, "body", `{"peer_card":`+privileged+`}`), with(answer, "body", `{"type":"response","peer_card":`+privileged+`}`)
		for _, data := range [][]byte{greets, answers} {
			verify := wire.Options{Now: now, PrivilegedNeedsProof: true}
			t.Equal(reason(data, verify), wire.VerificationFailed)
			t.Equal(reason(with(data, "proof", "{}"), verify), wire.VerificationFailed)
			t.Equal(reason(with(data, "proof", `{"x":1}`), verify), wire.Reason(""))
			t.Equal(reason(data, lax), wire.Reason(""))
		}
		t.Equal(reason(greet, wire.Options{Now: now, PrivilegedNeedsProof: true}), wire.Reason(""))
	})
}

// Writing a body that was read returns the same.
func TestBodiesWrite(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	raw := &wire.CapabilityDoc{ID: "a", Summary: "s", Outcome: "o", Version: "1", ContextNeeded: []string{"c"}, Requirements: []string{"r"}}
	doc := raw.Normalized()
	peer := wire.PeerCard{
		PeerID: "crane.s01", DisplayName: "Crane", Profiles: []string{wire.Protocol}, Capabilities: []string{"a"},
		Artifacts: []string{}, TrustModes: []string{"verified"}, Ext: []byte(`{"x.y":1}`),
	}
	type writer interface {
		AppendJSON([]byte) ([]byte, error)
	}
	for _, test := range []struct {
		in      []byte
		content writer
	}{
		{say, &wire.SayBody{Text: "a", Intent: "notice", Artifacts: []byte(`[1]`)}},
		{say, &wire.SayBody{Text: "a"}},
		{capability, &wire.CapabilityBody{Capability: doc}},
		{receipt, &wire.ReceiptBody{ForID: "m", Status: wire.StatusRejected, Reason: wire.Busy, Detail: "later"}},
		{receipt, &wire.ReceiptBody{ForID: "m", Status: wire.StatusAccepted}},
		{trace, &wire.TraceBody{State: wire.Completed, Message: "m", Result: []byte(`{"a":1}`), ArtifactRefs: []byte(`[]`)}},
		{greet, &wire.GreetBody{Card: peer, Summary: "here"}},
		{whois, &wire.WhoisBody{Query: "a"}},
		{answer, &wire.WhoisBody{Response: true, Card: &peer}},
	} {
		body, err := test.content.AppendJSON(nil)
		c.NoError(err)
		e, err := wire.Decode(with(test.in, "body", string(body)), lax)
		c.NoError(err)
		c.Equal(e.Content, any(test.content))
	}
	_, err := (&wire.TraceBody{State: wire.Completed, Result: []byte(`[1]`)}).AppendJSON(nil)
	c.ErrorContains(err, "not a JSON object")
}

func TestPreview(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	for _, test := range []struct {
		data []byte
		want string
	}{
		{with(say, "body", `{"text":" hello \n"}`), "hello"},
		{capability, "Lift one load."},
		{receipt, ""},
		{with(receipt, "body", `{"for_id":"m","status":"accepted","detail":" fine "}`), "fine"},
		{with(trace, "body", `{"state":"working","message":"half way"}`), "half way"},
		{with(whois, "body", `{"type":"request","query":"lift"}`), "lift"},
		{answer, ""},
		{greet, "crane.s01 is present"},
		{with(greet, "body", `{"summary":" at work ","peer_card":`+card+`}`), "at work"},
		{with(greet, "body", `{"peer_card":`+inCard("display_name", `"Crane"`, "capabilities", `["lift","tow","moor"]`)+`}`), "Crane ready for lift +2 more"},
		{with(greet, "body", `{"peer_card":`+inCard("capabilities", `["lift"]`, "ext", `{"agh.capabilities_brief":[{"id":"lift","summary":"Lift it."}]}`)+`}`), "crane.s01 ready for Lift it."},
	} {
		e, err := wire.Decode(test.data, lax)
		c.NoError(err)
		c.Equal(e.Preview(), test.want)
	}
	long := &wire.PeerCard{PeerID: "a"}
	c.Equal(len([]rune(long.Summarize(repeat("é", 200)))), 160)
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	catalog := []wire.CapabilityDoc{{ID: "tow", Summary: "Tow.", Outcome: "o"}, {ID: "moor", Summary: "Moor.", Outcome: "o", Requirements: []string{"z", "a"}}, {ID: "lift", Summary: "Lift.", Outcome: "o"}}
	ids := func(list []wire.CapabilityDoc) []string {
		names := []string{}
		for _, doc := range list {
			names = append(names, doc.ID)
		}
		return names
	}
	asked := func(t *spec.T, ext string) wire.CatalogRequest {
		e, err := wire.Decode(with(whois, "ext", ext), lax)
		t.NoError(err)
		return e.CatalogRequest()
	}
	spec.Check(t, "agh-network#104: the catalog is wanted only if agh.include names it", func(t *spec.T) {
		for ext, want := range map[string]bool{
			`{}`: false, `{"agh.include":["capability_catalog"]}`: true, `{"agh.include":["x",5,"capability_catalog"]}`: true,
			`{"agh.include":["x"]}`: false, `{"agh.include":"capability_catalog"}`: false, `{"agh.capability_ids":["tow"]}`: false,
		} {
			t.Equal(asked(t, ext).Wanted, want)
		}
	})
	spec.Check(t, "agh-network#105: a filter keeps the catalog's order, and a bad one selects nothing", func(t *spec.T) {
		for filter, want := range map[string][]string{
			``: {"tow", "moor", "lift"}, `["lift","tow"]`: {"tow", "lift"}, `["lift","nope"]`: {"lift"}, `["nope"]`: {}, `[]`: {},
			`[" ",""]`: {}, `"tow"`: {}, `{"tow":1}`: {}, `["tow",5]`: {}, `[" lift "]`: {"lift"},
		} {
			ext := `{"agh.include":["capability_catalog"]}`
			if filter != "" {
				ext = `{"agh.include":["capability_catalog"],"agh.capability_ids":` + filter + `}`
			}
			t.Equal(ids(asked(t, ext).Select(catalog)), want)
		}
	})
	spec.Check(t, "agh-network#106: a peer without a catalog offers empty lists and no brief", func(t *spec.T) {
		var card wire.PeerCard
		t.NoError(card.Offer(nil))
		t.Equal(card.Capabilities, []string{})
		t.Equal(card.Ext, []byte(nil))
		ext, err := wire.AppendCatalogExt(nil, wire.CatalogRequest{All: true}.Select(nil))
		t.NoError(err)
		t.Equal(string(ext), `{"agh.capability_catalog":{"capabilities":[]}}`)
	})
	spec.Check(t, "agh-network#107: the ids of the brief are those of the capabilities", func(t *spec.T) {
		var card wire.PeerCard
		t.NoError(card.Offer(catalog))
		t.Equal(card.Capabilities, []string{"tow", "moor", "lift"})
		t.Equal(string(card.Ext), `{"agh.capabilities_brief":[{"id":"tow","summary":"Tow."},{"id":"moor","summary":"Moor."},{"id":"lift","summary":"Lift."}]}`)
		t.Equal(card.Brief(), []wire.Brief{{ID: "tow", Summary: "Tow."}, {ID: "moor", Summary: "Moor."}, {ID: "lift", Summary: "Lift."}})
		card.Ext = nil
		t.Equal(card.Brief()[0], wire.Brief{ID: "tow"})
	})
	spec.Check(t, "agh-network#108: refused when misaligned", func(t *spec.T) {
		var card wire.PeerCard
		t.NoError(card.Offer(catalog))
		t.True(card.Aligned(catalog), "its own catalog fits")
		t.True(card.Aligned([]wire.CapabilityDoc{catalog[2], catalog[0], catalog[1]}), "order does not count")
		t.False(card.Aligned(catalog[:2]), "one too few")
		t.False(card.Aligned(append(catalog[:3:3], catalog[0])), "one twice")
	})
	t.Run("a response's catalog is read back", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		sent := wire.CatalogRequest{All: true}.Select(catalog)
		c.Equal(sent[1].Requirements, []string{"a", "z"})
		c.True(sent[0].Digest != "", "a digest goes out")
		ext, err := wire.AppendCatalogExt(nil, sent)
		c.NoError(err)
		e, err := wire.Decode(with(answer, "ext", string(ext)), lax)
		c.NoError(err)
		got, ok := e.Catalog()
		c.True(ok, "there is one")
		c.Equal(got, sent)
		for _, bad := range []string{`{}`, `{"agh.capability_catalog":[]}`, `{"agh.capability_catalog":{"capabilities":[5]}}`, `{"agh.capability_catalog":{"capabilities":[{"id":"a"}]}}`} {
			e, err := wire.Decode(with(answer, "ext", bad), lax)
			c.NoError(err)
			_, ok := e.Catalog()
			c.False(ok, "%s is a catalog", bad)
		}
	})
	spec.Check(t, "agh-network#101: which cards a query finds", func(t *spec.T) {
		card := &wire.PeerCard{PeerID: "tug.s02", DisplayName: "Tug", Profiles: []string{"p"}, Capabilities: []string{"tow"}, Artifacts: []string{"x"}, TrustModes: []string{"verified"}}
		for _, query := range []string{"", "  ", "tug.s02", "Tug", " tow ", "p", "x", "verified"} {
			t.True(card.Matches(query), "%q finds it", query)
		}
		for _, query := range []string{"tug", "TOW", "to", "tug.s0"} {
			t.False(card.Matches(query), "%q finds it", query)
		}
	})
}

func TestParseCatalog(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	got, err := wire.ParseCatalog([]byte(`{"capabilities":[{"id":" tow ","summary":"Tow.","outcome":"o","requirements":["b","a"]},{"id":"lift","summary":"s","outcome":"o"}]}`))
	c.NoError(err)
	c.Equal(len(got), 2)
	c.Equal([]any{got[0].ID, got[0].Requirements}, []any{"tow", []string{"a", "b"}})
	c.Equal(got[0].Digest, got[0].ComputeDigest())
	got, err = wire.ParseCatalog([]byte(`{"capabilities":[]}`))
	c.NoError(err)
	c.Equal(got, []wire.CapabilityDoc{})
	one := `{"id":"a","summary":"s","outcome":"o"}`
	for text, want := range map[string]string{
		`{`: "not valid JSON", `{}`: "the list `capabilities`", `[]`: "the list `capabilities`", `{"capabilities":[5]}`: "capability 1 is not an object",
		`{"capabilities":[{"id":"a"}]}`:                  "capability 1: `summary` is missing",
		`{"capabilities":[` + one + `,` + one + `]}`:     `"a" is listed twice`,
		`{"capabilities":[` + lift + `]}`:                `the member "digest"`,
		`{"capabilities":[{"id":"a","workspace_id":1}]}`: `the member "workspace_id"`,
	} {
		_, err := wire.ParseCatalog([]byte(text))
		c.ErrorContains(err, want)
	}
}
