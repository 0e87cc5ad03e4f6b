package hub

import (
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/journal"
)

// fields are what an audit record says besides its time and kind.
type fields map[string]any

// audit counts what this process has written.
type audit struct {
	bytes atomic.Int64
}

// auditRecord makes one line of the audit log: a JSON object with sorted keys.
// It is indexed by an id minted with it, so that all of the audit reads in the
// order it happened, wherever it is stored.
func (h *Hub) auditRecord(kind string, f fields) (journal.Record, error) {
	now := h.now().UTC()
	id, err := h.minter.Mint(now, "")
	if err != nil {
		return journal.Record{}, err
	}
	line := make(map[string]any, len(f)+2)
	for k, v := range f {
		line[k] = v
	}
	line["at"], line["kind"] = envelope.FormatTime(now), kind
	data, err := json.Marshal(line, json.Deterministic(true), json.FormatNilSliceAsNull(false), jsontext.EscapeForHTML(false))
	if err != nil {
		return journal.Record{}, err
	}
	h.audit.bytes.Add(int64(len(data)) + 1)
	return journal.Record{Data: data, Put: []journal.IndexPut{{Key: key(indexAudit, id), Value: data}}}, nil
}
