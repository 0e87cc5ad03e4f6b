package view

import (
	"iter"

	"github.com/parley-hub/parley/channel"
)

// Items reads a log as the neutral items that every dialect can show.
// Envelopes that the participant may not see are left out before they are
// read.
func Items(in Input) iter.Seq[channel.Item] {
	return func(yield func(channel.Item) bool) {
		reader := in.reader()
		var items []channel.Item
		for _, e := range in.Log {
			if !in.visible(e) {
				continue
			}
			items = reader.Read(items[:0], e)
			for i := range items {
				if !yield(items[i]) {
					return
				}
			}
		}
	}
}

// reader returns the channel's own item reader, or one that reads only the
// hub's envelopes.
func (in *Input) reader() channel.ItemReader {
	if in.Adapter == nil || in.Channel == nil {
		return channel.ItemFunc(channel.ReadOther)
	}
	return channel.ReaderOf(in.Adapter, in.Channel)
}
