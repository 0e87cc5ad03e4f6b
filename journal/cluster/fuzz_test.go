package cluster_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/internal/fakelog"
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// pebbleOp is one operation of a Pebble batch.
type pebbleOp struct {
	kind       byte
	key, value []byte
}

const (
	opDelete      = 0
	opRangeDelete = 15
)

func parseBatch(t testing.TB, repr []byte) (ops []pebbleOp) {
	t.Helper()
	rest := repr[12:]
	cut := func() []byte {
		n, size := binary.Uvarint(rest)
		s := rest[size : size+int(n)]
		rest = rest[size+int(n):]
		return bytes.Clone(s)
	}
	for len(rest) > 0 {
		op := pebbleOp{kind: rest[0]}
		rest = rest[1:]
		if op.key = cut(); op.kind != opDelete {
			op.value = cut()
		}
		ops = append(ops, op)
	}
	return ops
}

func buildBatch(ops []pebbleOp, lie byte) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 8), uint32(len(ops))+uint32(lie))
	for _, op := range ops {
		b = append(b, op.kind)
		b = append(binary.AppendUvarint(b, uint64(len(op.key))), op.key...)
		if op.kind != opDelete {
			b = append(binary.AppendUvarint(b, uint64(len(op.value))), op.value...)
		}
	}
	return b
}

// resum corrects the checksum of a value, as an attacker who forges a batch can.
func (op *pebbleOp) resum() {
	at := len(op.value) - 4
	if at < 0 {
		return
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Update(0, table, op.key), table, op.value[:at])
	if len(op.key) == 17 && op.key[0] == 'r' && at > 8 { // a record's place is summed last
		sum = crc32.Update(crc32.Update(crc32.Update(0, table, op.value[:at-8]), table, op.key[1:]), table, op.value[at-8:at])
	}
	binary.BigEndian.PutUint32(op.value[at:], sum)
}

// hostile changes operations according to a program, in which each step is a few
// bytes.
func hostile(ops []pebbleOp, program []byte) []pebbleOp {
	next := func() (b byte) {
		if len(program) > 0 {
			b, program = program[0], program[1:]
		}
		return b
	}
	take := func() []byte {
		n := min(int(next()), len(program))
		s := bytes.Clone(program[:n])
		program = program[n:]
		return s
	}
	for len(program) > 0 {
		step, i := next()%8, int(next())
		if len(ops) == 0 && step != 5 {
			continue
		}
		if len(ops) > 0 {
			i %= len(ops)
		}
		switch step {
		case 0:
			ops[i].kind = next()
		case 1, 2:
			target, at, with := ops[i].key, int(next()), next()
			if step == 2 {
				target = ops[i].value
			}
			if len(target) > 0 {
				target[at%len(target)] ^= with
			}
		case 3:
			ops = slices.Delete(ops, i, i+1)
		case 4:
			ops = append(ops, pebbleOp{ops[i].kind, bytes.Clone(ops[i].key), bytes.Clone(ops[i].value)})
		case 5:
			ops = append(ops, pebbleOp{next(), take(), take()})
		case 6:
			ops = append(ops, pebbleOp{opRangeDelete, bytes.Clone(ops[i].key), append(bytes.Clone(ops[i].key), take()...)})
		case 7:
			ops[i].resum()
		}
	}
	return ops
}

// hostileSite is the logs of two shards with some data of every kind.
type hostileSite struct {
	logs   [][][]byte // of each shard
	mine   int        // the shard whose copy is attacked
	claims []string
	alone  bool // no other test allocates meanwhile
}

