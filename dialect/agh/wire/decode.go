package wire

import (
	"strings"
	"time"

	"github.com/parley-hub/parley/internal/jsonscan"
)

// Options are a receiver's policies. The zero value is a v0 receiver that
// takes 300 seconds of age and has a clock that stands at 1970.
type Options struct {
	// Now is the receiver's clock in Unix seconds.
	Now int64
	// SkipFreshness leaves ts and expires_at unjudged.
	SkipFreshness bool
	// ReplayAge is how old an envelope may be; 0: DefaultReplayAge.
	ReplayAge time.Duration
	// Strict follows the seed's JSON schema to the letter: null only where it
	// says so, 7.0 is an integer, and any text is a thread_id.
	Strict bool
	// Storable refuses a thread_id that cannot be kept, also where Strict would
	// take it.
	Storable bool
	// Stored reads what was accepted before, under whichever options: null
	// counts as absent, and 7.0 is an integer.
	Stored bool
	// LenientWorkIDs takes the work ids that AGH's own runtime takes.
	LenientWorkIDs bool
	// V1 takes protocol agh-network/v1 too.
	V1 bool
	// Handles takes verified handles as peers: trust is enabled.
	Handles bool
	// PrivilegedNeedsProof rejects a peer card with task.write that comes
	// without a proof.
	PrivilegedNeedsProof bool
	// Secrets, if set, rejects what looks like a secret.
	Secrets *SecretScan
}

// Decode reads one envelope and validates it in the ruling order: syntax and
// types, required members and grammars, freshness, surface, body. The error is
// a *Rejection. The envelope is returned with it as far as it could be read, so
// that a receipt can answer; it is nil if there is not a JSON object. The slices
// of the envelope share memory with data.
func Decode(data []byte, o Options) (*Envelope, error) {
	e, rejection := decode(data, &o)
	if rejection != nil {
		return e, rejection
	}
	return e, nil
}

func decode(data []byte, o *Options) (*Envelope, *Rejection) {
	m, fault := parse(data, o)
	if m == nil {
		return nil, fault
	}
	e := &m.Envelope
	if fault != nil {
		return e, fault
	}
	if fault := m.checkMembers(o); fault != nil {
		return e, fault
	}
	if !o.SkipFreshness {
		if fault := checkFresh(e, o.Now, o.ReplayAge); fault != nil {
			return e, fault
		}
	}
	if fault := m.checkSurface(o); fault != nil {
		return e, fault
	}
	if fault := m.readBody(o); fault != nil {
		return e, fault
	}
	if o.Secrets != nil {
		if fault := o.Secrets.check(e); fault != nil {
			return e, fault
		}
	}
	return e, nil
}

// Members, as bits: which of them an envelope has.
const (
	hasProtocol = 1 << iota
	hasID
	hasWorkspace
	hasKind
	hasChannel
	hasSurface
	hasThread
	hasDirect
	hasFrom
	hasTo
	hasWork
	hasTS
	hasBody

	hasRequired = hasProtocol | hasID | hasWorkspace | hasKind | hasChannel | hasFrom | hasTS | hasBody
)

// message is an envelope being read.
type message struct {
	Envelope
	has     uint32
	fault   *Rejection // the first one of syntax and types
	texts   strings.Builder
	expires int64   // what ExpiresAt points to
	say     SayBody // what Content points to, for the kind that is most frequent
}

// Short texts are cut from one, so that an envelope costs one allocation for all of
// them; a long one gets its own, so that a short one does not keep it alive.
const (
	textsTogether = 384
	textLong      = 128
)

// short reads a text that is probably short; false: it is no string.
func (m *message) short(value []byte) (string, bool) {
	if value[0] != '"' {
		return "", false
	}
	text := jsonscan.Unescaped(value)
	begin := m.texts.Len()
	if len(text) > textLong || begin+len(text) > textsTogether {
		return string(text), true
	}
	if begin == 0 {
		m.texts.Grow(textsTogether)
	}
	m.texts.Write(text)
	return m.texts.String()[begin:], true
}

// parse is step 1: syntax, names and types. It goes on behind a wrong type, so
// that as much as possible is known of what is rejected.
func parse(data []byte, o *Options) (*message, *Rejection) {
	if len(data) > MaxBytes {
		return nil, &Rejection{Reason: Malformed, Detail: "the envelope has more than 1048576 bytes"}
	}
	if err := jsonscan.Check(data, MaxDepth); err != nil {
		return nil, &Rejection{Reason: Malformed, Detail: "the envelope is not valid JSON: " + err.Error()}
	}
	data = jsonscan.Trim(data)
	if data[0] != '{' {
		return nil, &Rejection{Reason: Malformed, Detail: "the envelope is not a JSON object"}
	}
	m := &message{}
	legacy := false
	for name, value := range jsonscan.Members(data) {
		if !m.member(name, value, o) {
			if string(name) == "interaction_id" {
				legacy = true
				continue
			}
			m.wrong(&Rejection{Reason: Malformed, Detail: "the envelope has a member that the protocol does not know; members have exactly the names of the protocol"})
		}
	}
	if legacy {
		return m, &Rejection{
			Reason: LegacyFieldRejected, Member: "interaction_id",
			Detail: "`interaction_id` is not part of the protocol any more; use `work_id`",
		}
	}
	return m, m.fault
}

