package wire

import (
	"time"

	"github.com/parley-hub/parley/fault"
)

// MaxFrame is the largest message that AG2's client accepts. It closes the
// connection after a larger one.
const MaxFrame = 1 << 20

// AppendHello writes a hello.
func AppendHello(buf []byte, h *Hello) []byte {
	buf = append(buf, `{"kind":"hello","name":`...)
	buf = appendText(buf, h.Name)
	buf = append(buf, `,"auth_scheme":`...)
	buf = appendText(buf, h.Scheme)
	buf = append(buf, `,"auth_claim":`...)
	buf = appendObject(buf, h.Claim)
	buf = append(buf, `,"since_envelope_id":`...)
	if h.Since == nil {
		buf = append(buf, "null"...)
	} else {
		buf = appendText(buf, *h.Since)
	}
	return append(buf, '}')
}

// AppendWelcome writes a welcome.
func AppendWelcome(buf []byte, endpoint string, now time.Time) []byte {
	buf = append(buf, `{"kind":"welcome","endpoint_id":`...)
	buf = appendText(buf, endpoint)
	buf = append(buf, `,"hub_time":`...)
	buf = appendTime(buf, now)
	return append(buf, '}')
}

// AppendRefusal writes the error frame that answers a hello.
func AppendRefusal(buf []byte, err error) []byte {
	buf = append(buf, `{"kind":"error","code":`...)
	buf = appendText(buf, CodeOf(err))
	buf = append(buf, `,"message":`...)
	buf = appendText(buf, err.Error())
	return append(buf, `,"envelope_id":null}`...)
}

// PongFrame is a whole message.
const PongFrame = `{"kind":"pong"}`

// AppendRequest writes a request.
func AppendRequest(buf []byte, r *Request) []byte {
	buf = append(buf, `{"kind":"request","request_id":`...)
	buf = appendText(buf, r.ID)
	buf = append(buf, `,"op":`...)
	buf = appendText(buf, string(r.Op))
	buf = append(buf, `,"params":`...)
	buf = appendObject(buf, r.Params)
	return append(buf, '}')
}

// AppendResult writes the response to a request that succeeded; no result is null. A
// result that is too large for AG2's client becomes a failure that says so.
func AppendResult(buf []byte, requestID string, result []byte) []byte {
	start := len(buf)
	buf = append(buf, `{"kind":"response","request_id":`...)
	buf = appendText(buf, requestID)
	buf = append(buf, `,"ok":true,"result":`...)
	if len(result) == 0 {
		buf = append(buf, "null"...)
	} else {
		buf = append(buf, result...)
	}
	buf = append(buf, `,"error_code":"","error_message":""}`...)
	if size := len(buf) - start; size > MaxFrame {
		return AppendFailure(buf[:start], requestID, fault.New(fault.TooLarge,
			"the result has %d bytes; a client takes frames of at most %d, so ask for less at once", size, MaxFrame))
	}
	return buf
}

// AppendText writes a response whose result is a string.
func AppendText(buf []byte, requestID, result string) []byte {
	buf = append(buf, `{"kind":"response","request_id":`...)
	buf = appendText(buf, requestID)
	buf = append(buf, `,"ok":true,"result":`...)
	buf = appendText(buf, result)
	return append(buf, `,"error_code":"","error_message":""}`...)
}

// AppendFailure writes the response to a request that was refused.
func AppendFailure(buf []byte, requestID string, err error) []byte {
	buf = append(buf, `{"kind":"response","request_id":`...)
	buf = appendText(buf, requestID)
	buf = append(buf, `,"ok":false,"result":null,"error_code":`...)
	buf = appendText(buf, CodeOf(err))
	buf = append(buf, `,"error_message":`...)
	buf = appendText(buf, err.Error())
	return append(buf, '}')
}

// A notify is made of parts, so that an envelope is encoded once for all its
// readers: NotifyHead, the envelope, then AppendNotifyTail for each.

// NotifyHead begins every notify.
const NotifyHead = `{"kind":"notify","envelope":`

// AppendNotifyTail ends a notify for one recipient.
func AppendNotifyTail(buf []byte, recipient string) []byte {
	buf = append(buf, `,"recipient_id":`...)
	buf = appendText(buf, recipient)
	return append(buf, '}')
}

// AppendReceipt writes a receipt.
func AppendReceipt(buf []byte, r *Receipt) []byte {
	buf = append(buf, `{"kind":"receipt","envelope_id":`...)
	buf = appendText(buf, r.Envelope)
	buf = append(buf, `,"status":`...)
	buf = appendText(buf, r.Status)
	buf = append(buf, `,"recipient_id":`...)
	buf = appendText(buf, r.Recipient)
	buf = append(buf, `,"channel_id":`...)
	buf = appendText(buf, r.Channel)
	buf = append(buf, `,"reason":`...)
	buf = appendText(buf, r.Reason)
	return append(buf, '}')
}
