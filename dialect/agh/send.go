package agh

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// sendBody is a request to send. The runtime sets time, sender and proof.
type sendBody struct {
	sendResult
	Body jsontext.Value `json:"body"`
	// Interaction is a member of an older version of the protocol.
	Interaction jsontext.Value `json:"interaction_id,omitempty"`
}

// sendResult echoes a request.
type sendResult struct {
	ID          string         `json:"id,omitempty"`
	SessionID   string         `json:"session_id,omitempty"`
	WorkspaceID string         `json:"workspace_id,omitempty"`
	Channel     string         `json:"channel,omitempty"`
	Kind        wire.Kind      `json:"kind,omitempty"`
	Surface     wire.Surface   `json:"surface,omitempty"`
	ThreadID    string         `json:"thread_id,omitempty"`
	DirectID    string         `json:"direct_id,omitempty"`
	To          string         `json:"to,omitempty"`
	WorkID      string         `json:"work_id,omitempty"`
	ReplyTo     string         `json:"reply_to,omitempty"`
	TraceID     string         `json:"trace_id,omitempty"`
	CausationID string         `json:"causation_id,omitempty"`
	ExpiresAt   *int64         `json:"expires_at,omitempty"`
	Ext         jsontext.Value `json:"ext,omitempty"`
}

type sendAnswer struct {
	Message *sendResult `json:"message"`
}

func (c *call) send(sp *space) error {
	var body sendBody
	data, err := c.body()
	if err == nil {
		err = decodeBody(data, &body)
	}
	if err == nil {
		err = body.check(sp.name)
	}
	if err == nil {
		err = noBlank(data)
	}
	if err != nil {
		return err
	}
	p, err := sp.session(body.SessionID)
	if err != nil {
		return err
	}
	if err := c.owns(p); err != nil {
		return err
	}
	if body.Channel != p.room.channel {
		return fault.New(fault.NotFound, "the session %q is joined to %q, not to %.100q", p.session, p.room.channel, body.Channel)
	}
	if err := body.crosses(c.s.cfg.MaxHops); err != nil {
		return err
	}
	id, direct, err := p.send(c.Context(), &body)
	if err != nil {
		return err
	}
	body.ID = id
	body.DirectID = cmp.Or(body.DirectID, direct)
	return c.answer(http.StatusOK, sendAnswer{&body.sendResult})
}

// check refuses a request that no session could send.
func (b *sendBody) check(workspace string) error {
	b.Kind = cmp.Or(b.Kind, wire.Say)
	if b.Ext.Kind() == jsontext.KindNull { // null counts as absent, as for every other member
		b.Ext = nil
	}
	switch {
	case b.Interaction != nil:
		return &wire.Rejection{Reason: wire.LegacyFieldRejected, Member: "interaction_id", Detail: "`interaction_id` belongs to an older protocol; name a thread or direct room"}
	case b.WorkspaceID != "" && b.WorkspaceID != workspace:
		return fault.New(fault.Invalid, "`workspace_id` is %.100q, and the path names %.100q; give the same, or leave it out", b.WorkspaceID, workspace)
	case b.SessionID == "":
		return fault.New(fault.Invalid, "`session_id` is missing; it says which peer sends")
	case !b.Kind.Known():
		return &wire.Rejection{Reason: wire.UnsupportedKind, Member: "kind", Detail: "`kind` is one of whois, say, capability, receipt and trace; `direct` is a surface"}
	case b.Channel == "":
		return fault.New(fault.Invalid, "`channel` is missing; it is the one that the session is joined to")
	case b.Body == nil || b.Body.Kind() == jsontext.KindNull:
		return fault.New(fault.Invalid, "`body` is missing; it is an object, such as {\"text\":\"Berth 4 is free.\"}")
	case b.Body.Kind() != jsontext.KindBeginObject:
		return fault.New(fault.Invalid, "`body` is not an object")
	case b.Ext != nil && b.Ext.Kind() != jsontext.KindBeginObject:
		return fault.New(fault.Invalid, "`ext` is not an object; leave it out if there is none")
	case b.DirectID != "" && !wire.ValidDirect(b.DirectID):
		return fault.New(fault.Invalid, "`direct_id` does not match ^direct_[a-f0-9]{32}$; it may be left out, because `to` says which room it is")
	case wire.HoldsClaimToken(b.Body) || wire.HoldsClaimToken(b.Ext):
		return errRawToken
	case b.Kind == wire.Greet:
		return fault.New(fault.Invalid, "the runtime sends greetings itself, when a peer joins and then at an interval")
	case b.Surface == wire.Direct && b.To == "":
		return fault.New(fault.Invalid, "`to` is missing; a direct room's message names the other peer")
	case b.WorkID != "" && b.To == "" && (b.Kind == wire.Say || b.Kind == wire.Capability):
		return fault.New(fault.Invalid, "`to` is missing; work is between two peers")
	}
	return nil
}

