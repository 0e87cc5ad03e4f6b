package wire

import (
	"errors"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Frame is one message of the protocol: Hello, Welcome, Refusal, Ping, Pong,
// Request, Post, Response, Notify or Receipt.
type Frame interface{ frame() }

// Hello binds an existing identity to the connection.
type Hello struct {
	Name   string
	Scheme string
	Claim  []byte // a JSON object
	// Since asks for a replay: nil is none, "" everything not acknowledged, an id
	// everything after it.
	Since *string
}

// Welcome answers a hello.
type Welcome struct {
	Endpoint string
	HubTime  string
}

// Refusal answers a hello; its kind on the wire is error. It answers nothing
// else, because clients match it with their oldest hello.
type Refusal struct {
	Code     string
	Message  string
	Envelope string
}

// Ping is answered with a Pong.
type Ping struct{}

// Pong answers a Ping.
type Pong struct{}

// Request asks for an operation other than a post.
type Request struct {
	ID     string
	Op     Op
	Params []byte // a JSON object
}

// Post is the operation post_envelope, or the older vocabulary's send frame,
// which has no id and no answer.
type Post struct {
	ID       string
	Envelope *envelope.Envelope
}

// Response answers a request.
type Response struct {
	ID      string
	OK      bool
	Result  []byte // any JSON; nil is null
	Code    string
	Message string
}

// Notify delivers an envelope, as JSON, to one identity of the connection.
type Notify struct {
	Envelope  []byte
	Recipient string
}

// Receipt reports that a delivery was handled.
type Receipt struct {
	Envelope  string
	Status    string
	Recipient string
	Channel   string
	Reason    string
}

// Statuses of a receipt; any other is ignored.
const (
	Ack  = "ack"
	Nack = "nack"
)

func (*Hello) frame()    {}
func (*Welcome) frame()  {}
func (*Refusal) frame()  {}
func (*Ping) frame()     {}
func (*Pong) frame()     {}
func (*Request) frame()  {}
func (*Response) frame() {}
func (*Notify) frame()   {}
func (*Receipt) frame()  {}
func (*Post) frame()     {}

// Malformed is a frame that cannot be processed. If RequestID is set, the frame was
// meant as a request and is answered; otherwise it is dropped.
type Malformed struct {
	RequestID string
	Err       error
}

func (m *Malformed) Error() string { return "malformed frame: " + m.Err.Error() }

func (m *Malformed) Unwrap() error { return m.Err }

// Decode reads one message. Unknown keys are ignored and missing ones take their
// defaults. The frame shares memory with data, which must not change afterwards.
// The error is always a *Malformed.
func Decode(data []byte) (Frame, error) {
	if err := valid(data); err != nil {
		return nil, &Malformed{RequestID: salvage(data), Err: err}
	}
	kind, err := kindOf(data)
	if err != nil {
		return nil, &Malformed{Err: err}
	}
	f, id, err := decodeKind(kind, data)
	if err != nil {
		return nil, &Malformed{RequestID: id, Err: err}
	}
	return f, nil
}

// KindOf returns the kind that a message names, or "" if it names none.
func KindOf(data []byte) string {
	if valid(data) != nil {
		return ""
	}
	kind, _ := kindOf(data)
	return kind
}

// kindOf reads only as far as the kind, which usually comes first.
func kindOf(data []byte) (kind string, err error) {
	err = members(data, func(name, value []byte) (err error) {
		if string(name) != "kind" {
			return nil
		}
		if kind, err = text("kind", value); err != nil {
			return err
		}
		return errStop
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return kind, err
}

// errStop ends a walk that has found its member.
var errStop = errors.New("stop")

// salvage returns the id of the request that a frame was meant as, if the frame is
// JSON as Python reads it.
func salvage(data []byte) string {
	if len(data) > 1<<20 || !relaxed(data) {
		return ""
	}
	var kind, id string
	err := members(withoutNaN(data), func(name, value []byte) (err error) {
		switch string(name) {
		case "kind":
			kind, err = text("kind", value)
		case "request_id":
			id, err = text("request_id", value)
		}
		return err
	})
	if err != nil || kind != "request" {
		return ""
	}
	return id
}

func decodeKind(kind string, data []byte) (f Frame, requestID string, err error) {
	switch kind {
	case "request":
		return decodeRequest(data)
	case "receipt":
		f, err = decodeReceipt(data)
	case "hello":
		f, err = decodeHello(data)
	case "ping":
		f = &Ping{}
	case "pong":
		f = &Pong{}
	case "send":
		f, err = decodeSend(data)
	case "welcome":
		f, err = decodeWelcome(data)
	case "error":
		f, err = decodeRefusal(data)
	case "response":
		f, err = decodeResponse(data)
	case "notify":
		f, err = decodeNotify(data)
	case "":
		err = missing("kind")
	default:
		err = fault.New(fault.Invalid, "kind %.40q is unknown", kind)
	}
	return f, "", err
}

// missing returns the error for a missing required key; AG2's hub quotes the key in
// the same way.
func missing(key string) error { return fault.New(fault.Invalid, "'%s' is missing", key) }
