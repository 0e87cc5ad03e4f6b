package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

func (r *rig) put(kind, name, data string) uint64 {
	r.t.Helper()
	version, err := r.PutDocument(ctx, kind, name, []byte(data), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return version
}

// docs returns the documents of a kind as name=data, read in pages of two.
func (r *rig) docs(kind string) []string {
	r.t.Helper()
	var all []string
	for after := ""; ; {
		list, next, err := r.Documents(ctx, kind, hub.DocumentPage{After: after, Limit: 2})
		if err != nil {
			r.t.Fatal(err)
		}
		if len(list) > 2 {
			r.t.Fatalf("a page of two has %d", len(list))
		}
		for _, d := range list {
			all = append(all, d.Name+"="+string(d.Data))
		}
		if after = next; next == "" {
			return all
		}
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	stored(t, "are read, listed by name and removed, before and after a restart", byHand, func(t *testing.T, r *rig) {
		for _, name := range []string{"d", "b", "a/x", "ü", "c"} {
			r.put("policy", name, `{"n":"`+name+`"}`)
		}
		r.put("policies", "other", `1`)
		first := r.put("policy", "c", `2`)
		if second := r.put("policy", "c", `3`); second == first {
			t.Errorf("two writes have version %d", first)
		}
		if err := r.RemoveDocument(ctx, "policy", "b", nil); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			want := []string{`a/x={"n":"a/x"}`, `c=3`, `d={"n":"d"}`, `ü={"n":"ü"}`}
			if got := r.docs("policy"); !slices.Equal(got, want) {
				t.Errorf("listed %v, want %v", got, want)
			}
			if _, err := r.Document(ctx, "policy", "b"); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("a removed document: %v", err)
			}
			if d, err := r.Document(ctx, "policies", "other"); err != nil || string(d.Data) != "1" || d.Version == 0 {
				t.Errorf("another kind's: %+v, %v", d, err)
			}
			r.restart()
		}
		if err := r.RemoveDocument(ctx, "policy", "b", nil); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("removing what is not there: %v", err)
		}
	})
	stored(t, "an expected version is compared", byHand, func(t *testing.T, r *rig) {
		none, first := uint64(0), r.put("policy", "a", `1`)
		second := r.put("policy", "a", `2`)
		for what, expect := range map[string]*uint64{"none": &none, "an older one": &first} {
			if _, err := r.PutDocument(ctx, "policy", "a", []byte(`3`), expect); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("expected %s: %v", what, err)
			}
			if err := r.RemoveDocument(ctx, "policy", "a", expect); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("removed, expected %s: %v", what, err)
			}
		}
		if d, err := r.Document(ctx, "policy", "a"); err != nil || string(d.Data) != "2" || d.Version != second {
			t.Errorf("a refused write changed it: %+v, %v", d, err)
		}
		if err := r.RemoveDocument(ctx, "policy", "a", &second); err != nil {
			t.Fatal(err)
		}
		if _, err := r.PutDocument(ctx, "policy", "a", []byte(`4`), &second); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("expected the version from before its removal: %v", err)
		}
		if _, err := r.PutDocument(ctx, "policy", "a", []byte(`5`), &none); err != nil {
			t.Errorf("expected none: %v", err)
		}
	})
	stored(t, "of racing writers exactly one has the version it expected", byHand, func(t *testing.T, r *rig) {
		const rounds, writers = 20, 8
		for range rounds {
			d, err := r.Document(ctx, "counter", "n")
			if err != nil && fault.CodeOf(err) != fault.NotFound {
				t.Fatal(err)
			}
			var won atomic.Int32
			var group sync.WaitGroup
			for range writers {
				group.Go(func() {
					_, err := r.PutDocument(ctx, "counter", "n", fmt.Appendf(nil, "%d", len(d.Data)), &d.Version)
					if err == nil {
						won.Add(1)
					} else if fault.CodeOf(err) != fault.Conflict {
						t.Error(err)
					}
				})
			}
			group.Wait()
			if won.Load() != 1 {
				t.Fatalf("%d writers won", won.Load())
			}
		}
	})
	stored(t, "racing writers without an expectation all write", byHand, func(t *testing.T, r *rig) {
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				for _, name := range []string{"shared", fmt.Sprint(i)} {
					if _, err := r.PutDocument(ctx, "policy", name, []byte(`1`), nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if got := r.docs("policy"); len(got) != 17 {
			t.Errorf("%d documents", len(got))
		}
	})
}

func TestDocumentLimits(t *testing.T) {
	t.Parallel()
	small := byHand
	small.Limits = hub.Limits{DocumentBytes: 10, Documents: 3}
	stored(t, "size and number are bounded", small, func(t *testing.T, r *rig) {
		refused := func(kind, name, data string, code fault.Code, text string) {
			t.Helper()
			if _, err := r.PutDocument(ctx, kind, name, []byte(data), nil); fault.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
				t.Errorf("%q %q %q: %v", kind, name, data, err)
			}
		}
		refused("policy", "a", `"123456789"`, fault.TooLarge, "limits.document")
		refused("policy", "a", `{`, fault.Invalid, "valid JSON")
		refused("policy", "a", `1 2`, fault.Invalid, "valid JSON")
		refused("policy", "a", ``, fault.Invalid, "valid JSON")
		refused("", "a", `1`, fault.Invalid, "kind")
		refused("Policy", "a", `1`, fault.Invalid, "kind")
		refused("a/b", "a", `1`, fault.Invalid, "kind")
		refused(strings.Repeat("k", 33), "a", `1`, fault.Invalid, "kind")
		refused("policy", "", `1`, fault.Invalid, "name")
		refused("policy", "\xff", `1`, fault.Invalid, "name")
		refused("policy", strings.Repeat("n", 513), `1`, fault.Invalid, "name")
		if got := r.docs("policy"); len(got) != 0 {
			t.Errorf("refused writes left %v", got)
		}
		for _, name := range []string{"a", "b", strings.Repeat("n", 512)} {
			r.put("policy", name, `1`)
		}
		r.put("other", "a", `1`)
		for range 2 {
			refused("policy", "d", `1`, fault.TooLarge, "limits.documents")
			r.put("policy", "a", `2`)
			r.restart()
		}
		if err := r.RemoveDocument(ctx, "policy", "a", nil); err != nil {
			t.Fatal(err)
		}
		r.put("policy", "d", `1`)
		refused("policy", "a", `1`, fault.TooLarge, "limits.documents")
	})
	stored(t, "racing writers do not pass the limit", small, func(t *testing.T, r *rig) {
		var written atomic.Int32
		var group sync.WaitGroup
		for i := range 12 {
			group.Go(func() {
				_, err := r.PutDocument(ctx, "policy", fmt.Sprint(i), []byte(`1`), nil)
				if err == nil {
					written.Add(1)
				} else if fault.CodeOf(err) != fault.TooLarge {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := len(r.docs("policy")); n != 3 || written.Load() != 3 {
			t.Errorf("%d documents, %d acknowledged", n, written.Load())
		}
	})
}

func TestEditDocuments(t *testing.T) {
	t.Parallel()
	stored(t, "several documents and their audit are one batch", byHand, func(t *testing.T, r *rig) {
		old := r.put("policy", "a", `1`)
		none := uint64(0)
		edits := []hub.DocumentEdit{
			{Kind: "policy", Name: "a", Remove: true, Expect: &old},
			{Kind: "policy", Name: "b", Data: []byte(`2`), Expect: &none},
			{Kind: "budget", Name: "c", Data: []byte(`3`)},
		}
		note := hub.AuditNote{Kind: "policy_moved", Fields: map[string]any{"by": "alice"}}
		version, err := r.EditDocuments(ctx, edits, note)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := r.Document(ctx, "policy", "b"); err != nil || d.Version != version {
			t.Errorf("%+v, %v, want version %d", d, err, version)
		}
		if _, err := r.EditDocuments(ctx, edits, note); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("again: %v", err)
		}
		twice := []hub.DocumentEdit{edits[2], edits[2]}
		if _, err := r.EditDocuments(ctx, twice); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("one document twice: %v", err)
		}
		if _, err := r.EditDocuments(ctx, nil, note); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("no document: %v", err)
		}
		r.restart()
		if got := append(r.docs("policy"), r.docs("budget")...); !slices.Equal(got, []string{"b=2", "c=3"}) {
			t.Errorf("documents: %v", got)
		}
		if n := len(r.audit("policy_moved")); n != 1 {
			t.Errorf("audited %d times", n)
		}
	})
}

// A crash loses only unacknowledged edits, and keeps all acknowledged ones; a
// refusal waits until the values that it was computed from are durable.
func TestDocumentsInACrash(t *testing.T) {
	t.Parallel()
	runs(t, "a write that is not durable is neither answered nor shown", byHand, func(t *testing.T, r *rig) {
		r.put("policy", "a", `1`)
		release := r.hold()
		answers := make(chan error, 2)
		none := uint64(0)
		go func() {
			_, err := r.PutDocument(ctx, "policy", "b", []byte(`1`), &none)
			answers <- err
		}()
		r.settle()
		go func() {
			_, err := r.PutDocument(ctx, "policy", "b", []byte(`2`), &none)
			answers <- err
		}()
		r.settle()
		select {
		case err := <-answers:
			t.Errorf("answered with %v", err)
		default:
		}
		if got := r.docs("policy"); !slices.Equal(got, []string{"a=1"}) {
			t.Errorf("shown: %v", got)
		}
		r.engine.Faults().Crash()
		for range 2 {
			if err := <-answers; !fault.Retryable(err) {
				t.Errorf("answered with %v", err)
			}
		}
		release()
		r.restart()
		if got := r.docs("policy"); !slices.Equal(got, []string{"a=1"}) {
			t.Errorf("after the crash: %v", got)
		}
		if _, err := r.PutDocument(ctx, "policy", "b", []byte(`2`), &none); err != nil {
			t.Error(err)
		}
	})
	runs(t, "one that failed is not counted", hub.Options{Limits: hub.Limits{Documents: 1}}, func(t *testing.T, r *rig) {
		r.engine.Faults().FailWrite()
		if _, err := r.PutDocument(ctx, "policy", "a", []byte(`1`), nil); !fault.Retryable(err) {
			t.Fatalf("got %v", err)
		}
		r.restart()
		r.put("policy", "b", `1`)
	})
}
