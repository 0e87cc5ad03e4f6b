package hub

import (
	"context"
	"iter"
	"strings"

	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// scanLists merges several lists of channels, each in the same order, into one in
// that order. What is in several of them comes once.
func (h *Hub) scanLists(ctx context.Context, scans []journal.ScanOptions, newest bool) iter.Seq2[journal.IndexEntry, error] {
	if len(scans) == 1 {
		return journal.IndexAll(ctx, h.journal, scans[0])
	}
	return func(yield func(journal.IndexEntry, error) bool) {
		type source struct {
			next  func() (journal.IndexEntry, error, bool)
			entry journal.IndexEntry
			at    string
		}
		var sources []*source
		advance := func(s *source) (more bool, err error) {
			s.entry, err, more = s.next()
			s.at = schema.LastPart(s.entry.Key)
			return more, err
		}
		for _, scan := range scans {
			next, stop := iter.Pull2(journal.IndexAll(ctx, h.journal, scan))
			defer stop()
			s := &source{next: next}
			more, err := advance(s)
			if err != nil {
				yield(journal.IndexEntry{}, err)
				return
			}
			if more {
				sources = append(sources, s)
			}
		}
		for last := ""; len(sources) > 0; {
			first := 0
			for i, s := range sources {
				if c := strings.Compare(s.at, sources[first].at); newest && c > 0 || !newest && c < 0 {
					first = i
				}
			}
			s := sources[first]
			if s.at != last && !yield(s.entry, nil) {
				return
			}
			last = s.at
			more, err := advance(s)
			if err != nil {
				yield(journal.IndexEntry{}, err)
				return
			}
			if !more {
				sources = append(sources[:first], sources[first+1:]...)
			}
		}
	}
}
