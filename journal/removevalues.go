package journal

import "context"

// RemoveValues deletes the durable and the lazy values of a partition whose
// names start with a prefix, in batches of bounded size. It may be repeated
// after a failure. When it returns nil the durable ones are gone for good; the
// lazy ones are, as every lazy write, durable with the next durable batch of the
// shard.
func RemoveValues(ctx context.Context, e Engine, p PartitionName, prefix string) error {
	for _, lazy := range []bool{true, false} {
		opts := ValuesOptions{Lazy: lazy, Prefix: prefix, Limits: Limits{Entries: MaxBatchValues}}
		for more := true; more; {
			page, err := e.Values(ctx, p, opts)
			if err != nil {
				return err
			}
			more = page.More
			if len(page.Values) == 0 {
				break
			}
			opts.After = page.Values[len(page.Values)-1].Name
			if err := deleteValues(ctx, e, p, page.Values, lazy); err != nil {
				return err
			}
		}
	}
	return nil
}

func deleteValues(ctx context.Context, e Engine, p PartitionName, values []NamedValue, lazy bool) error {
	writes := make([]ValueWrite, len(values))
	for i, v := range values {
		writes[i] = ValueWrite{Key: ValueKey{Partition: p, Name: v.Name}, Delete: true}
	}
	if lazy {
		return e.PutLazy(ctx, writes...)
	}
	ticket, err := e.Append(ctx, Batch{Values: writes})
	if err != nil {
		return err
	}
	return ticket.Wait(ctx)
}
