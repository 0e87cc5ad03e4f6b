package wire

import "github.com/parley-hub/parley/internal/jsonscan"

// readBody is step 5: the body's shape for the kind, and what the envelope and
// its body must agree on. Unknown members are ignored and kept.
func (m *message) readBody(o *Options) *Rejection {
	e := &m.Envelope
	var content any
	var fault *Rejection
	switch e.Kind {
	case Greet:
		content, fault = e.readGreet(o)
	case Whois:
		content, fault = e.readWhois(o)
	case Say:
		content, fault = m.readSay()
	case Capability:
		content, fault = readCapability(e.Body)
	case Receipt:
		content, fault = readReceipt(e.Body)
	case Trace:
		content, fault = readTrace(e.Body)
	}
	if fault != nil {
		return fault
	}
	e.Content = content
	return nil
}

// body reads the members of a JSON object and keeps the first fault.
type body struct {
	path  string   // "body."
	in    *message // whose texts are kept together; nil: each is its own
	fault *Rejection
}

func (b *body) wrong(name, detail string) {
	if b.fault == nil {
		b.fault = malformed(b.path+name, detail)
	}
}

// text takes a string; null is absent.
func (b *body) text(name string, value []byte, into *string) {
	if jsonscan.IsNull(value) {
		return
	}
	read := jsonscan.Text
	if b.in != nil {
		read = b.in.short
	}
	s, ok := read(value)
	if !ok {
		b.wrong(name, "is not a string")
		return
	}
	*into = s
}

// list takes an array of any values; null is absent.
func (b *body) list(name string, value []byte, into *[]byte) {
	switch value[0] {
	case 'n':
	case '[':
		*into = value
	default:
		b.wrong(name, "is not an array")
	}
}

// texts takes an array of strings; null is absent.
func (b *body) texts(name string, value []byte, into *[]string) {
	switch value[0] {
	case 'n':
		return
	case '[':
	default:
		b.wrong(name, "is not an array of strings")
		return
	}
	list := []string{}
	for element := range jsonscan.Elements(value) {
		s, ok := jsonscan.Text(element)
		if !ok {
			b.wrong(name, "is not an array of strings")
			return
		}
		list = append(list, s)
	}
	*into = list
}

// object takes an object; null is absent.
func (b *body) object(name string, value []byte, into *[]byte) {
	switch value[0] {
	case 'n':
	case '{':
		*into = value
	default:
		b.wrong(name, "is not an object")
	}
}
