package schema

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/journal"
)

// TaskPlace names the log of a task that exists or is about to be stored.
type TaskPlace struct {
	Log     journal.LogName
	Channel string // the channel of the task; empty: none
	At      time.Time
	Seq     uint64 // of the record
}

type placeRecord struct {
	Partition string `json:"partition"`
	Log       string `json:"log"`
	Channel   string `json:"channel,omitzero"`
	At        string `json:"at"`
}

// EncodeTaskPlace returns the record that claims a task's id. Again is true if an
// older record of the log holds the claim.
func EncodeTaskPlace(id string, p TaskPlace, again bool) (journal.Record, error) {
	data, err := json.Marshal(placeRecord{
		Partition: p.Log.Partition, Log: p.Log.ID, Channel: p.Channel, At: p.At.Format(time.RFC3339Nano),
	})
	r := journal.Record{Data: data, Take: []journal.Take{{Name: TaskClaim(id)}}}
	if again {
		r.Release = []string{TaskClaim(id)}
	}
	return r, err
}

// DecodeTaskPlace reads what EncodeTaskPlace writes.
func DecodeTaskPlace(t Tenant, entry journal.Entry) (TaskPlace, error) {
	var r placeRecord
	if err := json.Unmarshal(entry.Data, &r); err != nil {
		return TaskPlace{}, err
	}
	at, err := envelope.ParseTime(r.At)
	in := journal.PartitionName{Tenant: string(t), Partition: r.Partition}
	return TaskPlace{Log: TaskIn(in, r.Log), Channel: r.Channel, At: at, Seq: entry.Seq}, err
}
