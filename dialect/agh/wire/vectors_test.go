package wire_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/internal/jsonscan"
)

type vectors struct {
	Capability []struct {
		Canonical, Digest string
		Capability        json.RawMessage
	} `json:"capability_digest"`
	Direct    []map[string]string `json:"direct_id"`
	JCS       []struct{ Canonical, Input, SHA256 string }
	Route     []map[string]string
	Signature []struct {
		Name, Canonical, From string
		CanonicalLen          int             `json:"canonical_len"`
		CanonicalSHA          string          `json:"canonical_sha256"`
		Seed                  string          `json:"seed_hex"`
		Sig                   string          `json:"sig_b64url"`
		Envelope              json.RawMessage `json:"signed_envelope"`
	}
	Negative []struct {
		Name     string
		State    string `json:"expect_state"`
		Reason   string `json:"expect_reason"`
		Envelope json.RawMessage
	} `json:"signature_negative"`
}

func loadVectors(t testing.TB) *vectors {
	t.Helper()
	v := &vectors{}
	if err := json.Unmarshal(read(t, "agh-vectors.json"), v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVectors(t *testing.T) {
	t.Parallel()
	v := loadVectors(t)
	spec.Check(t, "agh-network#48 seed-001#78: direct ids", func(t *spec.T) {
		t.Equal(len(v.Direct), 6)
		for _, d := range v.Direct {
			for _, pair := range [][2]string{{d["peer_x"], d["peer_y"]}, {d["peer_y"], d["peer_x"]}} {
				got, err := wire.DirectID(d["workspace_id"], d["channel"], pair[0], pair[1])
				t.NoError(err)
				t.Equal(got, d["direct_id"])
			}
			preimage, err := hex.DecodeString(d["preimage_hex"])
			t.NoError(err)
			sum := sha256.Sum256(preimage)
			t.Equal("direct_"+hex.EncodeToString(sum[:16]), d["direct_id"])
		}
	})
	spec.Check(t, "agh-network#52 agh-network#115: route tokens and subjects", func(t *spec.T) {
		t.Equal(len(v.Route), 6)
		for _, r := range v.Route {
			token, err := wire.RouteToken(r["peer_id"])
			t.NoError(err)
			t.Equal(token, r["route_token"])
			broadcast, err := wire.BroadcastSubject(0, r["workspace_id"], r["channel"])
			t.NoError(err)
			t.Equal(broadcast, r["broadcast_subject"])
			peer, err := wire.PeerSubject(0, r["workspace_id"], r["channel"], r["peer_id"])
			t.NoError(err)
			t.Equal(peer, r["peer_subject"])
			e := &wire.Envelope{Protocol: wire.Protocol, Workspace: r["workspace_id"], Channel: r["channel"], Kind: wire.Say}
			subject, err := e.Subject()
			t.NoError(err)
			t.Equal(subject, broadcast)
			e.To = r["peer_id"]
			subject, err = e.Subject()
			t.NoError(err)
			t.Equal(subject, peer)
		}
	})
	spec.Check(t, "agh-network#53: capability digests", func(t *spec.T) {
		t.Equal(len(v.Capability), 3)
		for _, c := range v.Capability {
			doc, err := wire.ReadCapability(c.Capability)
			t.NoError(err)
			t.Equal(string(doc.DigestBytes()), c.Canonical)
			t.Equal(doc.ComputeDigest(), c.Digest)
		}
		doc := wire.CapabilityDoc{ID: "a", Summary: "<&>\u2028\u2029é", Outcome: "o"}
		t.Equal(string(doc.DigestBytes()), `{"id":"a","summary":"\u003c\u0026\u003e\u2028\u2029é","outcome":"o"}`)
	})
	spec.Check(t, "agh-network#120: canonical JSON", func(t *spec.T) {
		t.Equal(len(v.JCS), 5)
		for _, c := range v.JCS {
			got, err := wire.Canonical([]byte(c.Input))
			t.NoError(err)
			t.Equal(string(got), c.Canonical)
			sum := sha256.Sum256(got)
			t.Equal(hex.EncodeToString(sum[:]), c.SHA256)
		}
	})
}

// trusting accepts handles and both protocols, regardless of age.
var trusting = wire.Options{SkipFreshness: true, Handles: true, V1: true}

func judge(data []byte) (wire.Trust, wire.Reason) {
	e, err := wire.Decode(data, trusting)
	if err != nil {
		return wire.Rejected, reason(data, trusting)
	}
	trust, rejection := wire.Verify(e, data)
	if rejection != nil {
		return trust, rejection.Reason
	}
	return trust, ""
}

func TestSignatureVectors(t *testing.T) {
	t.Parallel()
	v := loadVectors(t)
	spec.Check(t, "agh-network#120: positive vectors verify and are signed again byte for byte", func(t *spec.T) {
		t.Equal(len(v.Signature), 3)
		for _, c := range v.Signature {
			trust, why := judge(c.Envelope)
			t.Equal(trust, wire.Verified)
			t.Equal(why, wire.Reason(""))
			t.Equal(len(c.Canonical), c.CanonicalLen)

			seed, err := hex.DecodeString(c.Seed)
			t.NoError(err)
			key, err := wire.KeyFromSeed(c.From[:len(c.From)-33], seed)
			t.NoError(err)
			t.Equal(key.Handle(), c.From)
			signed, err := key.Sign(with(c.Envelope, "proof", "null"))
			t.NoError(err)
			trust, _ = judge(signed)
			t.Equal(trust, wire.Verified)
			e, err := wire.Decode(signed, trusting)
			t.NoError(err)
			t.Contains(string(e.Proof), `"sig":"`+c.Sig+`"`)
			canonical, err := wire.Canonical(with(signed, "proof", string(with(e.Proof, "sig", ""))))
			t.NoError(err)
			t.Equal(string(canonical), c.Canonical)
			sum := sha256.Sum256(canonical)
			t.Equal(hex.EncodeToString(sum[:]), c.CanonicalSHA)
		}
	})
	for _, c := range v.Negative {
		spec.Check(t, "agh-network#122: negative vector "+c.Name, func(t *spec.T) {
			trust, why := judge(c.Envelope)
			want := wire.Trust(c.State)
			if c.State == "malformed" {
				want = wire.Rejected
			}
			t.Equal(trust, want)
			t.Equal(why, wire.Reason(c.Reason))
		})
	}
	spec.Check(t, "agh-network#121: a null member removed or added breaks it", func(t *spec.T) {
		greet := v.Signature[0].Envelope
		for _, name := range []string{"causation_id", "expires_at", "reply_to", "to"} {
			trust, why := judge(with(greet, name, ""))
			t.Equal(trust, wire.Rejected)
			t.Equal(why, wire.VerificationFailed)
		}
		for _, name := range []string{"surface", "thread_id", "work_id"} {
			trust, _ := judge(with(greet, name, "null"))
			t.Equal(trust, wire.Rejected)
		}
	})
	spec.Check(t, "seed-001#83: surface, container and work are signed", func(t *spec.T) {
		thread, direct := v.Signature[1].Envelope, v.Signature[2].Envelope
		for _, data := range [][]byte{thread, direct} {
			trust, _ := judge(data)
			t.Equal(trust, wire.Verified)
		}
		for _, data := range [][]byte{
			with(thread, "thread_id", `"thread_other"`), with(thread, "work_id", `"work_tide_2"`),
			with(thread, "surface", `"direct"`, "thread_id", "", "direct_id", quoted("direct_"+repeat("0", 32))),
			with(direct, "direct_id", quoted("direct_"+repeat("0", 32))), with(direct, "work_id", `"work_tide_2"`),
		} {
			trust, why := judge(data)
			t.Equal(trust, wire.Rejected)
			t.Equal(why, wire.VerificationFailed)
		}
	})
	spec.Check(t, "agh-network#123: who is rejected and who is merely unverified", func(t *spec.T) {
		signed := v.Signature[1].Envelope
		stripped := with(signed, "proof", "null")
		for name, c := range map[string]struct {
			data  []byte
			trust wire.Trust
			why   wire.Reason
		}{
			"a handle without proof":          {stripped, wire.Rejected, wire.VerificationFailed},
			"a handle, proof left out":        {with(signed, "proof", ""), wire.Rejected, wire.VerificationFailed},
			"a v0 id without proof":           {with(stripped, "from", `"crane.s01"`), wire.Unverified, ""},
			"a foreign profile":               {with(stripped, "from", `"crane.s01"`, "proof", `{"profile":"x/v1"}`), wire.Unverified, ""},
			"a v0 id with a baseline proof":   {with(signed, "from", `"crane.s01"`), wire.Rejected, wire.VerificationFailed},
			"another nickname of the key":     {with(signed, "from", `"scout_8@d38bbdb92d91ca423a770fb02f980223"`), wire.Rejected, wire.VerificationFailed},
			"a handle of another fingerprint": {with(signed, "from", quoted("scout_7@"+repeat("a", 32))), wire.Rejected, wire.VerificationFailed},
		} {
			trust, why := judge(c.data)
			t.True(trust == c.trust && why == c.why, "%s: got %s, %s", name, trust, why)
		}
	})
	spec.Check(t, "agh-network#125: the route token of a handle is its fingerprint", func(t *spec.T) {
		token, err := wire.RouteToken("scout_7@d38bbdb92d91ca423a770fb02f980223")
		t.NoError(err)
		t.Equal(token, "d38bbdb92d91ca423a770fb02f980223")
	})
}

// Each step of the profile has its own fault, and the first fault is reported.
func TestVerifyOrder(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	signed := loadVectors(t).Signature[1].Envelope
	e, err := wire.Decode(signed, trusting)
	c.NoError(err)
	broken := [][2]string{
		{"alg", `"ed25519"`},
		{"pubkey", `"8O1EUwM0Du4QexSmFf13vlkrGAE2Xn3A2PDop6IUN2E="`},
		{"key_id", `"sha256:00"`},
		{"sig", `"AA"`},
	}
	members := []string{"proof.alg", "proof.pubkey", "proof.key_id", "from", "proof.sig", "proof.sig"}
	// From the last step to the first: each fault hides later ones.
	data, proof := with(signed, "channel", `"other"`), e.Proof
	check := func(want string) {
		t.Helper()
		broken := with(data, "proof", string(proof))
		e, err := wire.Decode(broken, trusting)
		c.NoError(err)
		trust, why := wire.Verify(e, broken)
		c.Equal(trust, wire.Rejected)
		c.Equal(why.Member, want)
	}
	check(members[5])
	proof = with(proof, broken[3][0], broken[3][1])
	check(members[4])
	data = with(data, "from", `"crane.s01"`)
	check(members[3])
	proof = with(proof, broken[2][0], broken[2][1])
	check(members[2])
	proof = with(proof, broken[1][0], broken[1][1])
	check(members[1])
	proof = with(proof, broken[0][0], broken[0][1])
	check(members[0])
}

// A key and a signature have one form each, although base64 decoders skip line
// breaks.
func TestProofHasOneForm(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	signed := loadVectors(t).Signature[1].Envelope
	e, err := wire.Decode(signed, trusting)
	c.NoError(err)
	for _, name := range []string{"sig", "pubkey"} {
		text, ok := jsonscan.Text(jsonscan.Member(e.Proof, name))
		c.True(ok, "the proof has %s", name)
		for _, other := range []string{text + "\n", "\r\n" + text, text[:20] + "\n" + text[20:], text + "=", text + "A", strings.NewReplacer("-", "+", "_", "/").Replace(text)} {
			if other == text {
				continue
			}
			trust, why := judge(with(signed, "proof", string(with(e.Proof, name, quoted(other)))))
			c.Equal(trust, wire.Rejected)
			c.Equal(why, wire.VerificationFailed)
		}
	}
	trust, _ := judge(signed)
	c.Equal(trust, wire.Verified)
}

// A number that a double cannot hold has no canonical form; it is not written as
// another number.
func TestCanonicalNumbers(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	for _, bad := range []string{`1e309`, `-1e309`, `{"a":[1,{"b":1E400}]}`, `1.8e308`, `1` + repeat("0", 309)} {
		_, err := wire.Canonical([]byte(bad))
		c.ErrorContains(err, "no canonical form")
	}
	for in, want := range map[string]string{
		`1.7976931348623157e308`: `1.7976931348623157e+308`, `1e-400`: `0`, `-1e-400`: `0`, `{"1e400":"1e400"}`: `{"1e400":"1e400"}`, `[true,1e2,null]`: `[true,100,null]`,
	} {
		got, err := wire.Canonical([]byte(in))
		c.NoError(err)
		c.Equal(string(got), want)
	}
	// So nothing is signed or verified that others read as another number.
	key, err := wire.NewKey("mason")
	c.NoError(err)
	odd := with(say, "from", quoted(key.Handle()), "ext", `{"a.n":1e400}`)
	_, err = key.Sign(odd)
	c.ErrorContains(err, "no canonical form")
	signed, err := key.Sign(with(odd, "ext", `{"a.n":1.7976931348623157e308}`))
	c.NoError(err)
	trust, why := judge(with(signed, "ext", `{"a.n":1e400}`))
	c.Equal(trust, wire.Rejected)
	c.Equal(why, wire.VerificationFailed)
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	key, err := wire.NewKey("mason")
	c.NoError(err)
	text, err := key.Marshal()
	c.NoError(err)
	again, err := wire.ParseKey(text)
	c.NoError(err)
	c.Equal(again.Handle(), key.Handle())
	c.True(wire.ValidHandle(key.Handle()), "%s is a handle", key.Handle())
	c.False(key.String() == string(text), "a key prints itself")
	for _, bad := range []string{
		``, `{}`, `{"profile":"x"}`, string(with(text, "seed", `"AA"`)), string(with(text, "handle", `"mason"`)),
		string(with(text, "handle", quoted("mason@"+repeat("0", 32)))), string(with(text, "seed", `"!"`)),
	} {
		_, err := wire.ParseKey([]byte(bad))
		c.True(err != nil, "%q is refused", bad)
	}
	_, err = wire.NewKey("Mason")
	c.ErrorContains(err, `"Mason" does not match`)
	_, err = wire.KeyFromSeed("mason", []byte("short"))
	c.ErrorContains(err, "32 bytes, not 5")
	for _, bad := range []string{`{`, `[]`, `{"from":"crane.s01"}`} {
		_, err := key.Sign([]byte(bad))
		c.True(err != nil, "%s is not signed", bad)
	}
}
