package disk_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var (
	ctx  = context.Background()
	room = journal.PartitionName{Tenant: "acme", Partition: "room-1"}
)

// contents is everything a reader can see in the store that populate made.
type contents struct {
	Logs   map[string][]string
	Index  []string
	Claims map[string]string
	Values map[string]string
}

// populate writes some data of every kind.
func populate(t testing.TB, e journal.Engine) {
	t.Helper()
	for i := range 6 {
		log := room.In("history", fmt.Sprint(i%3))
		commit(t, e, journal.Batch{
			Appends: []journal.Append{{Log: log, Records: []journal.Record{{
				Data: fmt.Appendf(nil, "record %d with some text to it", i),
				Put:  []journal.IndexPut{{Key: fmt.Appendf(nil, "key/%d", i), Value: []byte("value")}},
				Take: []journal.Take{{Name: fmt.Sprintf("claim/%d", i)}},
			}, {Data: []byte("second")}}}},
			Values: []journal.ValueWrite{{Key: journal.ValueKey{Partition: room, Name: fmt.Sprint("v", i%2)}, Data: fmt.Append(nil, i)}},
		})
	}
	ticket, err := e.Drop(ctx, room.In("history", "2"))
	if err != nil {
		t.Fatal(err)
	}
	if err := ticket.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := e.PutLazy(ctx, journal.ValueWrite{Key: journal.ValueKey{Partition: room, Name: "lazy"}, Data: []byte("cursor")}); err != nil {
		t.Fatal(err)
	}
}

func commit(t testing.TB, e journal.Engine, b journal.Batch) *journal.Ticket {
	t.Helper()
	ticket, err := e.Append(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	if err := ticket.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	return ticket
}

// readAll reads everything that populate may have written. It returns what could be
// read, and the errors.
func readAll(e journal.Engine) (contents, []error) {
	c := contents{Logs: map[string][]string{}, Claims: map[string]string{}, Values: map[string]string{}}
	var errs []error
	note := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	}
	for i := range 4 {
		log := room.In("history", fmt.Sprint(i))
		for entry, err := range journal.Records(ctx, e, log, journal.ReadOptions{}) {
			if note(err) {
				c.Logs[log.ID] = append(c.Logs[log.ID], fmt.Sprintf("%d@%d %s", entry.Seq, entry.Offset, entry.Data))
			}
		}
	}
	for entry, err := range journal.Index(ctx, e, 0, journal.ScanOptions{}) {
		if note(err) {
			c.Index = append(c.Index, string(entry.Key)+"="+string(entry.Value))
		}
	}
	for i := range 6 {
		state, err := e.Claim(ctx, 0, fmt.Sprintf("claim/%d", i))
		if note(err) && state.Durable != nil {
			c.Claims[state.Durable.Name] = fmt.Sprintf("%v %d", state.Durable.Log, state.Durable.Seq)
		}
	}
	for _, lazy := range []bool{false, true} {
		page, err := e.Values(ctx, room, journal.ValuesOptions{Lazy: lazy})
		if note(err) {
			for _, v := range page.Values {
				c.Values[fmt.Sprint(v.Name, lazy)] = fmt.Sprintf("%s@%d", v.Data, v.Version)
			}
		}
	}
	return c, errs
}

// within returns an error unless everything in c is in whole, with the same content.
func (c contents) within(whole contents) error {
	for log, texts := range c.Logs {
		for i, text := range texts {
			if i >= len(whole.Logs[log]) || whole.Logs[log][i] != text {
				return fmt.Errorf("log %s has %q at place %d", log, text, i)
			}
		}
	}
	index := map[string]bool{}
	for _, entry := range whole.Index {
		index[entry] = true
	}
	for _, entry := range c.Index {
		if !index[entry] {
			return fmt.Errorf("index entry %q", entry)
		}
	}
	for _, pair := range [][2]map[string]string{{c.Claims, whole.Claims}, {c.Values, whole.Values}} {
		for key, v := range maps.All(pair[0]) {
			if pair[1][key] != v {
				return fmt.Errorf("%s is %q", key, v)
			}
		}
	}
	return nil
}
