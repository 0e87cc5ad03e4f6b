package journalbench

import (
	"context"
	"fmt"

	"github.com/parley-hub/parley/journal"
)

// fill appends records to logs in turn, so many to each visit, in large
// batches.
func fill(ctx context.Context, e journal.Engine, family string, logs, records, visit, size int, data [][]byte) error {
	var last *journal.Ticket
	n := 0
	b := journal.Batch{}
	held := 0
	send := func() error {
		if held == 0 {
			return nil
		}
		ticket, err := e.Append(ctx, b)
		if err != nil {
			return err
		}
		last, b, held = ticket, journal.Batch{}, 0
		return nil
	}
	for n < records {
		for i := range logs {
			a := journal.Append{Log: partition.In(family, fmt.Sprint(i))}
			for range min(visit, records-n) {
				a.Records = append(a.Records, journal.Record{Data: data[n%len(data)][:size]})
				n++
			}
			if len(a.Records) == 0 {
				break
			}
			if held+len(a.Records) > journal.MaxBatchRecords {
				if err := send(); err != nil {
					return err
				}
			}
			b.Appends = append(b.Appends, a)
			held += len(a.Records)
		}
		if err := send(); err != nil { // a batch names a log once
			return err
		}
	}
	return last.Wait(ctx)
}
