package cluster_test

import (
	"errors"
	"testing"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/internal/fakelog"
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
)

// led returns a log with a fence and three records, and the node that wrote them.
func led(t *testing.T) (*fakelog.Logs, *node) {
	t.Helper()
	logs := fakelog.New(1)
	a := openNode(t, "a", logs.Connect()).take()
	a.write("1", "2", "3")
	return logs, a
}

// reopen closes a node, changes its log, and opens it again.
func (n *node) reopen(log *fakelog.Logs, change func()) *node {
	n.t.Helper()
	if err := n.Close(); err != nil {
		n.t.Fatal(err)
	}
	change()
	return openOn(n.t, n.fs, n.opts.Node, log.Connect())
}

func decode(t testing.TB, data []byte) frame.Message {
	t.Helper()
	m, err := frame.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestABrokenChain(t *testing.T) {
	t.Parallel()
	logs, _ := led(t)
	m := decode(t, logs.Messages(0)[2])
	changed, _ := frame.Encode(frame.Chain{1}, m.Kind, m.Term, m.Body)
	logs.Set(0, 3, changed)
	b := openNode(t, "b", logs.Connect())
	if err := fails[*cluster.ChainError](b); err.Seq != 3 {
		t.Fatal(err)
	}
	b.has("1")
}

// TestALogThatWasChanged: the copy of a node reveals that its log was changed.
func TestALogThatWasChanged(t *testing.T) {
	t.Parallel()
	logs, a := led(t)
	a = a.reopen(logs, func() {
		m, before := decode(t, logs.Messages(0)[3]), decode(t, logs.Messages(0)[2])
		changed, _ := frame.Encode(before.Chain, m.Kind, m.Term, append(m.Body, 0))
		logs.Set(0, 4, changed)
	})
	_ = fails[*cluster.ChainError](a)
	a.has("1", "2", "3")
}

func TestAMessageOfAnOldTerm(t *testing.T) {
	t.Parallel()
	logs, _ := led(t)
	b := openNode(t, "b", logs.Connect()).take() // a fence at 5
	last := decode(t, logs.Messages(0)[4])
	late, _ := frame.Encode(last.Chain, frame.Barrier, 1, nil)
	logs.Put(0, late)
	if err := fails[*cluster.TermError](b); err.Seq != 6 || err.Term != 1 || err.Want != 5 {
		t.Fatal(err)
	}
}

func TestALogThatWentBack(t *testing.T) {
	t.Parallel()
	logs, a := led(t)
	a = a.reopen(logs, func() { logs.Truncate(0, 2) })
	if err := fails[*cluster.WentBackError](a); err.Last != 2 || err.Applied != 4 {
		t.Fatal(err)
	}
	a.has("1", "2", "3")
}

// TestALogThatGoesBackUnderItsLeader: what the leader publishes afterwards gets a
// result, and never success.
func TestALogThatGoesBackUnderItsLeader(t *testing.T) {
	t.Parallel()
	logs, a := led(t)
	logs.Truncate(0, 2)
	if o := a.outcome(a.order("4")); o != journal.Unknown {
		t.Fatalf("it ended %v", o)
	}
	_ = fails[*cluster.WentBackError](a)
	a.has("1", "2", "3")
}

func TestALogMadeAnew(t *testing.T) {
	t.Parallel()
	logs, a := led(t)
	a = a.reopen(logs, func() { logs.Replace(0) })
	_ = fails[*cluster.ReplacedError](a)
	a.has("1", "2", "3")
}

func TestALogMadeAnewUnderItsLeader(t *testing.T) {
	t.Parallel()
	logs, a := led(t)
	logs.Replace(0)
	logs.Put(0, []byte("x")) // any message: it takes the leader's slot
	if o := a.outcome(a.order("4")); o == journal.Durable {
		t.Fatal("it is durable, in another log")
	}
}

func TestALogOfAnotherEpoch(t *testing.T) {
	t.Parallel()
	logs, a := led(t)
	a = a.reopen(logs, func() { logs.Epoch = 2 })
	if err := fails[*cluster.EpochError](a); err.Log != 2 || err.Copy != 1 {
		t.Fatal(err)
	}
}

func TestALogThatBeginsAfterTheCopy(t *testing.T) {
	t.Parallel()
	logs, _ := led(t)
	logs.Purge(0, 3)
	b := openNode(t, "b", logs.Connect())
	_ = fails[*cluster.BehindError](b)
}

// TestForeignBytes: all nodes skip and count a message that no node wrote; a leader
// whose slot it took fences again.
func TestForeignBytes(t *testing.T) {
	t.Parallel()
	logs, a := led(t)
	b := openNode(t, "b", logs.Connect())
	whole := logs.Messages(0)[3]
	for _, foreign := range [][]byte{nil, []byte("x"), []byte("PJ"), whole[:len(whole)-1]} {
		logs.Put(0, foreign)
	}
	if o := a.outcome(a.order("lost")); o == journal.Durable {
		t.Fatal("it is durable, in a slot that others have")
	}
	a.until("the end of the lead", func() bool { mine, _, _ := a.Lead(0); return !mine })
	a.take().write("4")
	a.has("1", "2", "3", "4")
	b.reaches(a.Reached(0))
	b.has("1", "2", "3", "4")
	if a.Voids() != 4 || b.Voids() != 4 {
		t.Fatalf("%d and %d foreign messages were counted", a.Voids(), b.Voids())
	}
	c := openNode(t, "c", logs.Connect())
	c.reaches(a.Reached(0))
	c.has("1", "2", "3", "4")
	verify(t, logs.Messages(0))
}

// TestWhatCannotBeApplied: a message has a valid form and invalid contents.
func TestWhatCannotBeApplied(t *testing.T) {
	t.Parallel()
	hostile := map[string]struct {
		kind frame.Kind
		body []byte
	}{
		"a group of nothing":    {frame.Group, nil},
		"a batch cut short":     {frame.Group, (&frame.GroupBody{First: 4, Count: 1, Batch: []byte("short")}).Encode()},
		"another offset":        {frame.Group, (&frame.GroupBody{First: 9, Count: 1, Batch: make([]byte, 12)}).Encode()},
		"a batch without entry": {frame.Group, (&frame.GroupBody{First: 4, Count: 1, Batch: make([]byte, 12)}).Encode()},
		"hints that are not":    {frame.Group, []byte{4, 200, 1, 1, 255}},
		"part 2 without part 1": {frame.Part, (&frame.PartBody{Index: 2, Of: 3, Piece: []byte("x")}).Encode()},
		"part 0":                {frame.Part, []byte{0, 2, 1}},
	}
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logs, _ := led(t)
			last := decode(t, logs.Messages(0)[3])
			data, _ := frame.Encode(last.Chain, c.kind, last.Term, c.body)
			logs.Put(0, data)
			b := openNode(t, "b", logs.Connect())
			if err := fails[*cluster.GroupError](b); err.Seq != 5 {
				t.Fatal(err)
			}
			b.has("1", "2", "3")
			if errors.Is(b.Health().Err, journal.ErrFailed) {
				t.Fatal("the store is dead")
			}
		})
	}
	t.Run("a newer form", func(t *testing.T) {
		t.Parallel()
		logs, _ := led(t)
		last := decode(t, logs.Messages(0)[3])
		body := frame.FenceBody{Epoch: 1, Format: frame.Format + 1, Base: 3, Node: "new"}
		data, _ := frame.Encode(last.Chain, frame.Fence, 5, body.Encode())
		logs.Put(0, data)
		_ = fails[*cluster.GroupError](openNode(t, "b", logs.Connect()))
	})
}
