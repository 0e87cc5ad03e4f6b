package envelope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Version is the first byte of every record. Readers know all versions up to
// it; it only goes up.
const Version = 1

// Bounds of a record. A decoder refuses anything larger before it allocates.
const (
	MaxRecord   = 4 << 20 // a batch of the journal holds no more
	MaxField    = 4096    // an id, a name, a type, a key
	MaxAudience = 4096    // readers named one by one
)

// ErrCorrupt is wrapped by every error of Unmarshal.
var ErrCorrupt = errors.New("envelope: not a record")

// Which optional fields a record carries. The order of the bits is the order
// of the fields.
const (
	hasAudience = 1 << iota
	hasTo
	hasCausation
	hasTask
	hasKey
	hasTrace
	hasPriority
	hasDepth
	hasTTL
	hasOrigin
	hasExt
	hasForeign
	knownFlags = 1<<iota - 1
)

// Append appends the record of e to buf. The record contains the channel, so
// that it can be told apart from a record of another log, but not Seq.
func (e *Envelope) Append(buf []byte) ([]byte, error) {
	if err := e.check(); err != nil {
		return buf, err
	}
	w := writer{buf: append(buf, Version)}
	flags := e.flags()
	w.uint(uint64(flags))
	w.string(e.ID)
	w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(e.CreatedAt.UnixNano()))
	w.string(e.Channel)
	w.string(e.Sender)
	w.string(e.Type)
	if flags&hasAudience != 0 {
		w.uint(uint64(len(e.Audience)))
		for _, agent := range e.Audience {
			w.string(agent)
		}
	}
	for bit, field := range e.optional() {
		if flags&bit != 0 {
			w.string(*field)
		}
	}
	if flags&hasPriority != 0 {
		w.string(string(e.Priority))
	}
	if flags&hasDepth != 0 {
		w.int(int64(e.Depth))
	}
	if flags&hasTTL != 0 {
		w.int(*e.TTL)
	}
	if flags&hasOrigin != 0 {
		w.string(e.Origin.Dialect)
		w.string(e.Origin.ID)
		w.int(int64(e.Origin.Hops))
	}
	if flags&hasExt != 0 {
		w.bytes(e.Ext)
	}
	w.bytes(e.Data)
	if flags&hasForeign != 0 {
		w.bytes(e.Foreign)
	}
	return w.buf, nil
}

// Unmarshal reads a record into a new envelope that shares memory with data.
// It accepts exactly what Append writes: encoding the result gives data again.
func Unmarshal(data []byte) (*Envelope, error) {
	if len(data) > MaxRecord {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrCorrupt, len(data), MaxRecord)
	}
	if len(data) == 0 || data[0] != Version {
		return nil, fmt.Errorf("%w: version %d wanted", ErrCorrupt, Version)
	}
	r := reader{rest: data[1:]}
	flags := r.uint()
	if flags&^uint64(knownFlags) != 0 {
		return nil, fmt.Errorf("%w: unknown fields", ErrCorrupt)
	}
	e := &Envelope{Priority: Normal}
	e.ID = r.string()
	e.CreatedAt = time.Unix(0, int64(r.uint64())).UTC()
	e.Channel = r.string()
	e.Sender = r.string()
	e.Type = r.string()
	if flags&hasAudience != 0 {
		n := r.uint()
		// Each name takes at least its length byte, so the rest bounds n.
		if n > MaxAudience || n > uint64(len(r.rest)) {
			r.fail("audience of %d", n)
		} else {
			e.Audience = make([]string, 0, n)
			for range n {
				e.Audience = append(e.Audience, r.string())
			}
		}
	}
	for bit, field := range e.optional() {
		if flags&uint64(bit) != 0 {
			*field = r.string()
		}
	}
	if flags&hasPriority != 0 {
		e.Priority = Priority(r.string())
	}
	if flags&hasDepth != 0 {
		e.Depth = int(r.int())
	}
	if flags&hasTTL != 0 {
		ttl := r.int()
		e.TTL = &ttl
	}
	if flags&hasOrigin != 0 {
		e.Origin = Origin{Dialect: r.string(), ID: r.string(), Hops: int(r.int())}
	}
	if flags&hasExt != 0 {
		e.Ext = r.bytes()
	}
	e.Data = r.bytes()
	if flags&hasForeign != 0 {
		e.Foreign = r.bytes()
	}
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes behind the end", len(r.rest))
	}
	if r.err == nil && uint64(e.flags()) != flags {
		// A flagged field at its default would not be written again.
		r.fail("empty field marked as present")
	}
	if r.err != nil {
		return nil, r.err
	}
	return e, nil
}

