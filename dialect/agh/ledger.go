package agh

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// Bounds of what waits to be written.
const (
	flushEvery  = 500 * time.Millisecond
	flushEdits  = 48 // documents in one batch
	flushNotes  = 256
	mostNotes   = 20_000
	flushWithin = 10 * time.Second
)

// ledger writes what need not be durable at once, in groups: audit records of
// envelopes, and the progress of hosted peers. A crash loses what was not yet written;
// then a peer receives some messages again.
type ledger struct {
	s *Server

	mu      sync.Mutex
	notes   []auditNote
	touched map[*peer]bool
	gone    []string // documents of peers that left
	lost    int64    // records for which there was no room
}

func newLedger(s *Server) *ledger { return &ledger{s: s, touched: map[*peer]bool{}} }

// note queues an audit record.
func (l *ledger) note(n auditNote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.notes) >= mostNotes {
		l.lost++
		l.s.counts.unaudited.Add(1)
		return
	}
	l.notes = append(l.notes, n)
}

// touch queues the progress of a peer.
func (l *ledger) touch(p *peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched[p] = true
}

// forget removes the document of a peer that has left.
func (l *ledger) forget(p *peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.touched, p)
	if p.documented {
		l.gone = append(l.gone, p.document())
	}
}

// run writes until the server is closed, and then what is left.
func (l *ledger) run() {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.flush(l.s.ctx, false)
		case <-l.s.ctx.Done():
			ctx, cancel := context.WithTimeout(context.Background(), flushWithin)
			defer cancel()
			l.flush(ctx, true)
			return
		}
	}
}

// flush writes everything that waits, in batches.
func (l *ledger) flush(ctx context.Context, last bool) {
	for first := true; ctx.Err() == nil; first = false {
		edits, notes := l.take()
		if l.s.outbox != nil && first {
			if edit, ok := l.s.outbox.position(ctx, last); ok {
				edits = append(edits, edit)
			}
		}
		if len(edits) == 0 && len(notes) == 0 {
			return
		}
		if len(edits) == 0 { // a batch has at least one document
			edits = append(edits, hub.DocumentEdit{Kind: documentKind, Name: "audited", Data: stamp(l.s.cfg.Now())})
		}
		if _, err := l.s.hub.EditDocuments(ctx, edits, notes...); err != nil {
			if fault.CodeOf(err) != fault.NotFound {
				l.s.cfg.Log.Warn("audit records of AGH envelopes were not stored", "records", len(notes), "error", err)
			}
			l.s.counts.unaudited.Add(int64(len(notes)))
			return
		}
	}
}

func stamp(now time.Time) []byte {
	text, err := jsontext.AppendQuote(nil, now.UTC().Format(time.RFC3339Nano))
	if err != nil {
		return []byte(`""`) // times are ASCII
	}
	return text
}

// take returns a batch of what waits.
func (l *ledger) take() (edits []hub.DocumentEdit, notes []hub.AuditNote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range slices.Collect(maps.Keys(l.touched)) {
		if len(edits) == flushEdits {
			break
		}
		delete(l.touched, p)
		data, err := json.Marshal(p.queue.mark())
		if err != nil {
			continue // ids are hexadecimal
		}
		p.documented = true
		edits = append(edits, hub.DocumentEdit{Kind: documentKind, Name: p.document(), Data: data})
	}
	for len(l.gone) > 0 && len(edits) < flushEdits {
		edits = append(edits, hub.DocumentEdit{Kind: documentKind, Name: l.gone[0], Remove: true})
		l.gone = l.gone[1:]
	}
	n := min(len(l.notes), flushNotes)
	notes = make([]hub.AuditNote, 0, n+1)
	for i := range l.notes[:n] {
		notes = append(notes, hub.AuditNote{Kind: auditKind, Sorted: l.notes[i].fields()})
	}
	clear(l.notes[:n])
	if l.notes = l.notes[n:]; len(l.notes) == 0 {
		l.notes = nil
	}
	if l.lost > 0 && n > 0 {
		notes = append(notes, hub.AuditNote{Kind: auditKind, Fields: map[string]any{"direction": string(rejected), "reason": "not_audited", "count": l.lost}})
		l.lost = 0
	}
	return edits, notes
}

// tags reports whether ext marks an envelope as part of a workflow, or of a hand-off.
func tags(ext []byte) (workflow, handoff bool) {
	for name := range jsonscan.Members(ext) {
		workflow = workflow || string(name) == wire.ExtWorkflowID
		handoff = handoff || string(name) == wire.ExtHandoffVersion
	}
	return workflow, handoff
}

// clone copies a text out of the envelope that it shares memory with.
func clone(s string) string { return strings.Clone(s) }
