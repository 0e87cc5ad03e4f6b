package wire

import (
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// Status is what a receipt says of the envelope it acknowledges.
type Status string

// The statuses of receipts.
const (
	StatusAccepted    Status = "accepted"
	StatusRejected    Status = "rejected"
	StatusDuplicate   Status = "duplicate"
	StatusExpired     Status = "expired"
	StatusUnsupported Status = "unsupported"
	StatusCanceled    Status = "canceled"
)

func (s Status) known() bool {
	switch s {
	case StatusAccepted, StatusRejected, StatusDuplicate, StatusExpired, StatusUnsupported, StatusCanceled:
		return true
	}
	return false
}

// ReceiptBody acknowledges one envelope.
type ReceiptBody struct {
	ForID  string
	Status Status
	Reason Reason // empty: none
	Detail string
}

func readReceipt(raw []byte) (*ReceiptBody, *Rejection) {
	b, receipt := body{path: "body."}, &ReceiptBody{}
	reasoned := false
	for name, value := range jsonscan.Members(raw) {
		switch string(name) {
		case "for_id":
			b.text("for_id", value, &receipt.ForID)
		case "status":
			b.text("status", value, (*string)(&receipt.Status))
		case "reason_code":
			b.text("reason_code", value, (*string)(&receipt.Reason))
			reasoned = !jsonscan.IsNull(value)
		case "detail":
			b.text("detail", value, &receipt.Detail)
		}
	}
	switch {
	case b.fault != nil:
	case blank(receipt.ForID):
		b.wrong("for_id", "is missing or blank")
	case !receipt.Status.known():
		b.wrong("status", "is none of accepted, rejected, duplicate, expired, unsupported and canceled")
	case reasoned && !receipt.Reason.Known():
		b.wrong("reason_code", "is not a reason code of the protocol")
	case reasoned && receipt.Status == StatusAccepted:
		b.wrong("reason_code", "is not allowed with the status accepted")
	case !reasoned && receipt.Status != StatusAccepted && receipt.Status != StatusCanceled:
		b.wrong("reason_code", "is missing; only accepted and canceled go without")
	}
	return receipt, b.fault
}

// AppendJSON writes the body.
func (r *ReceiptBody) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	b.Open('{')
	b.Key("for_id").String(r.ForID)
	b.Key("status").String(string(r.Status))
	if r.Reason != "" {
		b.Key("reason_code").String(string(r.Reason))
	}
	if r.Detail != "" {
		b.Key("detail").String(r.Detail)
	}
	b.Close('}')
	return b.Result()
}