// optional yields the plain string fields with their flags, in record order.
func (e *Envelope) optional() func(func(int, *string) bool) {
	return func(yield func(int, *string) bool) {
		_ = yield(hasTo, &e.To) &&
			yield(hasCausation, &e.Causation) &&
			yield(hasTask, &e.Task) &&
			yield(hasKey, &e.Key) &&
			yield(hasTrace, &e.Trace)
	}
}

func (e *Envelope) flags() int {
	flags := 0
	set := func(bit int, present bool) {
		if present {
			flags |= bit
		}
	}
	set(hasAudience, e.Audience != nil)
	for bit, field := range e.optional() {
		set(bit, *field != "")
	}
	set(hasPriority, e.Priority != Normal && e.Priority != "")
	set(hasDepth, e.Depth != 0)
	set(hasTTL, e.TTL != nil)
	set(hasOrigin, e.Origin != Origin{})
	set(hasExt, len(e.Ext) > 0)
	set(hasForeign, len(e.Foreign) > 0)
	return flags
}

// check returns an error for what Unmarshal would refuse, so that nothing
// unreadable is ever written.
func (e *Envelope) check() error {
	for _, f := range []struct{ name, value string }{
		{"id", e.ID},
		{"channel", e.Channel},
		{"sender", e.Sender},
		{"type", e.Type},
		{"to", e.To},
		{"causation", e.Causation},
		{"task", e.Task},
		{"idempotency key", e.Key},
		{"trace", e.Trace},
		{"priority", string(e.Priority)},
		{"origin dialect", e.Origin.Dialect},
		{"origin id", e.Origin.ID},
	} {
		if err := checkField(f.name, f.value); err != nil {
			return err
		}
	}
	if len(e.Audience) > MaxAudience {
		return fmt.Errorf("envelope: audience names %d readers; at most %d", len(e.Audience), MaxAudience)
	}
	for _, agent := range e.Audience {
		if err := checkField("audience", agent); err != nil {
			return err
		}
	}
	if size := len(e.Ext) + len(e.Data) + len(e.Foreign); size > MaxRecord/2 {
		return fmt.Errorf("envelope: payload of %d bytes; at most %d", size, MaxRecord/2)
	}
	if year := e.CreatedAt.Year(); year < 1678 || year > 2261 {
		return fmt.Errorf("envelope: time %s does not fit nanoseconds", e.CreatedAt)
	}
	return nil
}

func checkField(name, value string) error {
	if len(value) > MaxField {
		return fmt.Errorf("envelope: %s has %d bytes; at most %d", name, len(value), MaxField)
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("envelope: %s is not valid UTF-8", name)
	}
	return nil
}

type writer struct{ buf []byte }

func (w *writer) uint(v uint64)   { w.buf = binary.AppendUvarint(w.buf, v) }
func (w *writer) int(v int64)     { w.buf = binary.AppendVarint(w.buf, v) }
func (w *writer) string(s string) { w.uint(uint64(len(s))); w.buf = append(w.buf, s...) }
func (w *writer) bytes(b []byte)  { w.uint(uint64(len(b))); w.buf = append(w.buf, b...) }

// reader keeps its first error and returns zero values after it.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
	}
	r.rest = nil
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	// Only the shortest form is accepted, so that a record has one encoding.
	if n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.fail("bad number")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) int() int64 {
	u := r.uint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) uint64() uint64 {
	if len(r.rest) < 8 {
		r.fail("cut off")
		return 0
	}
	v := binary.BigEndian.Uint64(r.rest)
	r.rest = r.rest[8:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.rest)) {
		r.fail("cut off")
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) string() string {
	b := r.bytes()
	if len(b) > MaxField || !utf8.Valid(b) {
		r.fail("bad text field")
		return ""
	}
	return string(b)
}
