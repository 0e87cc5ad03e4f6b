package identity_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
)

func contains(err error, fragment string) bool {
	return err != nil && strings.Contains(err.Error(), fragment)
}

func TestPassportForms(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{
			"defaults",
			`{"name":"quill"}`,
			`{"name":"quill","owner":"","provider":null,"model":null,"cost":null,"region":null,` +
				`"auth":{"scheme":"none","issuer":null,"audience":null,"key_fingerprint":null,"claim":{}},` +
				`"kind":null,"hub_id":null,"version":1,"agent_id":"","created_at":""}`,
		},
		{
			"everything, unknown keys dropped",
			`{"name":"quill","owner":"o","provider":"p","model":"m","cost":{"input_per_mtok":0.10,"output_per_mtok":12345678901234567890.5,"latency_tier":"fast","x":1},"region":"eu",
			 "auth":{"scheme":"api_key","issuer":"i","audience":"a","key_fingerprint":"k","claim":{"token":"t"},"x":1},
			 "kind":"human","hub_id":"h","version":7,"agent_id":"a1","created_at":"2026-03-09T10:15:42+02:00","sequence":4}`,
			`{"name":"quill","owner":"o","provider":"p","model":"m","cost":{"input_per_mtok":0.10,"output_per_mtok":12345678901234567890.5,"latency_tier":"fast"},"region":"eu",` +
				`"auth":{"scheme":"api_key","issuer":"i","audience":"a","key_fingerprint":"k","claim":{"token":"t"}},` +
				`"kind":"human","hub_id":"h","version":7,"agent_id":"a1","created_at":"2026-03-09T08:15:42.000000Z"}`,
		},
		{
			"nulls",
			`{"name":"quill","owner":null,"auth":null,"cost":{"input_per_mtok":null},"created_at":"yesterday"}`,
			`{"name":"quill","owner":"","provider":null,"model":null,"cost":{"input_per_mtok":null,"output_per_mtok":null,"latency_tier":null},"region":null,` +
				`"auth":{"scheme":"none","issuer":null,"audience":null,"key_fingerprint":null,"claim":{}},` +
				`"kind":null,"hub_id":null,"version":1,"agent_id":"","created_at":""}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var p identity.Passport
			if err := identity.Unmarshal("passport", []byte(tt.in), &p); err != nil {
				t.Fatal(err)
			}
			got, err := identity.Marshal(&p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPassportRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, fragment string }{
		{`{"kind":"robot"}`, `kind "robot" is unknown`},
		{`{"kind":""}`, `kind "" is unknown`},
		{`{"name":7}`, "passport.name"},
		{`{"version":1.5}`, "passport.version must be a whole number of at most 64 bits, not 1.5"},
		{`{"version":99999999999999999999}`, "passport.version must be a whole number of at most 64 bits, not 9999"},
		{`{"auth":{"claim":[]}}`, "a JSON object is wanted"},
		{`{"cost":{"input_per_mtok":"1"}}`, "a number or null is wanted"},
		{`{"created_at":7}`, "passport.created_at"},
		{`[]`, "must not be a JSON array"},
		{`{"name":"a","name":"b"}`, "duplicate"},
		{"{\"name\":\"\xff\"}", "UTF-8"},
		{`{"version":NaN}`, "invalid"},
	} {
		var p identity.Passport
		err := identity.Unmarshal("passport", []byte(tt.in), &p)
		if fault.CodeOf(err) != fault.Invalid || !contains(err, tt.fragment) {
			t.Errorf("%s: got %v, want an invalid refusal with %q", tt.in, err, tt.fragment)
		}
	}
	for _, tt := range []struct {
		p        identity.Passport
		fragment string
	}{
		{identity.Passport{Auth: identity.Auth{Scheme: "none"}}, "passport.name is missing"},
		{identity.Passport{Name: strings.Repeat("n", identity.MaxName+1), Auth: identity.Auth{Scheme: "none"}}, "at most 1024"},
		{identity.Passport{Name: "\xff", Auth: identity.Auth{Scheme: "none"}}, "UTF-8"},
		{identity.Passport{Name: "a"}, "scheme is empty"},
		{identity.Passport{Name: "a", Auth: identity.Auth{Scheme: "none"}, Kind: "robot"}, "robot"},
	} {
		if err := tt.p.Validate(); !contains(err, tt.fragment) {
			t.Errorf("got %v, want a refusal with %q", err, tt.fragment)
		}
	}
	good := identity.Passport{Name: strings.Repeat("n", identity.MaxName), Auth: identity.Auth{Scheme: "none"}, Kind: identity.Human}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

func TestClaimIsNeverStored(t *testing.T) {
	t.Parallel()
	p := &identity.Passport{
		Name: "quill", Version: 1, AgentID: "a1", CreatedAt: time.Date(2026, 3, 9, 10, 15, 42, 8113000, time.UTC),
		Provider: new("p"),
		Auth:     identity.Auth{Scheme: "api_key", Claim: identity.Object(`{"token":"s3cret","n":1}`)},
	}
	stored, err := p.Record()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(stored), "s3cret") {
		t.Fatalf("the claim is in %s", stored)
	}
	loaded, err := identity.ParseRecord(stored)
	if err != nil {
		t.Fatal(err)
	}
	hash := loaded.Auth.ClaimHash
	if !hash.Matches([]byte(`{ "n":1, "token":"s3cret" }`)) || hash.Matches([]byte(`{"token":"s3cret"}`)) || hash.Matches(nil) {
		t.Error("the hash does not tell the claim from others")
	}
	want := *p
	want.Auth.Claim, want.Auth.ClaimHash = nil, hash
	if diff := cmp.Diff(&want, loaded); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, err := loaded.Record(); err != nil || string(again) != string(stored) {
		t.Errorf("stored again as %s, %v; want %s", again, err, stored)
	}
	shown, err := identity.Marshal(loaded)
	if err != nil || strings.Contains(string(shown), "hash") || !strings.Contains(string(shown), `"claim":{}`) {
		t.Errorf("shown as %s, %v", shown, err)
	}
	if one, two := p.Redacted(), p.Redacted(); one.Auth.ClaimHash == two.Auth.ClaimHash {
		t.Error("two hashes share a salt")
	}
	if identity.ClaimHash("").Matches(nil) || identity.ClaimHash("zz:").Matches(nil) {
		t.Error("a broken hash matches")
	}
}

func TestResumeForms(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"empty", `{}`, `{"claimed_capabilities":[],"domains":[],"summary":"","examples":[],"observed":{},"version":1,"last_updated":""}`},
		{"nulls", `{"claimed_capabilities":null,"domains":null,"examples":null,"observed":null,"last_updated":null}`, `{"claimed_capabilities":[],"domains":[],"summary":"","examples":[],"observed":{},"version":1,"last_updated":""}`},
		{
			"everything",
			`{"claimed_capabilities":["ocr"],"domains":["d"],"summary":"Reads scans.","examples":[{"title":"invoice batch","x":1},{"title":"t","outcome":"o","task_id":"1","channel_id":"2","when":"3","note":"4"}],
			  "observed":{"ocr":{"n":3,"completed":2,"failed":1,"p50_latency_ms":840,"x":0}},"version":4,"last_updated":"2026-03-09T10:20:00+00:00","x":1}`,
			`{"claimed_capabilities":["ocr"],"domains":["d"],"summary":"Reads scans.","examples":[{"title":"invoice batch","outcome":"","task_id":null,"channel_id":null,"when":null,"note":""},{"title":"t","outcome":"o","task_id":"1","channel_id":"2","when":"3","note":"4"}],` +
				`"observed":{"ocr":{"n":3,"completed":2,"failed":1,"expired":0,"p50_latency_ms":840}},"version":4,"last_updated":"2026-03-09T10:20:00.000000Z"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r identity.Resume
			if err := identity.Unmarshal("resume", []byte(tt.in), &r); err != nil {
				t.Fatal(err)
			}
			got, err := identity.Marshal(&r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, err := identity.Marshal(r.Clone()); err != nil || string(again) != string(got) {
				t.Errorf("a clone is %s, %v", again, err)
			}
		})
	}
	var r identity.Resume
	if err := identity.Unmarshal("resume", []byte(`{"examples":[{"outcome":"o"}]}`), &r); !contains(err, "title is missing") {
		t.Errorf("an example without a title: %v", err)
	}
}

