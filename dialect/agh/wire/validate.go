package wire

import (
	"strconv"

	"github.com/parley-hub/parley/envelope"
)

// checkMembers is step 2: required members, then protocol, workspace, kind,
// channel and peers, in that order.
func (m *message) checkMembers(o *Options) *Rejection {
	if fault := m.checkRequired(); fault != nil {
		return fault
	}
	switch {
	case m.Protocol != Protocol && (!o.V1 || m.Protocol != ProtocolV1):
		return malformed("protocol", "is not "+Protocol)
	case !trimmed(m.ID):
		return malformed("id", "is empty or has white space around it").silent()
	case !ValidWorkspace(m.Workspace):
		return malformed("workspace_id", "is not one token of a subject: it is empty, padded, or has a dot, a space, `*`, `>` or a control character")
	case !m.Kind.Known():
		return unsupportedKind("`kind` is none of greet, whois, say, capability, receipt and trace")
	case !ValidChannel(m.Channel):
		return malformed("channel", "does not match ^[a-z0-9][a-z0-9_-]{0,63}$")
	case !validSender(m.From, o):
		return malformed("from", "does not match ^[a-z0-9][a-z0-9._-]{0,127}$").silent()
	case m.has&hasTo != 0 && !validSender(m.To, o):
		return malformed("to", "does not match ^[a-z0-9][a-z0-9._-]{0,127}$; leave it out in a broadcast").silent()
	case (!o.Strict || o.Storable) && len(m.From)+len("/")+len(m.ID) > envelope.MaxField: // as RecordKey
		return malformed("id", "is too long to be kept: with `from` it has over "+strconv.Itoa(envelope.MaxField-1)+" bytes")
	}
	return nil
}

// checkRequired finds the first required member that is missing.
func (m *message) checkRequired() *Rejection {
	if m.has&hasRequired == hasRequired {
		return nil
	}
	for _, member := range [...]struct {
		name string
		bit  uint32
	}{
		{"protocol", hasProtocol},
		{"id", hasID},
		{"workspace_id", hasWorkspace},
		{"kind", hasKind},
		{"channel", hasChannel},
		{"from", hasFrom},
		{"ts", hasTS},
		{"body", hasBody},
	} {
		switch {
		case m.has&member.bit != 0:
		case member.bit == hasKind:
			return unsupportedKind("`kind` is missing; it is one of greet, whois, say, capability, receipt and trace")
		default:
			return malformed(member.name, "is missing or null")
		}
	}
	return nil
}

func unsupportedKind(detail string) *Rejection {
	return &Rejection{Reason: UnsupportedKind, Member: "kind", Detail: detail}
}

func validSender(peer string, o *Options) bool {
	if o.Handles {
		return ValidPeerOrHandle(peer)
	}
	return ValidPeer(peer)
}

// checkSurface is step 4: surface, container and work against the kind.
func (m *message) checkSurface(o *Options) *Rejection {
	if m.Kind.Discovery() {
		return m.checkDiscovery()
	}
	has := func(bit uint32) bool { return m.has&bit != 0 }
	switch {
	case !has(hasSurface):
		return invalidSurface("surface", "is missing; a conversation kind has the surface thread or direct")
	case m.Surface != Thread && m.Surface != Direct:
		return invalidSurface("surface", "is neither thread nor direct")
	case has(hasThread) && blank(m.Thread):
		return malformed("thread_id", blankID)
	case has(hasDirect) && blank(m.Direct):
		return malformed("direct_id", blankID)
	case has(hasThread) && has(hasDirect):
		return invalidSurface("direct_id", "is given together with `thread_id`; give one of them")
	case m.Surface == Thread && has(hasDirect):
		return invalidSurface("direct_id", "does not go with the surface thread; give `thread_id`")
	case m.Surface == Thread && !has(hasThread):
		return invalidSurface("thread_id", "is missing; the surface thread needs it")
	case m.Surface == Direct && has(hasThread):
		return invalidSurface("thread_id", "does not go with the surface direct; give `direct_id`")
	case m.Surface == Direct && !has(hasDirect):
		return invalidSurface("direct_id", "is missing; the surface direct needs it")
	case m.Surface == Thread && !validThread(m.Thread, o):
		return malformed("thread_id", "is empty, padded, over 128 bytes, or has a slash or a control character")
	case m.Surface == Direct && !ValidDirect(m.Direct):
		return malformed("direct_id", "does not match ^direct_[a-f0-9]{32}$")
	}
	return m.checkWork(o)
}

// blankID is what is wrong with an optional id that is there and says nothing.
const blankID = "is blank; leave it out if there is none"

func validThread(id string, o *Options) bool {
	if o.Strict && !o.Storable {
		return trimmed(id)
	}
	return StorableThread(id)
}

// checkWork judges work_id on a conversation kind.
func (m *message) checkWork(o *Options) *Rejection {
	if m.has&hasWork == 0 {
		if m.Kind == Receipt || m.Kind == Trace {
			return malformed("work_id", "is missing; receipts and traces are about work")
		}
		return nil
	}
	if ValidWork(m.Work) || o.LenientWorkIDs && LenientWork(m.Work) {
		return nil
	}
	if o.LenientWorkIDs {
		return malformed("work_id", "is empty, padded, over 128 bytes, or has a slash, a backslash or a control character")
	}
	return malformed("work_id", "does not match ^work_[a-zA-Z0-9_-]{1,64}$")
}

// checkDiscovery refuses what greet and whois must not carry.
func (m *message) checkDiscovery() *Rejection {
	for _, member := range [...]struct {
		name, value string
		bit         uint32
	}{
		{"surface", string(m.Surface), hasSurface},
		{"thread_id", m.Thread, hasThread},
		{"direct_id", m.Direct, hasDirect},
	} {
		switch {
		case m.has&member.bit == 0:
		case member.bit != hasSurface && blank(member.value):
			return malformed(member.name, blankID)
		default:
			return invalidSurface(member.name, "is not allowed on greet and whois, which belong to no conversation")
		}
	}
	if m.has&hasWork != 0 {
		return malformed("work_id", "is not allowed on greet and whois, which are about no work")
	}
	return nil
}

func invalidSurface(member, detail string) *Rejection {
	return &Rejection{Reason: InvalidSurface, Member: member, Detail: "`" + member + "` " + detail, Answerable: true}
}
