package journal

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is a place in one log: after the record numbered Seq. The zero
// position is before the first record, in any incarnation of the log.
type Position struct {
	Epoch       uint64
	Incarnation uint64
	Seq         uint64
}

// IsZero reports whether the position is before everything.
func (p Position) IsZero() bool { return p == Position{} }

// String is the text form, for example "1.42.7".
func (p Position) String() string { return joinNumbers(p.Epoch, p.Incarnation, p.Seq) }

// MarshalText is the text form.
func (p Position) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the text form.
func (p *Position) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePosition(string(b))
	return err
}

// ParsePosition reads the text form of a position.
func ParsePosition(s string) (Position, error) {
	var p Position
	err := splitNumbers(s, "epoch.incarnation.sequence", &p.Epoch, &p.Incarnation, &p.Seq)
	return p, err
}

// ShardPosition is a place in one shard: after the batch at Offset. The zero
// position is before the first batch.
type ShardPosition struct {
	Epoch  uint64
	Offset uint64
}

// IsZero reports whether the position is before everything.
func (p ShardPosition) IsZero() bool { return p == ShardPosition{} }

// String is the text form, for example "1.42".
func (p ShardPosition) String() string { return joinNumbers(p.Epoch, p.Offset) }

// MarshalText is the text form.
func (p ShardPosition) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the text form.
func (p *ShardPosition) UnmarshalText(b []byte) (err error) {
	*p, err = ParseShardPosition(string(b))
	return err
}

// ParseShardPosition reads the text form of a shard position.
func ParseShardPosition(s string) (ShardPosition, error) {
	var p ShardPosition
	err := splitNumbers(s, "epoch.offset", &p.Epoch, &p.Offset)
	return p, err
}

// StorePosition is a place in a whole store: one position for each shard.
type StorePosition []ShardPosition

// String is the text form, for example "1.42,1.57".
func (w StorePosition) String() string {
	parts := make([]string, len(w))
	for i, p := range w {
		parts[i] = p.String()
	}
	return strings.Join(parts, ",")
}

// MarshalText is the text form.
func (w StorePosition) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads the text form.
func (w *StorePosition) UnmarshalText(b []byte) (err error) {
	*w, err = ParseStorePosition(string(b))
	return err
}

// ParseStorePosition reads the text form of a wide position.
func ParseStorePosition(s string) (StorePosition, error) {
	if s == "" {
		return StorePosition{}, nil
	}
	parts := strings.Split(s, ",")
	w := make(StorePosition, len(parts))
	for i, part := range parts {
		p, err := ParseShardPosition(part)
		if err != nil {
			return nil, err
		}
		w[i] = p
	}
	return w, nil
}

func joinNumbers(numbers ...uint64) string {
	var b []byte
	for i, n := range numbers {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendUint(b, n, 10)
	}
	return string(b)
}

func splitNumbers(s, form string, numbers ...*uint64) error {
	parts := strings.Split(s, ".")
	if len(parts) != len(numbers) {
		return fmt.Errorf("position %q is not of the form %s", s, form)
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil || strconv.FormatUint(n, 10) != part {
			return fmt.Errorf("position %q is not of the form %s", s, form)
		}
		*numbers[i] = n
	}
	return nil
}
