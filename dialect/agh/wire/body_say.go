package wire

import (
	"strings"

	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// SayBody is what a peer says.
type SayBody struct {
	Text      string
	Intent    string // a free label, trimmed
	Artifacts []byte // a JSON array as received, or nil
}

func (m *message) readSay() (*SayBody, *Rejection) {
	b, say := body{path: "body.", in: m}, &m.say
	for name, value := range jsonscan.Members(m.Body) {
		switch string(name) {
		case "text":
			b.text("text", value, &say.Text)
		case "intent":
			b.text("intent", value, &say.Intent)
		case "artifacts":
			b.list("artifacts", value, &say.Artifacts)
		}
	}
	if b.fault == nil && blank(say.Text) {
		b.wrong("text", "is missing or blank")
	}
	say.Intent = strings.TrimSpace(say.Intent)
	return say, b.fault
}

// AppendJSON writes the body.
func (s *SayBody) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	b.Open('{')
	b.Key("text").String(s.Text)
	if s.Intent != "" {
		b.Key("intent").String(s.Intent)
	}
	if s.Artifacts != nil {
		b.Key("artifacts").Value(s.Artifacts)
	}
	b.Close('}')
	return b.Result()
}
