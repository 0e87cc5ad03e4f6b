// Package upgrade brings the data of an older hub up to date, before anything else
// writes to them.
package upgrade

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// layout is the version of the data's layout that this hub writes:
//
//	0  as first stored
//	1  open channels are in the lists of open and of active ones
//	2  open channels are no longer in the lists of ended ones, and one that opens at
//	   once may have no side log; data of layout 1 are read as they are
const layout = 2

// upgradeStep is how many channels are processed before the progress of the upgrade
// is stored.
const upgradeStep = 256

// Run brings data of an older layout up to date. Index entries come only from
// records, so channels that were opened before lack the newer ones: Run appends a
// record with these entries to each open channel. An interrupted upgrade continues
// where it stopped.
func Run(ctx context.Context, l *ledger.Ledger) error {
	return (&upgrader{l}).run(ctx)
}

// upgrader appends the records that are missing.
type upgrader struct{ *ledger.Ledger }

func (u *upgrader) run(ctx context.Context) error {
	value, err := u.Journal.Value(ctx, u.Tenant.Layout())
	if err != nil {
		return ledger.Unavailable(err)
	}
	switch version := schema.DecodeUint(value.Durable.Data); {
	case version == layout:
		return nil
	case version > layout:
		return fmt.Errorf("the data have layout %d, this version knows up to %d: use a newer version", version, layout)
	case version == 1:
		return u.reached(ctx, nil, journal.ValueWrite{Key: u.Tenant.Layout(), Data: schema.EncodeUint(layout)})
	}
	at, err := u.Journal.Value(ctx, u.Tenant.LayoutNext())
	if err != nil {
		return ledger.Unavailable(err)
	}
	scan := journal.ScanOptions{Prefix: []byte(schema.IndexOwned)}
	if at.Durable.Version != 0 {
		scan.From = append(at.Durable.Data, 0)
	}
	var tickets []*journal.Ticket
	for entry, err := range journal.IndexAll(ctx, u.Journal, scan) {
		if err != nil {
			return ledger.Unavailable(err)
		}
		ticket, err := u.channel(ctx, schema.OwnedChannel(entry))
		if err != nil {
			return ledger.Unavailable(err)
		}
		if ticket != nil {
			tickets = append(tickets, ticket)
		}
		if len(tickets) >= upgradeStep {
			if err := u.reached(ctx, tickets, journal.ValueWrite{Key: u.Tenant.LayoutNext(), Data: entry.Key}); err != nil {
				return err
			}
			tickets = tickets[:0]
		}
	}
	return u.reached(ctx, tickets,
		journal.ValueWrite{Key: u.Tenant.Layout(), Data: schema.EncodeUint(layout)},
		journal.ValueWrite{Key: u.Tenant.LayoutNext(), Delete: true})
}

// reached stores the progress of the upgrade after its records are durable.
func (u *upgrader) reached(ctx context.Context, tickets []*journal.Ticket, writes ...journal.ValueWrite) error {
	for _, ticket := range tickets {
		if err := ticket.Wait(ctx); err != nil {
			return ledger.Unavailable(err)
		}
	}
	return u.Commit(ctx, journal.Batch{Values: writes})
}

// channel appends the records that an older version did not write for an open
// channel. It reads only the last record of the channel's history. Nothing else
// writes yet.
func (u *upgrader) channel(ctx context.Context, id string) (*journal.Ticket, error) {
	logs := u.Tenant.Channel(id)
	meta, err := u.Journal.Head(ctx, logs.Meta())
	if err != nil || !meta.Durable.Exists() {
		return nil, err
	}
	side, err := u.Journal.Head(ctx, logs.Side())
	if err != nil {
		return nil, err
	}
	at, err := u.lastSaid(ctx, logs)
	if err != nil {
		return nil, err
	}
	home, own := schema.Split(id)
	listed := schema.ListedIn(home, "") // the first versions had no channels that only one dialect shows
	note := schema.SideRecord{Kind: schema.SideActive, Due: at.UnixNano()}
	noted, err := note.Encode()
	if err != nil {
		return nil, err
	}
	return u.Journal.Append(ctx, journal.Batch{Appends: []journal.Append{
		{Log: logs.Meta(), Expect: journal.Exactly(meta.Ordered.Seq), Records: []journal.Record{{
			Data: schema.EncodeListed(), Put: []journal.IndexPut{{Key: schema.Key(schema.IndexOpen, own), Value: listed}},
		}}},
		{Log: logs.Side(), Expect: journal.Exactly(side.Ordered.Seq), Records: []journal.Record{{
			Data: noted, Put: []journal.IndexPut{{Key: schema.ActiveKey(at, own), Value: listed}},
		}}},
	}})
}

// lastSaid returns the minute of a channel's last envelope, or the current one if
// it has none.
func (u *upgrader) lastSaid(ctx context.Context, logs schema.ChannelLogs) (time.Time, error) {
	at := u.Now()
	page, err := u.Journal.Read(ctx, logs.History(), journal.ReadOptions{Backward: true, Limits: journal.Limits{Entries: 1}})
	if err != nil {
		return at, err
	}
	if len(page.Entries) > 0 {
		if e, err := envelope.Unmarshal(page.Entries[0].Data); err == nil {
			at = e.CreatedAt
		}
	}
	return at.Truncate(schema.ActivePrecision), nil
}
