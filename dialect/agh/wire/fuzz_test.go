package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/dialect/agh/wire"
)

func seeds(f *testing.F) {
	f.Helper()
	for _, data := range kinds() {
		f.Add(data)
	}
	f.Add(answer)
	for _, v := range loadVectors(f).Signature {
		f.Add([]byte(v.Envelope))
	}
	f.Add(with(say, "ext", `{"token":"x"}`))
	f.Add([]byte(`{"ts":1e999999999,"id":"\ud83d\ude00"}`))
}

// FuzzDecode checks that an accepted envelope can be written, is accepted again as
// the same, and keeps its members in a record. All other bytes are rejected with an
// error.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, o := range []wire.Options{
			{SkipFreshness: true},
			{Now: now, Strict: true, Secrets: wire.NewSecretScan(), PrivilegedNeedsProof: true},
			{SkipFreshness: true, LenientWorkIDs: true, Handles: true, V1: true},
		} {
			e, err := wire.Decode(data, o)
			if err != nil {
				if e != nil {
					wire.Answer(e, wire.Malformed, wire.Container{}, o)
				}
				continue
			}
			e.Preview()
			out, err := e.AppendJSON(nil)
			if err != nil {
				if len(data) < wire.MaxBytes/2 {
					t.Fatalf("accepted but not written: %v", err)
				}
				continue
			}
			again, err := wire.Decode(out, o)
			if err != nil {
				t.Fatalf("written but not accepted: %v\n%s", err, out)
			}
			if diff := cmp.Diff(e, again); diff != "" {
				t.Fatalf("read again it differs:\n%s", diff)
			}
			if o.Strict || !e.Kind.Conversation() {
				continue
			}
			record, err := wire.Record(e, data)
			if err != nil {
				t.Fatal(err)
			}
			kept, _, err := wire.Message(record)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, kept); diff != "" {
				t.Fatalf("kept it differs:\n%s", diff)
			}
		}
	})
}

// FuzzVerify checks that only the signed bytes verify.
func FuzzVerify(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := wire.Decode(data, trusting)
		if err != nil {
			return
		}
		trust, why := wire.Verify(e, data)
		if (trust == wire.Rejected) != (why != nil) {
			t.Fatalf("%s with %v", trust, why)
		}
		if trust == wire.Verified && !wire.ValidHandle(e.From) {
			t.Fatalf("%s is verified", e.From)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, v := range loadVectors(f).JCS {
		f.Add([]byte(v.Input))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := wire.Canonical(data)
		if err != nil {
			return
		}
		twice, err := wire.Canonical(once)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%q then %q: %v", once, twice, err)
		}
	})
}
