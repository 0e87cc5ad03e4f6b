package value

import "github.com/go-json-experiment/json/jsontext"

// emptyList is shared: every empty array is the same value.
var emptyList any = []any{}

// Parse turns one valid JSON text, such as jsontext's ReadValue returns, into
// a value. The text is copied once, and strings without escapes, keys and
// numbers are parts of that copy.
func Parse(valid jsontext.Value) any {
	p := parser{text: string(valid)}
	return p.value()
}

// parser walks text that is known to be valid, so it checks nothing. Members
// and elements are gathered on stacks and copied out at their exact size.
type parser struct {
	text    string
	at      int
	values  []any
	members []Member
}

func (p *parser) value() any {
	p.space()
	switch p.text[p.at] {
	case '{':
		return p.object()
	case '[':
		return p.list()
	case '"':
		return p.str()
	case 't':
		p.at += len("true")
		return true
	case 'f':
		p.at += len("false")
		return false
	case 'n':
		p.at += len("null")
		return nil
	default:
		return p.number()
	}
}

func (p *parser) object() any {
	base := len(p.members)
	p.at++
	for p.space(); p.text[p.at] != '}'; p.space() {
		if p.text[p.at] == ',' {
			p.at++
			p.space()
		}
		key := p.str()
		p.space()
		p.at++ // the colon
		p.members = append(p.members, Member{Key: key, Value: p.value()})
	}
	p.at++
	m := &Map{}
	if len(p.members) > base {
		m.members = append(make([]Member, 0, len(p.members)-base), p.members[base:]...)
		p.members = p.members[:base]
	}
	return m
}

func (p *parser) list() any {
	base := len(p.values)
	p.at++
	for p.space(); p.text[p.at] != ']'; p.space() {
		if p.text[p.at] == ',' {
			p.at++
		}
		p.values = append(p.values, p.value())
	}
	p.at++
	if len(p.values) == base {
		return emptyList
	}
	list := append(make([]any, 0, len(p.values)-base), p.values[base:]...)
	p.values = p.values[:base]
	return list
}

func (p *parser) str() string {
	start := p.at + 1
	escaped := false
	for p.at = start; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			escaped = true
			p.at++
		}
	}
	p.at++
	if !escaped {
		return p.text[start : p.at-1]
	}
	unquoted, _ := jsontext.AppendUnquote(nil, p.text[start-1:p.at])
	return string(unquoted)
}

func (p *parser) number() any {
	start := p.at
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ',', ']', '}', ' ', '\t', '\n', '\r':
			return Number(p.text[start:p.at])
		}
		p.at++
	}
	return Number(p.text[start:])
}

func (p *parser) space() {
	for {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}
