package hub

import (
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// noteActivity moves the channel's place among those that something was said in,
// once a minute at most.
func (b *batch) noteActivity() {
	if len(b.history) == 0 || b.meta.State.Terminal() {
		return
	}
	at := b.thisMinute()
	if at <= b.watch.Active {
		return
	}
	b.sideNote(schema.SideRecord{Kind: schema.SideActive, Due: int64(at)}, func(r *journal.Record) {
		r.Remove = b.activeKey()
		b.watch.Active = at
		r.Put = []journal.IndexPut{b.activePut()}
	})
}

func (b *batch) thisMinute() expect.Instant {
	return expect.InstantOf(b.now.Truncate(schema.ActivePrecision))
}

func (b *batch) activePut() journal.IndexPut {
	home, _ := schema.Split(b.ch.id)
	return journal.IndexPut{Key: b.activeKey()[0], Value: schema.ListedIn(home, dialectOf(b.ch.adapter))}
}

// activeKey is the channel's index entry by activity, if it has one.
func (b *batch) activeKey() [][]byte {
	if b.watch.Active.IsZero() {
		return nil
	}
	_, own := schema.Split(b.ch.id)
	return [][]byte{schema.ActiveKey(b.watch.Active.Time(), own)}
}
