package wire

import (
	"strconv"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// Members of ext that an envelope has which was said in another dialect. They are
// ours, and other runtimes keep what they do not know.
const (
	ExtHops    = "parley.hops"    // how often it crossed between dialects
	ExtOrigin  = "parley.origin"  // where it was said first: {"dialect","id"}
	ExtSpeaker = "parley.speaker" // who says it: {"id","name"}
	ExtChannel = "parley.channel" // in which channel: {"id","type"}
)

// Crossing is how an envelope came from another dialect.
type Crossing struct {
	Origin      envelope.Origin
	SpeakerID   string
	Speaker     string // its name
	ChannelID   string
	ChannelType string
}

// Ext is the crossing as an envelope's ext.
func (c *Crossing) Ext() ([]byte, error) {
	b := &jsonbuf.Buffer{}
	b.Open('{').Key(ExtHops).Int(c.Origin.Hops)
	if c.Origin.ID != "" {
		b.Key(ExtOrigin).Open('{').Key("dialect").String(c.Origin.Dialect).Key("id").String(c.Origin.ID).Close('}')
	}
	if c.SpeakerID != "" {
		b.Key(ExtSpeaker).Open('{').Key("id").String(c.SpeakerID).Key("name").String(c.Speaker).Close('}')
	}
	if c.ChannelID != "" {
		b.Key(ExtChannel).Open('{').Key("id").String(c.ChannelID).Key("type").String(c.ChannelType).Close('}')
	}
	return b.Close('}').Result()
}

// maxHops is where counting ends; what is refused is far below it.
const maxHops = 1 << 20

// Hops reads how often what has this ext crossed between dialects; what is no
// count is 0.
func Hops(ext []byte) int {
	if len(ext) == 0 {
		return 0
	}
	n, err := strconv.Atoi(string(jsonscan.Member(ext, ExtHops)))
	if err != nil || n < 0 {
		return 0
	}
	return min(n, maxHops)
}

// FirstOrigin is where what has this ext was said first, or, if it does not say so,
// otherwise; with its hops.
func FirstOrigin(ext []byte, otherwise envelope.Origin) envelope.Origin {
	otherwise.Hops = Hops(ext)
	if len(ext) == 0 {
		return otherwise
	}
	first := jsonscan.Member(ext, ExtOrigin)
	if len(first) == 0 || first[0] != '{' {
		return otherwise
	}
	dialect, _ := jsonscan.Text(jsonscan.Member(first, "dialect"))
	id, _ := jsonscan.Text(jsonscan.Member(first, "id"))
	if dialect == "" || id == "" || dialect == envelope.OriginHub || len(dialect) > envelope.MaxField || len(id) > envelope.MaxField {
		return otherwise
	}
	return envelope.Origin{Dialect: dialect, ID: id, Hops: otherwise.Hops}
}

// WithHops is an ext with another count.
func WithHops(ext []byte, hops int) ([]byte, error) {
	b := &jsonbuf.Buffer{}
	b.Open('{')
	for name, value := range jsonscan.Members(ext) {
		if string(name) == ExtHops {
			value = []byte(strconv.Itoa(hops))
		}
		b.Key(string(name)).Checked(value)
	}
	return b.Close('}').Result()
}
