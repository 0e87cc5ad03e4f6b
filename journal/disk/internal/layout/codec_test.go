package layout

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/internal/order"
)

var someBytes = rapid.SliceOfN(rapid.Byte(), 0, 40)

func TestIndexKeysSortByKeyThenLog(t *testing.T) {
	t.Parallel()
	key := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0xfe, 0xff}), 1, 6)
	rapid.Check(t, func(t *rapid.T) {
		a, b := key.Draw(t, "a"), key.Draw(t, "b")
		i, j := order.ID(rapid.Uint64().Draw(t, "i")), order.ID(rapid.Uint64().Draw(t, "j"))
		want := bytes.Compare(a, b)
		if want == 0 {
			want = cmpID(i, j)
		}
		if got := bytes.Compare(IndexKey(nil, a, i), IndexKey(nil, b, j)); got != want {
			t.Fatalf("%x of %d and %x of %d compare as %d, want %d", a, i, b, j, got, want)
		}
		back, id, err := SplitIndexKey(IndexKey(nil, a, i))
		if err != nil || !bytes.Equal(back, a) || id != i {
			t.Fatalf("%x of %d comes back as %x of %d, %v", a, i, back, id, err)
		}
		if bytes.HasPrefix(a, b) != bytes.HasPrefix(IndexKey(nil, a, i), Escape([]byte{KindIndex}, b)) {
			t.Fatalf("%x and its prefix %x part ways when they are escaped", a, b)
		}
	})
}

func cmpID(a, b order.ID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestAfterIsTheEndOfAPrefix(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"a": "b", "a\xff": "b", "a\xff\xff": "b", "ab": "ac", "\xff": ""} {
		if got := string(After([]byte(prefix))); got != want {
			t.Errorf("after %q comes %q, want %q", prefix, got, want)
		}
	}
}

