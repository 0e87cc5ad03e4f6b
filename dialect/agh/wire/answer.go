package wire

// Answer makes the receipt by which a runtime answers an envelope on its own:
// directed work that is stale, malformed, doubled, closed or in the wrong container,
// and nothing else. It is sent by the addressed peer, in the offender's conversation,
// or in that of the work where the offender names none that is valid. Work that nobody
// knows has none; then a thread_id that we do not keep, and the seed's schema takes, is
// repeated. It returns false if no receipt is due or no valid one can be made. An
// envelope in a direct room that the two peers do not share gets no receipt, whether it
// is malformed or not. The options are those under which the offender was decoded.
func Answer(offender *Envelope, why Reason, work Container, o Options) (*Envelope, bool) {
	status := StatusRejected
	switch why.Published() {
	case Expired:
		status = StatusExpired
	case Duplicate:
		status = StatusDuplicate
	case Malformed, VerificationFailed:
	case WorkClosed, WorkContainerMismatch:
		if offender == nil || offender.Kind != Say {
			return nil, false
		}
	default:
		return nil, false
	}
	if offender == nil || offender.To == "" || offender.From == offender.To || offender.Kind != Say && offender.Kind != Capability {
		return nil, false
	}
	r := &Envelope{
		Protocol: Protocol, ID: NewID(), Workspace: offender.Workspace, Kind: Receipt, Channel: offender.Channel,
		From: offender.To, To: offender.From, Work: offender.Work, TS: o.Now,
		ReplyTo: offender.ID, Causation: offender.ID,
	}
	if offender.Protocol == ProtocolV1 && o.V1 { // else its protocol is what is wrong with it
		r.Protocol = ProtocolV1
	}
	if trimmed(offender.Trace) {
		r.Trace = offender.Trace
	}
	if !r.place(offender, work) {
		return nil, false
	}
	content := &ReceiptBody{ForID: offender.ID, Status: status, Reason: why.Published()}
	body, err := content.AppendJSON(nil)
	if err != nil {
		return nil, false
	}
	r.Body = body
	text, err := r.AppendJSON(nil)
	if err != nil {
		return nil, false
	}
	// What was copied may itself be what is wrong with the offender.
	o.SkipFreshness, o.Secrets, o.Strict, o.Storable = true, nil, true, false
	checked, fault := decode(text, &o)
	return checked, fault == nil
}

// place puts a receipt into a conversation.
func (e *Envelope) place(offender *Envelope, work Container) bool {
	switch {
	case offender.Surface != Direct && StorableThread(offender.Thread) && (offender.Surface == Thread || offender.Direct == ""):
		e.Surface, e.Thread = Thread, offender.Thread
	case offender.Surface != Thread && ValidDirect(offender.Direct) && (offender.Surface == Direct || offender.Thread == ""):
		e.Surface, e.Direct = Direct, offender.Direct
		return e.Counterpart(e.To)
	case work.Surface == Thread && work.Channel == offender.Channel && work.ID != "":
		e.Surface, e.Thread = Thread, work.ID
	case work.Surface == Direct && work.Channel == offender.Channel && work.ID != "":
		e.Surface, e.Direct = Direct, work.ID
	case offender.Surface == Thread && offender.Direct == "" && trimmed(offender.Thread):
		e.Surface, e.Thread = Thread, offender.Thread
	default:
		return false
	}
	return true
}