func newHostileSite(t testing.TB) *hostileSite {
	t.Helper()
	logs := fakelog.New(2)
	a := openNode(t, "a", logs.Connect(), func(o *cluster.Options) { o.Shards = 2 }).take()
	s := &hostileSite{mine: a.Shard(history.Of())}
	for i := range 24 {
		p := history.Of()
		if i%2 == 1 {
			for n := 0; a.Shard(p) == s.mine; n++ {
				p.Partition = fmt.Sprint("other", n)
			}
		}
		s.claims = append(s.claims, fmt.Sprint("claim", i))
		b := journal.Batch{
			Hint: []byte("hint"),
			Appends: []journal.Append{{Log: p.In("log", "history"), Records: []journal.Record{{
				Data: fmt.Append(nil, i), Put: []journal.IndexPut{{Key: fmt.Append(nil, "key", i), Value: []byte("v")}},
				Take: []journal.Take{{Name: fmt.Sprint("claim", i), Expires: time.Now().Add(time.Hour)}},
			}}}, {Log: p.In("log", fmt.Sprint("dropped", i%4)), Records: []journal.Record{{Data: []byte("x")}}}},
			Values: []journal.ValueWrite{{Key: journal.ValueKey{Partition: p, Name: "value"}, Data: fmt.Append(nil, i)}},
		}
		ticket, err := a.Append(a.ctx, b)
		if err == nil {
			err = ticket.Wait(a.ctx)
		}
		if err == nil && i > 12 && i%4 < 2 {
			_ = a.PutLazy(a.ctx, journal.ValueWrite{Key: journal.ValueKey{Partition: p, Name: "lazy"}, Data: []byte("z")})
			if ticket, err = a.Drop(a.ctx, b.Appends[1].Log); err == nil {
				err = ticket.Wait(a.ctx)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a.until("the end of removals", func() bool { return a.Stats().Removals == 0 })
	for n := range 2 {
		s.logs = append(s.logs, logs.Messages(n))
	}
	return s
}

// copyAt opens a node whose copies have the first messages of the logs, and which
// receives no others.
func (s *hostileSite) copyAt(t testing.TB, have int) *node {
	t.Helper()
	logs := fakelog.New(2)
	for n := range 2 {
		for _, m := range s.logs[n][:have] {
			logs.Put(n, m)
		}
	}
	b := openNode(t, "b", logs.Connect(), func(o *cluster.Options) { o.Shards, o.Poll = 2, time.Hour })
	b.until("the prefix", func() bool { return b.Reached(s.mine) == uint64(have) && b.Trouble(s.mine) == nil })
	return b
}

// visible returns what readers see of the attacked shard.
func (s *hostileSite) visible(n *node) (out []string) {
	n.t.Helper()
	place, err := n.Place(n.ctx, s.mine)
	out = append(out, fmt.Sprint(n.Reached(s.mine), place.Durable, err))
	for _, id := range []string{"history", "dropped0", "dropped2"} {
		log := history.Of().In("log", id)
		heads, err := n.Head(n.ctx, log)
		out = append(out, fmt.Sprint(id, heads.Durable, err))
		for e, err := range journal.Records(n.ctx, n.Engine, log, journal.ReadOptions{}) {
			if out = append(out, fmt.Sprintf("%d %q %v", e.Offset, e.Data, err)); err != nil {
				break
			}
		}
	}
	for _, name := range []string{"value", "lazy"} {
		v, err := n.Value(n.ctx, journal.ValueKey{Partition: history.Of(), Name: name})
		out = append(out, fmt.Sprint(name, v.Durable, err))
	}
	for _, name := range s.claims {
		c, err := n.Claim(n.ctx, s.mine, name)
		out = append(out, fmt.Sprint(name, c.Durable != nil, err))
	}
	return out
}

// attack is a message with a valid batch that was changed.
type attack struct {
	have, from     uint8  // messages of the copy; the valid message that is changed
	foreign, parts bool   // the message is of another shard; it is sent in parts
	program        []byte // for hostile
	first, count   uint64 // added to those of the message
	lie            byte   // added to the count of operations
}

// run applies the message to a copy, and returns the error.
func (s *hostileSite) run(t testing.TB, a attack) error {
	t.Helper()
	shard, at := s.mine, 1+int(a.have)%(len(s.logs[s.mine])-1)
	if a.foreign {
		shard = 1 - shard
	}
	at = min(at, len(s.logs[1-s.mine])-1)
	base := decode(t, s.logs[shard][1+int(a.from)%(len(s.logs[shard])-1)])
	g, err := frame.DecodeGroup(base.Body)
	if base.Kind != frame.Group || err != nil {
		return nil
	}
	g.First, g.Count, g.Batch = g.First+a.first, g.Count+a.count, buildBatch(hostile(parseBatch(t, g.Batch), a.program), a.lie)
	if g.Count != uint64(len(g.Hints)) {
		g.Hints = nil
	}
	b := s.copyAt(t, at)
	last := decode(t, s.logs[s.mine][at-1])
	body, before := g.Encode(), s.visible(b)
	messages := []port.Message{}
	put := func(kind frame.Kind, body []byte) {
		data, chain := frame.Encode(last.Chain, kind, last.Term, body)
		last.Chain = chain
		messages = append(messages, port.Message{Seq: uint64(at + 1 + len(messages)), Data: data})
	}
	if a.parts {
		half := len(body) / 2
		put(frame.Part, (&frame.PartBody{Index: 1, Of: 2, Piece: body[:half]}).Encode())
		put(frame.Part, (&frame.PartBody{Index: 2, Of: 2, Piece: body[half:]}).Encode())
	} else {
		put(frame.Group, body)
	}
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	err = b.Give(b.ctx, s.mine, messages...)
	runtime.ReadMemStats(&is)
	if took := is.TotalAlloc - was.TotalAlloc; s.alone && took > 32<<20+64*uint64(len(body)) {
		t.Errorf("a message of %d bytes took %d bytes of memory", len(body), took)
	}
	if b.Health().State == journal.Broken {
		t.Fatalf("the store is dead: %v", b.Health().Err)
	}
	if err == nil {
		_ = s.visible(b)
		b.reopens()
		return nil
	}
	if group, ok := errors.AsType[*cluster.GroupError](err); !ok || !errors.Is(group, journal.ErrDamaged) {
		t.Fatalf("it is refused with %v", err)
	}
	after := s.visible(b)
	if a.parts { // the first was read
		before[0], after[0] = "", ""
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Fatalf("it is refused with %v, and changed the copy:\n%s", err, diff)
	}
	if !a.parts {
		if err := b.Give(b.ctx, s.mine, port.Message{Seq: uint64(at + 1), Data: s.logs[s.mine][at]}); err != nil {
			t.Fatalf("after it was refused the true message is, too: %v", err)
		}
	}
	return err
}

var hostilePrograms = map[string][]byte{
	"an unknown kind of operation":   {0, 0, 200},
	"a merge":                        {0, 1, 2},
	"an unknown kind of key":         {1, 0, 0, 8},
	"a record's checksum":            {2, 0, 0, 1, 2, 1, 0, 1, 2, 2, 0, 1},
	"an epoch":                       {5, 0, 1, 2, 'm', 'e', 1, 1},
	"a place":                        {5, 0, 1, 2, 'm', 'a', 1, 1},
	"a removal that is none":         {5, 0, 1, 9, 'd', 0, 0, 0, 0, 0, 0, 0, 0, 1, 1},
	"everything deleted":             {5, 0, 15, 1, 0, 1, 255},
	"all records deleted":            {5, 0, 15, 1, 'r', 1, 's'},
	"a range that ends at its start": {5, 0, 15, 17, 'r', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 17, 'r', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	"an entry deleted":               {5, 0, 0, 9, 'c', 0, 0, 0, 0, 0, 0, 0, 1},
	"entries twice":                  {4, 4, 4, 5, 4, 6, 4, 7, 4, 8, 4, 9, 4, 10},
	"nothing":                        {3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0, 3, 0},
}

// TestHostileGroups: a group that no engine of the shard wrote is refused.
func TestHostileGroups(t *testing.T) {
	t.Parallel()
	s := newHostileSite(t)
	for at := range uint8(len(s.logs[s.mine]) - 1) {
		if err := s.run(t, attack{have: at, from: at}); err != nil {
			t.Errorf("what an engine wrote is refused: %v", err)
		}
	}
	attacks := map[string]attack{
		"of another shard": {foreign: true}, "many batches": {count: 1 << 62}, "no batches": {count: ^uint64(0)},
		"late offsets": {first: 1 << 63}, "more operations": {lie: 9},
	}
	for name, program := range hostilePrograms {
		attacks[name] = attack{program: program}
	}
	for name, a := range attacks {
		a.have, a.from = 4, 4
		for _, a.parts = range []bool{false, true} {
			if s.run(t, a) == nil {
				t.Errorf("%s: it is applied (in parts: %v)", name, a.parts)
			}
		}
	}
}

// FuzzHostileGroups: a message with a valid form, checksum, chain and term has a
// Pebble batch that no engine of this shard wrote. The message is applied, or is
// refused with a typed error, changes nothing, allocates little, and leaves a copy
// that continues with the valid message.
func FuzzHostileGroups(f *testing.F) {
	s := newHostileSite(f)
	s.alone = true
	for _, program := range hostilePrograms {
		f.Add(uint8(4), uint8(4), false, false, program, uint64(0), uint64(0), byte(0))
	}
	f.Add(uint8(4), uint8(4), false, false, []byte{2, 0, 0, 255, 7, 0}, uint64(0), uint64(0), byte(0)) // with a checksum that is right
	f.Add(uint8(9), uint8(5), true, true, []byte{6, 0, 1, 'x', 4, 0, 3, 2}, uint64(1), uint64(1), byte(1))
	f.Fuzz(func(t *testing.T, have, from uint8, foreign, parts bool, program []byte, first, count uint64, lie byte) {
		_ = s.run(t, attack{have, from, foreign, parts, program, first, count, lie})
	})
}

// reopens closes the node and opens its copies again.
func (n *node) reopens() {
	n.t.Helper()
	if err := n.Close(); err != nil {
		n.t.Fatal(err)
	}
	again := openOn(n.t, n.fs, "again", fakelog.New(2).Connect(), func(o *cluster.Options) { o.Shards, o.Poll = 2, time.Hour })
	if err := again.Close(); err != nil {
		n.t.Fatal(err)
	}
}