// wrong keeps the first fault.
func (m *message) wrong(r *Rejection) {
	if m.fault == nil {
		m.fault = r
	}
}

// member takes one member; false: there is none of that name.
func (m *message) member(name, value []byte, o *Options) bool {
	e := &m.Envelope
	switch string(name) {
	case "protocol":
		m.word("protocol", value, &e.Protocol, hasProtocol)
	case "id":
		m.text("id", value, &e.ID, hasID)
	case "workspace_id":
		m.text("workspace_id", value, &e.Workspace, hasWorkspace)
	case "kind":
		m.word("kind", value, (*string)(&e.Kind), hasKind)
	case "channel":
		m.text("channel", value, &e.Channel, hasChannel)
	case "surface":
		m.word("surface", value, (*string)(&e.Surface), hasSurface)
	case "thread_id":
		m.text("thread_id", value, &e.Thread, hasThread)
	case "direct_id":
		m.text("direct_id", value, &e.Direct, hasDirect)
	case "from":
		m.text("from", value, &e.From, hasFrom)
	case "to":
		m.text("to", value, &e.To, hasTo)
	case "work_id":
		m.text("work_id", value, &e.Work, hasWork)
	case "reply_to":
		m.reference("reply_to", value, &e.ReplyTo, o)
	case "trace_id":
		m.reference("trace_id", value, &e.Trace, o)
	case "causation_id":
		m.reference("causation_id", value, &e.Causation, o)
	case "ts":
		if n, ok := m.integer("ts", value, o, true); ok {
			e.TS = n
			m.has |= hasTS
		}
	case "expires_at":
		if n, ok := m.integer("expires_at", value, o, false); ok {
			m.expires = n
			e.ExpiresAt = &m.expires
		}
	case "body":
		m.body(value)
	case "proof":
		m.object("proof", value, &e.Proof, true)
	case "ext":
		m.object("ext", value, &e.Ext, !o.Strict)
	default:
		return false
	}
	return true
}

func (m *message) text(name string, value []byte, into *string, bit uint32) {
	if jsonscan.IsNull(value) {
		return // absent; a required member is then found missing
	}
	s, ok := m.short(value)
	if !ok {
		m.wrong(malformed(name, "is not a string").silent())
		return
	}
	*into = s
	m.has |= bit
}

// word reads a text that is nearly always one of a few.
func (m *message) word(name string, value []byte, into *string, bit uint32) {
	s, ok := common(value)
	if !ok {
		m.text(name, value, into, bit)
		return
	}
	*into = s
	m.has |= bit
}

// common returns the texts that nearly every envelope has, without copying.
func common(value []byte) (string, bool) {
	switch string(value) {
	case `"agh-network/v0"`:
		return Protocol, true
	case `"say"`:
		return string(Say), true
	case `"capability"`:
		return string(Capability), true
	case `"receipt"`:
		return string(Receipt), true
	case `"trace"`:
		return string(Trace), true
	case `"greet"`:
		return string(Greet), true
	case `"whois"`:
		return string(Whois), true
	case `"thread"`:
		return string(Thread), true
	case `"direct"`:
		return string(Direct), true
	}
	return "", false
}

// reference reads an optional id of something else.
func (m *message) reference(name string, value []byte, into *string, o *Options) {
	if jsonscan.IsNull(value) {
		if o.Strict {
			m.wrong(malformed(name, "is null; leave it out").silent())
		}
		return
	}
	s, ok := m.short(value)
	switch {
	case !ok:
		m.wrong(malformed(name, "is not a string").silent())
	case !trimmed(s):
		m.wrong(malformed(name, "is empty or has white space around it; leave it out if there is none").silent())
	default:
		*into = s
	}
}

func (m *message) integer(name string, value []byte, o *Options, must bool) (int64, bool) {
	if jsonscan.IsNull(value) {
		if !must && o.Strict {
			m.wrong(malformed(name, "is null; leave it out").silent())
		}
		return 0, false
	}
	read := plainInteger
	if o.Strict || o.Stored {
		read = integerValue
	}
	isNumber := value[0] == '-' || value[0] >= '0' && value[0] <= '9'
	if isNumber {
		if n, ok := read(value); ok && n >= 0 {
			return n, true
		}
	}
	m.wrong(malformed(name, "is not a whole number of Unix seconds, 0 or more, written without fraction or exponent").silent())
	return 0, false
}

func (m *message) body(value []byte) {
	switch value[0] {
	case '{':
		m.Body = value
		m.has |= hasBody
	case 'n': // missing
	default:
		m.wrong(malformed("body", "is not an object"))
	}
}

func (m *message) object(name string, value []byte, into *[]byte, nullIsAbsent bool) {
	switch {
	case value[0] == '{':
		*into = value
	case jsonscan.IsNull(value) && nullIsAbsent:
	case jsonscan.IsNull(value):
		m.wrong(malformed(name, "is null; leave it out").silent())
	default:
		m.wrong(malformed(name, "is not an object").silent())
	}
}
