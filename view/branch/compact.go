package branch

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// compact removes messages permanently and puts the replacements where the
// first of them was. A compaction that removes nothing durable changes
// nothing.
func (h *History) compact(e Event) {
	var p struct {
		ID           string        `json:"compactionId"`
		Removed      []string      `json:"durableCompactedMessageIds"`
		Older        []string      `json:"durableRemovedMessageIds"`
		Replacements []ChatMessage `json:"replacementMessages"`
		At           time.Time     `json:"compactedAt"`
	}
	if !read(e.Data, &p) {
		return
	}
	if p.Removed == nil {
		p.Removed = p.Older
	}
	removed := map[string]bool{}
	for _, id := range p.Removed {
		if strings.TrimSpace(id) != "" {
			removed[id] = true
		}
	}
	if len(removed) == 0 {
		return
	}
	at := slices.IndexFunc(h.order, func(m *entry) bool { return removed[m.id] })
	if at < 0 {
		at = len(h.order)
	}
	kept := make([]*entry, 0, len(h.order))
	kept = append(kept, h.order[:at]...)
	for i := range p.Replacements {
		kept = append(kept, replacement(&p.Replacements[i], p.ID, i))
	}
	for _, m := range h.order[at:] {
		if !removed[m.id] {
			kept = append(kept, m)
		}
	}
	h.order, h.byID = kept, make(map[string]*entry, len(kept))
	for _, m := range kept {
		h.byID[m.id] = m
	}
	h.Compacted = p.At
}

// replacement returns a message that a compaction adds. Without an id it gets
// one that every reader of the log computes alike.
func replacement(m *ChatMessage, compaction string, index int) *entry {
	out := &entry{id: m.MessageID, role: m.Role, author: m.AuthorName, created: m.CreatedAt, properties: m.Properties}
	if out.id == "" {
		out.id = "compaction-" + compaction + "-" + strconv.Itoa(index)
	}
	for _, c := range m.Contents {
		out.parts = append(out.parts, &part{content: c})
	}
	return out
}