func TestRuleForms(t *testing.T) {
	t.Parallel()
	const defaults = `{"version":1,"access":{"inbound_from":["*"],"outbound_to":["*"],"channel_types":{"initiate":["*"],"accept":["*"]}},` +
		`"limits":{"max_concurrent_channels":0,"max_concurrent_tasks":0,"channel_ttl_default":"2h","task_ttl_default":"15m",` +
		`"rate":{"per_minute":0,"burst":0},"delegation_depth":5,"inbox":{"max_pending":1000,"overflow":"reject","high_water":null}}}`
	tests := []struct{ name, in, want string }{
		{"empty", `{}`, defaults},
		{"null blocks", `{"access":null,"limits":null}`, defaults},
		{"null inner blocks", `{"access":{"channel_types":null},"limits":{"rate":null,"inbox":null}}`, defaults},
		{
			"partial at every level",
			`{"version":3,"access":{"outbound_to":["a"],"channel_types":{"accept":[]}},"limits":{"delegation_depth":2,"channel_ttl_default":0,"rate":{"burst":4},"inbox":{"high_water":3},"x":1},"x":1}`,
			`{"version":3,"access":{"inbound_from":["*"],"outbound_to":["a"],"channel_types":{"initiate":["*"],"accept":[]}},` +
				`"limits":{"max_concurrent_channels":0,"max_concurrent_tasks":0,"channel_ttl_default":0,"task_ttl_default":"15m",` +
				`"rate":{"per_minute":0,"burst":4},"delegation_depth":2,"inbox":{"max_pending":1000,"overflow":"reject","high_water":3}}}`,
		},
		{
			"null list matches nothing",
			`{"access":{"inbound_from":null}}`,
			strings.Replace(defaults, `"inbound_from":["*"]`, `"inbound_from":[]`, 1),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r identity.Rule
			if err := identity.Unmarshal("rule", []byte(tt.in), &r); err != nil {
				t.Fatal(err)
			}
			got, err := identity.Marshal(&r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, err := identity.Marshal(r.Clone()); err != nil || string(again) != string(got) {
				t.Errorf("a clone is %s, %v", again, err)
			}
		})
	}
}