// TestWhatIsStoredIsChecked writes every kind of value, reads it back, and
// requires each flipped bit to be noticed.
func TestWhatIsStoredIsChecked(t *testing.T) {
	t.Parallel()
	log := journal.LogName{Tenant: "acme", Partition: "p", Family: "f", ID: "i"}
	key := []byte("key of it")
	head := order.Head{ID: 77, Seq: 5, Offset: 9}
	held := &order.Held{ID: 1 << 12, Claimed: journal.Claimed{
		Name: "ey of it", Log: log, Incarnation: 4, Seq: 3, Offset: 8, Expires: time.UnixMilli(12345).UTC(),
	}}
	record := journal.Record{
		Data: []byte("data"), Put: []journal.IndexPut{{Key: []byte("k"), Value: []byte("v")}}, Remove: [][]byte{[]byte("r")},
		Take: []journal.Take{{Name: "c", Expires: time.UnixMilli(99).UTC()}, {Name: "d"}}, Release: []string{"e"},
	}
	draft, _ := NewDraft(&record, nil)
	stored := make([]byte, draft.Size())
	draft.Put(stored, RecordKey(nil, 7, 3), 11)
	var entries EntryList
	entries.AddEntry(&Entry{
		Kind: EntryBatch, Writes: []Written{{7, 1, 2}}, Partition: log.Of(), Values: []string{"v"},
	})
	entries.AddDrop(&order.Removal{Log: log})
	entries.AddDrop(&order.Removal{Partition: log.Of()})
	last := CommitKey(nil, 12)

	for name, c := range map[string]struct {
		value  []byte
		decode func(value []byte) (any, error)
		want   any
	}{
		"head":  {AppendHead(nil, key, head), func(v []byte) (any, error) { return DecodeHead(key, v) }, head},
		"claim": {AppendClaim(nil, key, held), func(v []byte) (any, error) { return DecodeClaim(key, v) }, held},
		"value": {
			AppendValue(nil, key, journal.Value{Data: []byte("x"), Version: 3}),
			func(v []byte) (any, error) { return DecodeValue(key, v) },
			journal.Value{Data: []byte("x"), Version: 3},
		},
		"name":   {AppendName(nil, key, log), func(v []byte) (any, error) { return DecodeName(key, v) }, log},
		"number": {AppendNumber(nil, key, 300), func(v []byte) (any, error) { return DecodeNumber(key, v) }, uint64(300)},
		"record": {stored, func(v []byte) (any, error) {
			s, err := DecodeRecord(v, 7, 3)
			if err != nil {
				return nil, err
			}
			r, err := s.DecodeEffects()
			r.Data = s.Data
			return r, err
		}, record},
		"entries": {entries.Value(last), func(v []byte) (any, error) { return allEntries(last, v) }, []Entry{
			{Kind: EntryBatch, Writes: []Written{{7, 1, 2}}, Partition: log.Of(), Values: []string{"v"}},
			{Kind: EntryDropLog, Log: log},
			{Kind: EntryDropPartition, Partition: log.Of()},
		}},
	} {
		got, err := c.decode(c.value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(Entry{}, Written{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for bit := range len(c.value) * 8 {
			damaged := bytes.Clone(c.value)
			damaged[bit/8] ^= 1 << (bit % 8)
			if _, err := c.decode(damaged); err == nil {
				t.Errorf("%s: bit %d flipped is not noticed", name, bit)
			}
		}
		for n := range c.value {
			if _, err := c.decode(c.value[:n]); err == nil {
				t.Errorf("%s: cut to %d bytes is not noticed", name, n)
			}
		}
	}
	if _, err := DecodeRecord(stored, 7, 4); err == nil {
		t.Error("a record in another's place is not noticed")
	}
	if _, err := DecodeRecord(stored, 8, 3); err == nil {
		t.Error("a record in another log is not noticed")
	}
}

// TestEqualValuesAreStoredOnce requires that a value that is the record's data, or that of
// the entry before, takes one byte in the record.
func TestEqualValuesAreStoredOnce(t *testing.T) {
	t.Parallel()
	line, home := bytes.Repeat([]byte("d"), 300), bytes.Repeat([]byte("h"), 32)
	size := func(r journal.Record) int {
		d, _ := NewDraft(&r, nil)
		return d.Size()
	}
	one := size(journal.Record{Data: line, Put: []journal.IndexPut{{Key: []byte("1")}}})
	for _, values := range [][][]byte{{line}, {home, home}, {line, line, home}} {
		r, most := journal.Record{Data: line}, one
		for i, value := range values {
			r.Put = append(r.Put, journal.IndexPut{Key: []byte{byte(i)}, Value: value})
			if most += 3; i == 0 || !bytes.Equal(value, values[i-1]) {
				most += 3
				if !bytes.Equal(value, line) {
					most += len(value)
				}
			}
		}
		if got := size(r); got > most {
			t.Errorf("%d values take %d bytes, want at most %d", len(values), got, most)
		}
	}
}

// TestDataThatIsNoValueIsNoReference refuses a record whose entry refers to data that
// are too long for a value.
func TestDataThatIsNoValueIsNoReference(t *testing.T) {
	t.Parallel()
	short := journal.Record{Data: make([]byte, leastRef), Put: []journal.IndexPut{{Key: []byte("k"), Value: make([]byte, leastRef)}}}
	s := Stored{Data: make([]byte, journal.MaxIndexValue+1), Effects: appendEffects(nil, &short, true), refs: true}
	if _, err := s.DecodeEffects(); err == nil {
		t.Error("an entry with a value that no engine takes was read")
	}
}

func allEntries(key, value []byte) (all []Entry, err error) {
	offset := uint64(0)
	for at, decode := range DecodeEntries(key, value) {
		en, err := decode()
		if err != nil {
			return nil, err
		}
		if offset != 0 && at != offset+1 {
			return nil, ErrForm
		}
		offset = at
		all = append(all, en)
	}
	return all, nil
}

func TestRecordsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := journal.Record{Data: someBytes.Draw(t, "data")}
		for range rapid.IntRange(0, 4).Draw(t, "puts") {
			value := someBytes.Draw(t, "value")
			switch n := len(r.Put); rapid.IntRange(0, 3).Draw(t, "equal") {
			case 0:
				value = r.Data
			case 1:
				if n > 0 {
					value = r.Put[n-1].Value
				}
			}
			r.Put = append(r.Put, journal.IndexPut{Key: someBytes.Draw(t, "key"), Value: value})
		}
		for range rapid.IntRange(0, 2).Draw(t, "releases") {
			r.Release = append(r.Release, rapid.String().Draw(t, "release"))
		}
		id, seq, offset := order.ID(rapid.Uint64().Draw(t, "id")), rapid.Uint64().Draw(t, "seq"), rapid.Uint64().Draw(t, "offset")
		d, _ := NewDraft(&r, nil)
		value := make([]byte, d.Size())
		d.Put(value, RecordKey(nil, id, seq), offset)
		s, err := DecodeRecord(value, id, seq)
		if err != nil || !bytes.Equal(s.Data, r.Data) || s.Offset != offset {
			t.Fatalf("%+v, %v", s, err)
		}
		back, err := s.DecodeEffects()
		if err != nil || len(back.Put) != len(r.Put) || !slices.Equal(back.Release, r.Release) {
			t.Fatalf("%+v, %v", back, err)
		}
		for i := range r.Put {
			if !bytes.Equal(back.Put[i].Key, r.Put[i].Key) || !bytes.Equal(back.Put[i].Value, r.Put[i].Value) {
				t.Fatalf("entry %d is %q, want %q", i, back.Put[i], r.Put[i])
			}
		}
	})
}

// FuzzDecode passes any input to the decoders: they return an error for invalid input,
// and never panic or allocate more than the input's size.
func FuzzDecode(f *testing.F) {
	record := journal.Record{Data: []byte("x"), Put: []journal.IndexPut{{Key: []byte("k")}}, Release: []string{"r"}}
	f.Add(appendEffects(nil, &record, false))
	f.Add(appendEffects(nil, &record, true))
	f.Add([]byte{EntryBatch, 1, 7, 1, 2})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		key := CommitKey(nil, 3)
		sealed := AppendSum(bytes.Clone(b), 0, key)
		for _, refs := range []bool{false, true} {
			stored := Stored{Data: b, Effects: b, refs: refs}
			_, _ = stored.DecodeEffects()
		}
		_, _ = decodeEntry(b)
		_, _ = allEntries(key, sealed)
		_, _ = DecodeHead(key, sealed)
		_, _ = DecodeClaim(key, sealed)
		_, _ = DecodeValue(key, sealed)
		_, _ = DecodeName(key, sealed)
		_, _ = DecodeRemoval(key, sealed)
		_, _ = DecodeRecord(b, 1, 1)
		_, _, _ = SplitIndexKey(b)
	})
}
