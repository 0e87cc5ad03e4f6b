package journal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/journal"
)

var anyPart = rapid.StringN(1, -1, journal.MaxNamePart)

func drawName(t *rapid.T) journal.LogName {
	return journal.LogName{
		Tenant: anyPart.Draw(t, "tenant"), Partition: anyPart.Draw(t, "partition"),
		Family: anyPart.Draw(t, "family"), ID: anyPart.Draw(t, "id"),
	}
}

func TestNamesSurviveTheirForms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := drawName(t)
		code, err := name.AppendBinary([]byte("before"))
		if err != nil {
			t.Fatal(err)
		}
		got, rest, err := journal.CutLogName(append(code[6:], "after"...))
		if err != nil || got != name || string(rest) != "after" {
			t.Fatalf("decoded %v, %q, %v; encoded %v", got, rest, err, name)
		}
		partition, rest, err := journal.CutPartitionName(code[6:])
		if err != nil || partition != name.Of() {
			t.Fatalf("partition %v, %v", partition, err)
		}
		prefix, err := name.Of().AppendBinary(nil)
		if err != nil || !bytes.HasPrefix(code[6:], prefix) || len(rest) != len(code)-6-len(prefix) {
			t.Fatal("a partition's form is not a prefix of its log's")
		}
		parsed, err := journal.ParseLogName(name.String())
		if err != nil || parsed != name {
			t.Fatalf("parsed %v, %v from %s", parsed, err, name)
		}
	})
}

func TestDifferentNamesHaveDifferentForms(t *testing.T) {
	t.Parallel()
	seen := map[string]journal.LogName{}
	for _, tenant := range []string{"a", "ab", "a/b"} {
		for _, partition := range []string{"b", "bc", "agent/x"} {
			for _, family := range []string{"c", "cb"} {
				name := journal.PartitionName{Tenant: tenant, Partition: partition}.In(family, "d")
				code, err := name.AppendBinary(nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, form := range []string{string(code), name.String()} {
					if twin, found := seen[form]; found {
						t.Errorf("%v and %v share the form %q", name, twin, form)
					}
					seen[form] = name
				}
			}
		}
	}
}

func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	good := journal.LogName{Tenant: "t", Partition: "p", Family: "f", ID: strings.Repeat("x", journal.MaxNamePart)}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []journal.LogName{
		{},
		{Tenant: "t", Partition: "p", Family: "f"},
		{Partition: "p", Family: "f", ID: "i"},
		{Tenant: "t", Partition: "p", Family: "f", ID: good.ID + "x"},
	} {
		_, err := bad.AppendBinary(nil)
		var bounds *journal.BoundsError
		if !errors.Is(err, journal.ErrInvalid) || !errors.As(err, &bounds) {
			t.Errorf("%q: got %v, want a bounds error", bad, err)
		}
	}
	for _, text := range []string{"", "a/b/c", "a/b/c/d/e", "a/b/c/", "a/b/c/%zz", "a//c/d"} {
		if name, err := journal.ParseLogName(text); err == nil {
			t.Errorf("%q was read as %v", text, name)
		}
	}
}

func FuzzCutLogName(f *testing.F) {
	seed, err := journal.LogName{Tenant: "acme", Partition: "agent/x", Family: "log", ID: "1"}.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)-1])
	f.Add([]byte{0, 1, 'a'})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		name, rest, err := journal.CutLogName(b)
		if err != nil {
			return
		}
		again, err := name.AppendBinary(nil)
		if err != nil || !bytes.Equal(append(again, rest...), b) {
			t.Fatalf("%x decodes to %q and encodes to %x (%v)", b, name, again, err)
		}
	})
}