func TestHighWaterMark(t *testing.T) {
	t.Parallel()
	mark := func(n int64) *int64 { return &n }
	tests := []struct {
		inbox identity.Inbox
		want  int64
		on    bool
	}{
		{identity.Inbox{MaxPending: 10}, 8, true},
		{identity.Inbox{MaxPending: 1}, 1, true},
		{identity.Inbox{MaxPending: 9}, 7, true},
		{identity.Inbox{MaxPending: 10, HighWater: mark(3)}, 3, true},
		{identity.Inbox{MaxPending: 10, HighWater: mark(0)}, 0, false},
		{identity.Inbox{MaxPending: 10, HighWater: mark(-1)}, -1, false},
		{identity.Inbox{MaxPending: 0, HighWater: mark(3)}, 0, false},
		{identity.Inbox{MaxPending: 1<<63 - 1}, 7378697629483820645, true},
	}
	for _, tt := range tests {
		got, on := tt.inbox.HighWaterMark()
		if on != tt.on || on && got != tt.want {
			t.Errorf("%+v: got %d, %v; want %d, %v", tt.inbox, got, on, tt.want, tt.on)
		}
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	r := &identity.Resume{Summary: "Reads Scans", ClaimedCapabilities: []string{"ocr"}, Observed: map[string]identity.ObservedStat{"sum": {N: 1}}}
	agent, human := &identity.Passport{Name: "a"}, &identity.Passport{Name: "h", Kind: identity.Human}
	tests := []struct {
		q           identity.Query
		agent, head bool
	}{
		{identity.Query{}, true, true},
		{identity.Query{Kind: identity.Agent}, true, false},
		{identity.Query{Kind: identity.Human}, false, true},
		{identity.Query{Capability: "ocr"}, true, true},
		{identity.Query{Capability: "sum"}, true, true},
		{identity.Query{Capability: "oc"}, false, false},
		{identity.Query{Text: "sCAN"}, true, true},
		{identity.Query{Text: "scans."}, false, false},
		{identity.Query{Text: "scan", Kind: identity.Human, Capability: "nope"}, false, false},
	}
	for _, tt := range tests {
		if got := tt.q.Matches(agent, r); got != tt.agent {
			t.Errorf("%+v: agent %v, want %v", tt.q, got, tt.agent)
		}
		if got := tt.q.Matches(human, r); got != tt.head {
			t.Errorf("%+v: human %v, want %v", tt.q, got, tt.head)
		}
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"name":"a","auth":{"claim":{"x":[1e999]}}}`))
	f.Add([]byte(`{"access":{"channel_types":{}},"limits":{"channel_ttl_default":-0}}`))
	f.Add([]byte(`{"examples":[{"title":"x"}],"observed":{"a":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, record := range []any{&identity.Passport{}, &identity.Resume{}, &identity.Rule{}} {
			if identity.Unmarshal("record", data, record) != nil {
				continue
			}
			once, err := identity.Marshal(record)
			if err != nil {
				t.Fatalf("read but not written: %v", err)
			}
			if err := identity.Unmarshal("record", once, record); err != nil {
				t.Fatalf("written but not read: %v: %s", err, once)
			}
			if twice, err := identity.Marshal(record); err != nil || string(twice) != string(once) {
				t.Fatalf("%s is written again as %s, %v", once, twice, err)
			}
		}
	})
}
