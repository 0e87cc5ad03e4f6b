package journal

import (
	"fmt"
	"time"
)

// Bounds of a batch and of its parts.
const (
	MaxBatchRecords = 1024
	MaxBatchBytes   = 4 << 20 // records' data, keys, values, names
	MaxBatchValues  = 1024
	MaxKey          = 1024     // an index key, a claim's name, a value's name
	MaxIndexValue   = 64 << 10 // what an index entry carries
	MaxHint         = 64 << 10
)

// Batch is what one Append orders: all of it or nothing. Everything in it is
// of one partition, and it holds at least one record or value.
type Batch struct {
	// Term, when it is not 0, must be the shard's term (Place, Ticket.Term).
	// A caller that computed the batch from what was ordered, and not yet
	// durable, sets it: expected sequences alone cannot tell a forgotten
	// record from another one with the same number.
	Term    uint64
	Appends []Append
	Values  []ValueWrite
	// Hint is handed to those who follow the shard and are at its tail
	// (Commit.Hint). It is not stored: who reads the batch later finds none.
	Hint []byte
}

// Append adds records to one log, which a batch names only once. The log is
// created by its first record.
type Append struct {
	Log     LogName
	Expect  Expect
	Records []Record
}

// Record is one record to be stored, with what it does to the index and to the
// claims. Within a record, removals come before puts and releases before takes;
// within a batch, records count in the order they are listed.
type Record struct {
	Data    []byte
	Put     []IndexPut
	Remove  [][]byte // index keys; only what records of this log have put is removed
	Take    []Take
	Release []string // claims; releasing one that this log does not hold does nothing
}

// IndexPut puts an entry under a key. An entry belongs to the log whose record
// put it: another log's entry under the same key is another entry. Putting
// again replaces the value.
type IndexPut struct {
	Key   []byte
	Value []byte
}

// Take takes a claim, which must be free: not held by any log, this one
// included. To prolong a claim, release and take it in one record.
type Take struct {
	Name    string
	Expires time.Time // from then on the claim is free; zero: never; milliseconds count
}

// ValueKey names a value.
type ValueKey struct {
	Partition PartitionName
	Name      string
}

// ValueWrite sets or deletes a value, which a batch names only once.
type ValueWrite struct {
	Key    ValueKey
	Data   []byte
	Delete bool
	Expect Expect // of the value's version
}

// Expect is a condition on a number: a log's last ordered sequence, or a
// value's version. The zero Expect accepts any.
type Expect struct {
	set bool
	n   uint64
}

// Exactly expects the number n. Exactly(0) expects that there is no such log,
// or no such value.
func Exactly(n uint64) Expect { return Expect{set: true, n: n} }

// Number is what is expected; ok is false when anything is accepted.
func (e Expect) Number() (n uint64, ok bool) { return e.n, e.set }

// Accepts reports whether n is as expected.
func (e Expect) Accepts(n uint64) bool { return !e.set || e.n == n }

// Size counts the batch's bytes as MaxBatchBytes does.
func (b *Batch) Size() int {
	size := 0
	for i := range b.Appends {
		a := &b.Appends[i]
		size += nameSize(a.Log)
		for j := range a.Records {
			size += a.Records[j].Size()
		}
	}
	for i := range b.Values {
		size += len(b.Values[i].Key.Name) + len(b.Values[i].Data)
	}
	return size
}

// Size counts the record's bytes as MaxBatchBytes does.
func (r *Record) Size() int {
	size := len(r.Data)
	for _, p := range r.Put {
		size += len(p.Key) + len(p.Value)
	}
	for _, k := range r.Remove {
		size += len(k)
	}
	for _, t := range r.Take {
		size += len(t.Name) + 8
	}
	for _, name := range r.Release {
		size += len(name)
	}
	return size
}

func nameSize(n LogName) int {
	return len(n.Tenant) + len(n.Partition) + len(n.Family) + len(n.ID) + 4
}

