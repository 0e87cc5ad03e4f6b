package wire

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// PrivilegedCapability is the one that a card may only claim with a proof.
const PrivilegedCapability = "task.write"

// PeerCard says who a peer is and what it can do.
type PeerCard struct {
	PeerID      string
	DisplayName string // empty: none
	Profiles    []string
	// Capabilities are ids, trimmed, without blank ones; advice, not rights.
	Capabilities []string
	Artifacts    []string
	TrustModes   []string
	Ext          []byte // a JSON object as received, or nil
}

// GreetBody announces a peer.
type GreetBody struct {
	Card    PeerCard
	Summary string
}

// WhoisBody asks for peers, or answers with one.
type WhoisBody struct {
	Response bool
	Query    string
	Card     *PeerCard // of a response
}

func (e *Envelope) readGreet(o *Options) (*GreetBody, *Rejection) {
	b, greet := body{path: "body."}, &GreetBody{}
	var card []byte
	for name, value := range jsonscan.Members(e.Body) {
		switch string(name) {
		case "peer_card":
			b.object("peer_card", value, &card)
		case "summary":
			b.text("summary", value, &greet.Summary)
		}
	}
	if b.fault == nil && card == nil {
		b.wrong("peer_card", "is missing")
	}
	if b.fault != nil {
		return nil, b.fault
	}
	read, fault := e.readCard(card, o)
	if fault != nil {
		return nil, fault
	}
	greet.Card = *read
	return greet, nil
}

func (e *Envelope) readWhois(o *Options) (*WhoisBody, *Rejection) {
	b, whois := body{path: "body."}, &WhoisBody{}
	var card []byte
	var kind string
	for name, value := range jsonscan.Members(e.Body) {
		switch string(name) {
		case "type":
			b.text("type", value, &kind)
		case "query":
			b.text("query", value, &whois.Query)
		case "peer_card":
			b.object("peer_card", value, &card)
		}
	}
	whois.Response = kind == "response"
	switch {
	case b.fault != nil:
	case kind != "request" && kind != "response":
		b.wrong("type", "is neither request nor response")
	case !whois.Response && card != nil:
		b.wrong("peer_card", "is not allowed in a request")
	case whois.Response && card == nil:
		b.wrong("peer_card", "is missing; a response has it")
	case whois.Response && e.ReplyTo == "":
		return nil, malformed("reply_to", "is missing; a whois response names the request")
	}
	if b.fault != nil || !whois.Response {
		return whois, b.fault
	}
	var fault *Rejection
	whois.Card, fault = e.readCard(card, o)
	return whois, fault
}

func (e *Envelope) readCard(raw []byte, o *Options) (*PeerCard, *Rejection) {
	b, card := body{path: "body.peer_card."}, &PeerCard{}
	for name, value := range jsonscan.Members(raw) {
		switch string(name) {
		case "peer_id":
			b.text("peer_id", value, &card.PeerID)
		case "display_name":
			b.text("display_name", value, &card.DisplayName)
		case "profiles_supported":
			b.texts("profiles_supported", value, &card.Profiles)
		case "capabilities":
			b.texts("capabilities", value, &card.Capabilities)
		case "artifacts_supported":
			b.texts("artifacts_supported", value, &card.Artifacts)
		case "trust_modes_supported":
			b.texts("trust_modes_supported", value, &card.TrustModes)
		case "ext":
			b.object("ext", value, &card.Ext)
		}
	}
	switch {
	case b.fault != nil:
	case card.PeerID != e.From:
		b.wrong("peer_id", "is not the envelope's `from`")
	case card.Profiles == nil:
		b.wrong("profiles_supported", "is missing or null; it may be empty")
	case card.Capabilities == nil:
		b.wrong("capabilities", "is missing or null; it may be empty")
	case card.Artifacts == nil:
		b.wrong("artifacts_supported", "is missing or null; it may be empty")
	case card.TrustModes == nil:
		b.wrong("trust_modes_supported", "is missing or null; it may be empty")
	}
	if b.fault != nil {
		return nil, b.fault
	}
	card.DisplayName = strings.TrimSpace(card.DisplayName)
	card.Capabilities = tidy(card.Capabilities)
	if card.Capabilities == nil {
		card.Capabilities = []string{}
	}
	if o.PrivilegedNeedsProof && slices.Contains(card.Capabilities, PrivilegedCapability) && !e.proved() {
		return nil, &Rejection{
			Reason: VerificationFailed, Member: "body.peer_card.capabilities",
			Detail: "`body.peer_card.capabilities` has " + PrivilegedCapability + ", which needs a proof",
		}
	}
	return card, nil
}

// proved reports whether there is a proof with anything in it.
func (e *Envelope) proved() bool {
	for range jsonscan.Members(e.Proof) {
		return true
	}
	return false
}

func (c *PeerCard) write(b *jsonbuf.Buffer) {
	b.Open('{')
	b.Key("peer_id").String(c.PeerID)
	if c.DisplayName != "" {
		b.Key("display_name").String(c.DisplayName)
	}
	b.Key("profiles_supported").Strings(c.Profiles)
	b.Key("capabilities").Strings(c.Capabilities)
	b.Key("artifacts_supported").Strings(c.Artifacts)
	b.Key("trust_modes_supported").Strings(c.TrustModes)
	if c.Ext != nil {
		b.Key("ext").Object(c.Ext)
	}
	b.Close('}')
}

// AppendJSON writes the card.
func (c *PeerCard) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	c.write(b)
	return b.Result()
}

// AppendJSON writes the body.
func (g *GreetBody) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	b.Open('{')
	g.Card.write(b.Key("peer_card"))
	if g.Summary != "" {
		b.Key("summary").String(g.Summary)
	}
	b.Close('}')
	return b.Result()
}

// AppendJSON writes the body.
func (w *WhoisBody) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	b.Open('{')
	if w.Response {
		b.Key("type").String("response")
	} else {
		b.Key("type").String("request")
	}
	if w.Query != "" {
		b.Key("query").String(w.Query)
	}
	if w.Response && w.Card != nil {
		w.Card.write(b.Key("peer_card"))
	}
	b.Close('}')
	return b.Result()
}

// Matches reports whether a whois query finds the card: a blank one finds
// every card, any other equals the peer id, the name or an entry of a list.
func (c *PeerCard) Matches(query string) bool {
	query = strings.TrimSpace(query)
	if query == "" || query == c.PeerID || query == c.DisplayName {
		return true
	}
	for _, list := range [...][]string{c.Capabilities, c.Profiles, c.Artifacts, c.TrustModes} {
		if slices.Contains(list, query) {
			return true
		}
	}
	return false
}

// maxSummary is how long a greeting's summary is, in characters.
const maxSummary = 160

// Summarize is the summary of a greeting: the text given, or what the card
// offers first, labelled by its brief catalog where there is one.
func (c *PeerCard) Summarize(given string) string {
	name := c.DisplayName
	name = cmp.Or(name, c.PeerID)
	text := strings.TrimSpace(given)
	if text == "" {
		text = name + " is present"
		if labels := c.labels(); len(labels) > 0 {
			text = name + " ready for " + labels[0]
			if more := len(labels) - 1; more > 0 {
				text += " +" + strconv.Itoa(more) + " more"
			}
		}
	}
	if utf8.RuneCountInString(text) > maxSummary {
		text = string([]rune(text)[:maxSummary])
	}
	return text
}
