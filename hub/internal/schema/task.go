package schema

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/task"
)

// StoredTask is a task as it was last stored or ordered.
type StoredTask struct {
	task.Task
	Order string // minted when the task was first observed
	Seq   uint64 // of its log's last record
}

// taskRecord is one record of a task's log: the whole task, or only its end if
// nothing else changed.
type taskRecord struct {
	Order string         `json:"order"`
	Task  jsontext.Value `json:"task,omitzero"`
	End   *taskEnd       `json:"end,omitzero"`
}

type taskEnd struct {
	State task.State `json:"state"`
	Error string     `json:"error"`
	At    string     `json:"at"`
}

// WriteTask returns the record that turns old, nil for a new task, into next. If
// ending is true, the record only ends the task; it is small, so that many fit in
// the batch of their channel's end.
func WriteTask(old *StoredTask, next *StoredTask, ending bool) (journal.Record, error) {
	buf := &jsonbuf.Buffer{}
	buf.Open('{').Key("order").String(next.Order)
	if ending {
		buf.Key("end").Open('{')
		buf.Key("state").String(string(next.State))
		buf.Key("error").String(next.Error)
		buf.Key("at").String(envelope.FormatTime(next.CompletedAt))
		buf.Close('}')
	} else {
		next.AppendTo(buf.Key("task"))
	}
	data, err := buf.Close('}').Result()
	if err != nil {
		return journal.Record{}, fault.Wrap(fault.Invalid, err, "task '%s' cannot be written: %v", next.ID, err)
	}
	r := journal.Record{Data: data}
	taskIndex(&r, old, next)
	return r, nil
}

// taskIndex adds the index changes of a task to its record.
func taskIndex(r *journal.Record, old, next *StoredTask) {
	put := func(k []byte) {
		r.Put = append(r.Put, journal.IndexPut{Key: k, Value: []byte(next.ID)})
	}
	open := Key(IndexTaskOpen, Digest(next.Owner), next.Order)
	ended := next.State.Terminal()
	if old == nil {
		put(Key(IndexTask, next.Order))
		put(Key(IndexTaskOwner, Digest(next.Owner), next.Order))
		if next.Channel != "" {
			put(Key(IndexTaskChannel, Digest(next.Channel), next.Order))
		}
		if !ended {
			put(open)
		}
	} else if ended {
		r.Remove = append(r.Remove, open)
	}
	if old != nil && !old.ExpiresAt.IsZero() && (ended || !old.ExpiresAt.Equal(next.ExpiresAt)) {
		r.Remove = append(r.Remove, taskDue(old))
	}
	if !ended && !next.ExpiresAt.IsZero() && (old == nil || !old.ExpiresAt.Equal(next.ExpiresAt)) {
		put(taskDue(next))
	}
}

func taskDue(t *StoredTask) []byte { return DueKey(DueTask, t.ExpiresAt, t.Order) }

// ReadTask reads a task from the newest records of its log, newest first.
func ReadTask(id string, newest []journal.Entry) (*StoredTask, error) {
	t := &StoredTask{Seq: newest[0].Seq}
	var end *taskEnd
	for _, entry := range newest {
		var r taskRecord
		if err := json.Unmarshal(entry.Data, &r); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "record %d of task '%s' cannot be read: %v", entry.Seq, id, err)
		}
		if r.End != nil {
			end = r.End
			continue
		}
		if err := t.Task.UnmarshalJSON(r.Task); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "record %d of task '%s' cannot be read: %v", entry.Seq, id, err)
		}
		t.Order = r.Order
		break
	}
	if end != nil {
		at, err := envelope.ParseTime(end.At)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the end of task '%s' cannot be read: %v", id, err)
		}
		t.State, t.Error, t.CompletedAt = end.State, end.Error, at
	}
	return t, nil
}