// Partition of the batch; the zero name when the batch is empty.
func (b *Batch) Partition() PartitionName {
	if len(b.Appends) > 0 {
		return b.Appends[0].Log.Of()
	}
	if len(b.Values) > 0 {
		return b.Values[0].Key.Partition
	}
	return PartitionName{}
}

// Validate refuses a batch that no engine takes, whatever is ordered: two
// partitions, a bound broken, a log or value named twice.
func (b *Batch) Validate() error {
	if len(b.Appends) == 0 && len(b.Values) == 0 {
		return &BoundsError{What: "batch: appends and values", Got: 0, Min: 1, Max: MaxBatchRecords}
	}
	partition := b.Partition()
	records := 0
	for i := range b.Appends {
		a := &b.Appends[i]
		if err := a.validate(partition); err != nil {
			return err
		}
		for j := range i {
			if b.Appends[j].Log == a.Log {
				return fmt.Errorf("batch names log %v twice: %w", a.Log, ErrInvalid)
			}
		}
		if records += len(a.Records); records > MaxBatchRecords {
			return &BoundsError{What: "batch: records", Got: records, Min: 1, Max: MaxBatchRecords}
		}
	}
	if err := ValidateValues(partition, b.Values); err != nil {
		return err
	}
	if len(b.Hint) > MaxHint {
		return &BoundsError{What: "batch: bytes of the hint", Got: len(b.Hint), Max: MaxHint}
	}
	if size := b.Size(); size > MaxBatchBytes {
		return &BoundsError{What: "batch: bytes", Got: size, Max: MaxBatchBytes}
	}
	return nil
}

func (a *Append) validate(p PartitionName) error {
	if err := a.Log.Validate(); err != nil {
		return err
	}
	if a.Log.Of() != p {
		return fmt.Errorf("batch touches partitions %v and %v, one is allowed: %w", p, a.Log.Of(), ErrInvalid)
	}
	if len(a.Records) == 0 {
		return &BoundsError{What: fmt.Sprintf("batch: records for log %v", a.Log), Got: 0, Min: 1, Max: MaxBatchRecords}
	}
	for i := range a.Records {
		if err := a.Records[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Record) validate() error {
	for _, p := range r.Put {
		if err := validateKey("index key", len(p.Key)); err != nil {
			return err
		}
		if len(p.Value) > MaxIndexValue {
			return &BoundsError{What: "index value: bytes", Got: len(p.Value), Max: MaxIndexValue}
		}
	}
	for _, k := range r.Remove {
		if err := validateKey("index key", len(k)); err != nil {
			return err
		}
	}
	for _, t := range r.Take {
		if err := validateKey("claim", len(t.Name)); err != nil {
			return err
		}
	}
	for _, name := range r.Release {
		if err := validateKey("claim", len(name)); err != nil {
			return err
		}
	}
	return nil
}

// ValidateValues refuses writes that no engine takes; all must be of partition
// p.
func ValidateValues(p PartitionName, writes []ValueWrite) error {
	if len(writes) > MaxBatchValues {
		return &BoundsError{What: "batch: values", Got: len(writes), Max: MaxBatchValues}
	}
	size := 0
	for i := range writes {
		key := writes[i].Key
		if err := key.Partition.Validate(); err != nil {
			return err
		}
		if key.Partition != p {
			return fmt.Errorf("batch touches partitions %v and %v, one is allowed: %w", p, key.Partition, ErrInvalid)
		}
		if err := validateKey("value name", len(key.Name)); err != nil {
			return err
		}
		for j := range i {
			if writes[j].Key == key {
				return fmt.Errorf("batch names value %q twice: %w", key.Name, ErrInvalid)
			}
		}
		if size += len(key.Name) + len(writes[i].Data); size > MaxBatchBytes {
			return &BoundsError{What: "values: bytes", Got: size, Max: MaxBatchBytes}
		}
	}
	return nil
}

func validateKey(what string, n int) error {
	if n == 0 || n > MaxKey {
		return &BoundsError{What: what + ": length", Got: n, Min: 1, Max: MaxKey}
	}
	return nil
}