// noBlank refuses members that are given and say nothing: an empty `to`, taken as
// absent, would tell everybody what is meant for one.
func noBlank(request []byte) error {
	for name, value := range jsonscan.Members(jsonscan.Trim(request)) {
		if text, ok := jsonscan.Text(value); ok && strings.TrimSpace(text) == "" {
			return fault.New(fault.Invalid, "`%s` is blank; leave it out if there is none", name)
		}
	}
	return nil
}

// crosses counts a message from another dialect that is forwarded here.
func (b *sendBody) crosses(most int) error {
	hops := wire.Hops(b.Ext)
	if hops == 0 {
		return nil
	}
	if err := tooManyHops(b.ID, hops, most); err != nil {
		return err
	}
	ext, err := wire.WithHops(b.Ext, hops+1)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "`ext`: %v", err)
	}
	b.Ext = ext
	return nil
}

// tooManyHops refuses what has crossed between dialects too often.
func tooManyHops(id string, hops, most int) error {
	if hops < most {
		return nil
	}
	return fault.New(fault.Protocol, "%.150s has crossed between dialects %d times, and at most %d are allowed (bridge.max_hops); check for a loop between bridges", id, hops, most).
		Because(fault.TooManyHops)
}

// envelope makes the envelope of a request.
func (p *peer) envelope(b *sendBody) (*wire.Envelope, error) {
	sp := p.room.space
	e := &wire.Envelope{
		Protocol: wire.Protocol, ID: b.ID, Workspace: sp.name, Kind: b.Kind, Channel: p.room.channel, Surface: b.Surface,
		Thread: b.ThreadID, Direct: b.DirectID, From: p.id, To: b.To, Work: b.WorkID, ReplyTo: b.ReplyTo, Trace: b.TraceID,
		Causation: b.CausationID, TS: sp.s.cfg.Now().Unix(), ExpiresAt: b.ExpiresAt, Body: b.Body, Ext: b.Ext,
	}
	if e.ID == "" {
		e.ID = wire.NewID()
	}
	if other := p.room.live(e.To); other != nil && sp.s.cfg.V1 {
		e.Protocol = wire.ProtocolOf(other.version)
	}
	if e.Surface == wire.Direct {
		id, err := wire.DirectID(sp.name, e.Channel, e.From, e.To)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "%v", err)
		}
		e.Direct = id
	}
	return e, nil
}

// send validates, stores and queues a message of a hosted peer. It returns when the
// message is durable.
func (p *peer) send(ctx context.Context, b *sendBody) (id, direct string, err error) {
	sp := p.room.space
	e, err := p.envelope(b)
	if err != nil {
		return "", "", err
	}
	if b.ID != "" { // before validation: a repeated request has its answer also when it is not fresh any more
		known, err := sp.knows(ctx, b.ID)
		if err != nil || known {
			return e.ID, e.Direct, err
		}
	}
	if err := p.checkExt(e.Ext); err != nil {
		return "", "", err
	}
	data, err := p.seal(e)
	if err != nil {
		return "", "", err
	}
	checked, err := wire.Decode(data, sp.s.cfg.validation(true))
	if err != nil {
		return "", "", err
	}
	known := false
	if e.Work != "" && !wire.ValidWork(e.Work) { // existing work may still be continued
		if _, known, err = sp.workRow(ctx, e.Work); err != nil {
			return "", "", err
		}
	}
	if err := checked.CheckOutgoing(known); err != nil {
		return "", "", err
	}
	if e.To == e.From {
		return "", "", fault.New(fault.Invalid, "`to` is the sender itself")
	}
	to, err := p.room.target(e.To)
	if err != nil {
		return "", "", err
	}
	if e.Kind == wire.Whois {
		return e.ID, "", p.ask(checked, data)
	}
	if _, err = sp.admit(ctx, p.room, checked, data, actor{p.id, p.agent}, to); errors.Is(err, errSeen) {
		err = nil // a repeated request has the same answer
	}
	return e.ID, e.Direct, err
}

