package schema

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Index keys of requests. The channel's side log puts all entries of a request; the
// value of each is a RequestRow.
const (
	IndexRequest        = "request/"         // + "asked" / state or "all" / request; "due" / state or "all" / time / request
	IndexRequestAsker   = "request-asker/"   // + asker / request: while it is open
	IndexRequestSimilar = "request-similar/" // + digest of what is similar / request: once it is decided
)

// AnyState is the state under which every request is listed.
const AnyState = "all"

// Orders of requests.
const (
	RequestsAsked = "asked"
	RequestsDue   = "due"
)

// DueRequest is the deadline kind of requests.
const DueRequest = "request"

// RequestRow is the index entry of a request: the positions of its records, and the
// fields by which lists are filtered.
type RequestRow struct {
	Channel string `json:"channel"`
	Kind    string `json:"kind"`
	For     string `json:"for,omitzero"`
	AskedBy string `json:"asked_by"`
	State   string `json:"state"`
	Due     int64  `json:"due,omitzero"` // in nanoseconds
	// Asked and Ended are sequences of the side log.
	Asked uint64 `json:"asked"`
	Ended uint64 `json:"ended,omitzero"`
	// These are set only in entries under IndexRequestSimilar.
	Approved bool  `json:"approved,omitzero"`
	At       int64 `json:"at,omitzero"` // in nanoseconds
}

// Encode writes the row.
func (r *RequestRow) Encode() []byte {
	data, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("schema: request row: " + err.Error()) // plain fields always encode
	}
	return data
}

// DecodeRequestRow reads what Encode writes.
func DecodeRequestRow(data []byte) (r RequestRow, err error) {
	err = json.Unmarshal(data, &r, jsontext.AllowInvalidUTF8(true))
	return r, err
}

// RequestPrefix returns the prefix of the keys of a state's requests in an order.
func RequestPrefix(order, state string) []byte { return Key(IndexRequest, order, state, "") }

// RequestKeys returns the keys that list a request under a state.
func RequestKeys(state string, due time.Time, id string) [][]byte {
	return [][]byte{RequestKey(RequestsAsked, state, due, id), RequestKey(RequestsDue, state, due, id)}
}

// RequestKey returns the key of a request in an order. A request without a due time
// comes last.
func RequestKey(order, state string, due time.Time, id string) []byte {
	if order == RequestsAsked {
		return Key(IndexRequest, order, state, id)
	}
	at := uint64(1<<64 - 1)
	if !due.IsZero() {
		at = uint64(max(due.UnixNano(), 0))
	}
	return Key(IndexRequest, order, state, fmt.Sprintf("%016x", at), id)
}

// RequestKeyClaim returns the claim of the idempotency key of a request.
func RequestKeyClaim(channelID, asker, key string) string {
	return "request-key/" + Digest(channelID, asker, key)
}
