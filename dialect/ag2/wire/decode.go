package wire

import (
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// Each function reads the members of one kind of frame. A required key counts
// as missing when its value is null.

// decodeRequest reads a request. It returns the id as soon as it is known, even
// with an error.
func decodeRequest(data []byte) (f Frame, id string, err error) {
	var op string
	var asked bool // an operation was named, if only by ""
	var params []byte
	var posted *envelope.Envelope
	var bad error // errors other than that of the id
	_, err = walk(data, jsonscan.SkipSpace(data, 0), func(name []byte, at int) (end int, err error) {
		// A post is read in place; other parameters are read once the
		// operation is known.
		if string(name) == "params" && op == string(PostEnvelope) && data[at] == '{' {
			posted, end, bad = decodePost(data, at)
			return end, nil
		}
		end = jsonscan.SkipValue(data, at)
		value := data[at:end]
		var wrong error
		switch string(name) {
		case "request_id":
			id, err = text("request_id", value)
		case "op":
			asked = !isNull(value)
			op, wrong = text("op", value)
		case "params":
			params, wrong = object("params", value)
		}
		if bad == nil {
			bad = wrong
		}
		return end, err
	})
	switch {
	case err != nil:
		return nil, "", err
	case id == "":
		return nil, "", missing("request_id")
	case bad != nil:
		return nil, id, bad
	case !asked:
		return nil, id, missing("op")
	case op != string(PostEnvelope):
		return &Request{ID: id, Op: Op(op), Params: params}, id, nil
	}
	if posted == nil {
		if params == nil {
			return nil, id, missing("envelope")
		}
		if posted, _, err = decodePost(params, 0); err != nil {
			return nil, id, err
		}
	}
	return &Post{ID: id, Envelope: posted}, id, nil
}

// decodePost reads the parameters of a post, which begin at i, and returns the
// index after them.
func decodePost(data []byte, i int) (e *envelope.Envelope, end int, err error) {
	var bad error
	end, err = walk(data, i, func(name []byte, at int) (int, error) {
		if string(name) != "envelope" {
			return jsonscan.SkipValue(data, at), nil
		}
		if data[at] != '{' {
			end := jsonscan.SkipValue(data, at)
			_, bad = object("envelope", data[at:end])
			return end, nil
		}
		var end int
		if e, end, bad = decodeEnvelopeAt(data, at); bad != nil {
			end = jsonscan.SkipValue(data, at)
		}
		return end, nil
	})
	switch {
	case err != nil:
		return nil, end, err
	case bad != nil:
		return nil, end, bad
	case e == nil:
		return nil, end, missing("envelope")
	}
	return e, end, nil
}

func decodeReceipt(data []byte) (*Receipt, error) {
	r := &Receipt{}
	err := members(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "envelope_id":
			r.Envelope, err = text("envelope_id", value)
		case "status":
			r.Status, err = text("status", value)
		case "recipient_id":
			r.Recipient, err = text("recipient_id", value)
		case "channel_id":
			r.Channel, err = text("channel_id", value)
		case "reason":
			r.Reason, err = text("reason", value)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case r.Envelope == "":
		return nil, missing("envelope_id")
	case r.Status == "":
		return nil, missing("status")
	}
	return r, nil
}

func decodeHello(data []byte) (*Hello, error) {
	h := &Hello{Scheme: "none"}
	named := false
	err := members(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "name":
			named = !isNull(value)
			h.Name, err = text("name", value)
		case "auth_scheme":
			if !isNull(value) {
				h.Scheme, err = text("auth_scheme", value)
			}
		case "auth_claim":
			h.Claim, err = object("auth_claim", value)
		case "since_envelope_id":
			if !isNull(value) {
				var since string
				since, err = text("since_envelope_id", value)
				h.Since = &since
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !named {
		return nil, missing("name")
	}
	return h, nil
}

// decodeSend reads a post in the older vocabulary. Its envelope is where the
// parameters have it today.
func decodeSend(data []byte) (*Post, error) {
	e, _, err := decodePost(data, jsonscan.SkipSpace(data, 0))
	if err != nil {
		return nil, err
	}
	return &Post{Envelope: e}, nil
}

func decodeWelcome(data []byte) (*Welcome, error) {
	w := &Welcome{}
	err := members(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "endpoint_id":
			w.Endpoint, err = text("endpoint_id", value)
		case "hub_time":
			w.HubTime, err = text("hub_time", value)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if w.Endpoint == "" {
		return nil, missing("endpoint_id")
	}
	return w, nil
}

func decodeRefusal(data []byte) (*Refusal, error) {
	r := &Refusal{}
	err := members(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "code":
			r.Code, err = text("code", value)
		case "message":
			r.Message, err = text("message", value)
		case "envelope_id":
			r.Envelope, err = text("envelope_id", value)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.Code == "" {
		return nil, missing("code")
	}
	return r, nil
}

func decodeResponse(data []byte) (*Response, error) {
	r := &Response{}
	told := false
	err := members(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "request_id":
			r.ID, err = text("request_id", value)
		case "ok":
			if value[0] != 't' && value[0] != 'f' {
				return wanted("ok", "true or false", value)
			}
			r.OK, told = value[0] == 't', true
		case "result":
			if !isNull(value) {
				r.Result = value
			}
		case "error_code":
			r.Code, err = text("error_code", value)
		case "error_message":
			r.Message, err = text("error_message", value)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case r.ID == "":
		return nil, missing("request_id")
	case !told:
		return nil, missing("ok")
	}
	return r, nil
}

func decodeNotify(data []byte) (*Notify, error) {
	n := &Notify{}
	err := members(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "envelope":
			n.Envelope, err = object("envelope", value)
		case "recipient_id":
			n.Recipient, err = text("recipient_id", value)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if n.Envelope == nil {
		return nil, missing("envelope")
	}
	return n, nil
}
