package hub

import (
	"context"
	"encoding/binary"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/request"
)

// foldVersion goes up whenever the hub folds something else besides the adapter's
// state, or stores it in another form.
const foldVersion = 3

// savedFold is a channel as it was folded at the end of a batch. It is kept as a
// snapshot of the journal, so that a channel whose log is long is loaded without
// reading all of it. It is disposable: nothing is in it that the logs do not say.
type savedFold struct {
	ch      *loadedChannel // whose names are read, and nothing else
	adapter channel.Adapter
	state   channel.State
	watch   watch
	marks   marks
	heads   heads
	lastID  string
}

// savedHead is what a snapshot holds in front of the adapter's state.
type savedHead struct {
	LastID  string       `json:"last_id"`
	Watch   expect.Watch `json:"watch"`
	Replies bool         `json:"replies"` // they were followed
	Marks   savedMarks   `json:"marks"`
}

type savedMarks struct {
	Fired   []string        `json:"fired,omitempty"`
	Hidden  []string        `json:"hidden,omitempty"`
	Removed []string        `json:"removed,omitempty"`
	Tasks   []string        `json:"tasks,omitempty"`
	Due     []savedDeadline `json:"due,omitempty"`
	Listed  []string        `json:"listed,omitempty"`
	Open    []savedRequest  `json:"open,omitempty"`
	Asked   []expect.Asked  `json:"asked,omitempty"`
}

type savedRequest struct {
	Request []byte `json:"request"` // as its record has it
	Asked   uint64 `json:"asked"`
}

type savedDeadline struct {
	Name string         `json:"name"`
	At   expect.Instant `json:"at"`
}

func saveMarks(m marks) (savedMarks, error) {
	s := savedMarks{Fired: m.fired, Hidden: m.hid, Removed: m.out, Tasks: m.tasks, Listed: m.listed, Asked: m.asked}
	for _, d := range m.due {
		s.Due = append(s.Due, savedDeadline{d.name, d.at})
	}
	for _, q := range m.open {
		data, err := q.Encode()
		if err != nil {
			return s, err
		}
		s.Open = append(s.Open, savedRequest{data, q.asked})
	}
	return s, nil
}

// marks leaves out who waits for a replay, as loading does. Every field is named
// by its place, so that a new one cannot be forgotten here.
func (s *savedMarks) marks() (marks, error) {
	var due []deadline
	for _, d := range s.Due {
		due = append(due, deadline{d.Name, d.At})
	}
	var open []openRequest
	for _, q := range s.Open {
		asked, err := request.Decode(q.Request)
		if err != nil {
			return marks{}, err
		}
		open = append(open, openRequest{asked, q.Asked})
	}
	return marks{s.Fired, s.Hidden, s.Removed, nil, s.Tasks, due, s.Listed, open, s.Asked}, nil
}

// savedVersion is that of a snapshot which an adapter's codec reads.
func savedVersion(c channel.Codec) uint64 { return foldVersion<<32 | uint64(uint32(c.Version)) }

// encode writes the head, with its length in front, and the state.
func (f *savedFold) encode() ([]byte, error) {
	marks, err := saveMarks(f.marks)
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(savedHead{
		LastID: f.lastID, Watch: f.watch.Watch, Replies: f.watch.plan != nil && f.watch.plan.replies, Marks: marks,
	})
	if err != nil {
		return nil, err
	}
	state, err := f.adapter.Codec().Encode(f.state)
	if err != nil {
		return nil, err
	}
	data := binary.AppendUvarint(make([]byte, 0, len(head)+len(state)+binary.MaxVarintLen64), uint64(len(head)))
	return append(append(data, head...), state...), nil
}

// decode reads what encode wrote into the fold.
func (f *savedFold) decode(data []byte) (err error) {
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return fault.New(fault.Internal, "the snapshot is cut off")
	}
	var head savedHead
	if err := json.Unmarshal(data[n:n+int(size)], &head); err != nil {
		return err
	}
	if head.Replies != (f.watch.plan != nil && f.watch.plan.replies) {
		return fault.New(fault.Internal, "the snapshot measures other expectations")
	}
	if f.marks, err = head.Marks.marks(); err != nil {
		return err
	}
	f.watch.Watch, f.lastID = head.Watch, head.LastID
	f.state, err = f.adapter.Codec().Decode(data[n+int(size):])
	return err
}

// savedKey names a channel's snapshot.
func savedKey(logs schema.ChannelLogs) journal.ValueKey {
	return journal.ValueKey{Partition: logs.Partition(), Name: "fold/" + logs.History().ID}
}

// long reports whether so many records are worth a snapshot.
func (h *Hub) long(records uint64) bool {
	return h.opts.SnapshotAfter > 0 && records >= uint64(h.opts.SnapshotAfter)
}

// restore sets a channel to its snapshot, if it has one that fits, and reports
// whether it did. Without one, the whole log is folded.
func (h *Hub) restore(ctx context.Context, ch *loadedChannel, f *savedFold) bool {
	history, err := h.journal.Head(ctx, ch.logs.History())
	if err != nil {
		return false
	}
	side, err := h.journal.Head(ctx, ch.logs.Side())
	if err != nil || !h.long(history.Durable.Seq+side.Durable.Seq) {
		return false
	}
	s, err := h.journal.Snapshot(ctx, savedKey(ch.logs), savedVersion(ch.adapter.Codec()))
	if err != nil || s == nil || len(s.Logs) != 2 || s.Logs[0].Log != ch.logs.History() || s.Logs[1].Log != ch.logs.Side() {
		return false
	}
	if err := h.guarded(func() error { return f.decode(s.Data) }); err != nil {
		h.log.Warn("the snapshot of a channel is not used; its log is folded", "channel_id", ch.id, "error", err)
		return false
	}
	f.heads.history, f.heads.side = s.Logs[0].At.Seq, s.Logs[1].At.Seq
	ch.nextSave = f.records() + h.saveInterval(len(s.Data))
	return true
}

func (f *savedFold) records() uint64 { return f.heads.history + f.heads.side }
