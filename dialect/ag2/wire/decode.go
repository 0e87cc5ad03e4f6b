package wire

// Each function reads the members of one kind of frame. A required key counts
// as missing when its value is null.

func decodeRequest(data []byte) (*Request, error) {
	r := &Request{}
	op := ""
	var bad error
	err := members(data, func(name, value []byte) (err error) {
		switch string(name) {
		case "request_id":
			r.ID, err = text("request_id", value)
		case "op":
			op, bad = text("op", value)
		case "params":
			var wrong error
			if r.Params, wrong = object("params", value); wrong != nil {
				bad = wrong
			}
		}
		return err
	})
	r.Op = Op(op)
	switch {
	case err != nil:
		return r, err
	case r.ID == "":
		return r, missing("request_id")
	case bad != nil:
		return r, bad
	case op == "":
		return r, missing("op")
	}
	return r, nil
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

func decodeSend(data []byte) (*Send, error) {
	s := &Send{}
	err := members(data, func(name, value []byte) (err error) {
		if string(name) == "envelope" {
			s.Envelope, err = object("envelope", value)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.Envelope == nil {
		return nil, missing("envelope")
	}
	return s, nil
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