// knows reports whether a message with an id is stored, of any sender.
func (sp *space) knows(ctx context.Context, id string) (bool, error) {
	for _, kind := range []string{thread.Type, direct.Type} {
		page, err := sp.s.hub.Entries(ctx, hub.EntryQuery{Type: kind, Home: sp.home.ID, Prefix: work.IDPrefix(id), Limit: 1})
		if err != nil || len(page.Entries) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// ask answers a whois question with the cards of the hosted peers, and sends it to the
// others.
func (p *peer) ask(e *wire.Envelope, data []byte) error {
	body, ok := e.Content.(*wire.WhoisBody)
	if !ok || body.Response {
		return fault.New(fault.Invalid, "a whois that a client sends is a request; the runtime sends the answers")
	}
	for _, other := range p.room.asked(e) {
		answer, data, err := other.introduce(e)
		if fault.CodeOf(err) == fault.TooLarge {
			continue // what cannot be sent over the network is not shown here either
		}
		if err != nil {
			return err
		}
		p.tell(&waiting{id: answer.ID, from: answer.From, data: data, meta: about(answer, len(data))})
	}
	s := p.room.space.s
	if s.cfg.Broker == nil {
		return nil
	}
	if e.To == "" {
		if err := s.handV1(p.room, data); err != nil {
			return err
		}
	}
	return s.publish(e, data, p.session)
}

// asked returns the hosted peers that answer a question.
func (r *netChannel) asked(e *wire.Envelope) []*peer {
	body, ok := e.Content.(*wire.WhoisBody)
	if !ok || body.Response {
		return nil
	}
	var all []*peer
	for _, p := range r.everyone() {
		switch {
		case p.id == e.From:
		case e.To == p.id, e.To == "" && p.card().Matches(body.Query):
			all = append(all, p)
		}
	}
	return all
}

// introduce answers a question with the peer's card.
func (p *peer) introduce(request *wire.Envelope) (*wire.Envelope, []byte, error) {
	card := p.card()
	e := &wire.Envelope{
		Protocol: request.Protocol, ID: wire.NewID(), Workspace: request.Workspace, Kind: wire.Whois, Channel: request.Channel,
		From: p.id, To: request.From, ReplyTo: request.ID, TS: p.room.space.s.cfg.Now().Unix(),
	}
	var err error
	if want := request.CatalogRequest(); want.Wanted {
		selected := want.Select(p.catalog())
		if err := card.Offer(selected); err != nil {
			return nil, nil, err
		}
		if e.Ext, err = wire.AppendCatalogExt(nil, selected); err != nil {
			return nil, nil, err
		}
	}
	body := &wire.WhoisBody{Response: true, Card: card}
	if e.Body, err = body.AppendJSON(nil); err != nil {
		return nil, nil, err
	}
	e.Content = body
	data, err := p.seal(e)
	return e, data, err
}

// resolveBody names the two peers of a direct room.
type resolveBody struct {
	SessionID string `json:"session_id"`
	PeerID    string `json:"peer_id"`
}

func (c *call) resolveDirect(r *netChannel) error {
	var body resolveBody
	if err := c.read(&body); err != nil {
		return err
	}
	switch {
	case body.SessionID == "":
		return fault.New(fault.Invalid, "`session_id` is missing; it says which peer asks")
	case body.PeerID == "":
		return fault.New(fault.Invalid, "`peer_id` is missing; it says whom the room is shared with")
	}
	p, err := r.space.session(body.SessionID)
	if err != nil {
		return err
	}
	if err := c.owns(p); err != nil {
		return err
	}
	if p.room != r {
		return fault.New(fault.NotFound, "the session %q is joined to %q, not to %q", p.session, p.room.channel, r.channel)
	}
	id, err := wire.DirectID(r.space.name, r.channel, p.id, body.PeerID)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "%v", err)
	}
	to, err := r.target(body.PeerID)
	if err != nil {
		return err
	}
	if err := p.resolve(c.Context(), id, to); err != nil {
		return err
	}
	row, err := r.conversation(c.Context(), direct.Type, id)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, map[string]any{"direct": r.showDirect(row)})
}
