package journal_test

import (
	"context"
	"fmt"
	"log"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
)

// A batch is ordered first and durable later; only then do readers see it.
func Example() {
	ctx := context.Background()
	engine, err := mem.Open(mem.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close() //nolint:errcheck // nothing to lose in memory

	channel := journal.PartitionName{Tenant: "acme", Partition: "channel-1"}
	ticket, err := engine.Append(ctx, journal.Batch{Appends: []journal.Append{{
		Log:    channel.In("history", "channel-1"),
		Expect: journal.Exactly(0),
		Records: []journal.Record{{
			Data: []byte("hello"),
			Put:  []journal.IndexPut{{Key: []byte("channel/channel-1")}},
			Take: []journal.Take{{Name: "name/lobby"}},
		}},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ordered at", ticket.Position(0))
	if err := ticket.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	for entry, err := range journal.Records(ctx, engine, channel.In("history", "channel-1"), journal.ReadOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %s\n", entry.Seq, entry.Data)
	}
	_, err = engine.Append(ctx, journal.Batch{Appends: []journal.Append{{
		Log:     channel.In("history", "channel-2"),
		Records: []journal.Record{{Take: []journal.Take{{Name: "name/lobby"}}}},
	}}})
	fmt.Println(err)
	// Output:
	// ordered at 1.1.1
	// 1 hello
	// claim "name/lobby" is held by record 1 of log acme/channel-1/history/channel-1
}
