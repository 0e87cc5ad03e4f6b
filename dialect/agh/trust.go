package agh

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// Policy says how a workspace treats proofs.
type Policy string

// Policies. All of them refuse a handle without a valid proof.
const (
	// TrustOff refuses nothing because of its proof; valid proofs are shown as verified.
	TrustOff Policy = "off"
	// TrustVerify refuses invalid proofs.
	TrustVerify Policy = "verify"
	// TrustRequire also refuses envelopes without a proof.
	TrustRequire Policy = "require"
)

func (p Policy) known() bool { return p == TrustOff || p == TrustVerify || p == TrustRequire }

// trustPolicy is a workspace's policy. It is immutable.
type trustPolicy struct {
	Policy Policy `json:"policy"`
	// Pins are the only keys that may use a nickname: key ids by nickname. They apply
	// wherever proofs are checked.
	Pins map[string]string `json:"pins"`
}

const (
	trustKind = "agh-trust" // documents are named by the home's id
	mostPins  = 500
)

var trustDefault = &trustPolicy{Policy: TrustOff, Pins: map[string]string{}}

// policy is the workspace's policy now.
func (sp *space) policy() *trustPolicy {
	if t := sp.trust.Load(); t != nil {
		return t
	}
	return trustDefault
}

// loadTrust reads the workspace's policy.
func (sp *space) loadTrust(ctx context.Context) error {
	doc, err := sp.s.hub.Document(ctx, trustKind, sp.home.ID)
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	t := &trustPolicy{}
	if err := json.Unmarshal(doc.Data, t); err != nil || !t.Policy.known() {
		return fault.New(fault.Internal, "the trust policy of the workspace %q cannot be read: %v", sp.name, err)
	}
	if t.Pins == nil {
		t.Pins = map[string]string{}
	}
	sp.trust.Store(t)
	return nil
}

// check refuses an invalid policy.
func (t *trustPolicy) check() error {
	if !t.Policy.known() {
		return fault.New(fault.Invalid, "`policy` is off, verify or require, not %.40q", t.Policy)
	}
	if len(t.Pins) > mostPins {
		return fault.New(fault.TooLarge, "`pins` has %d nicknames; a workspace pins at most %d", len(t.Pins), mostPins)
	}
	for _, nickname := range slices.Sorted(maps.Keys(t.Pins)) {
		if !wire.ValidNickname(nickname) {
			return fault.New(fault.Invalid, "`pins` has the nickname %.60q; one matches ^[a-z0-9_-]{1,32}$", nickname)
		}
		if !wire.ValidKeyID(t.Pins[nickname]) {
			return fault.New(fault.Invalid, "`pins` names %.100q for %q; a key id is sha256: and 64 hexadecimal digits, as parley agh keys export shows it", t.Pins[nickname], nickname)
		}
	}
	return nil
}

// setTrust stores and applies a policy. Remote peers that it would refuse are no longer
// present.
func (sp *space) setTrust(ctx context.Context, change func(t *trustPolicy) error) (*trustPolicy, error) {
	sp.trusting.Lock()
	defer sp.trusting.Unlock()
	next := *sp.policy()
	if err := change(&next); err != nil {
		return nil, err
	}
	data, err := json.Marshal(next)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%v", err)
	}
	note := hub.AuditNote{Kind: "agh_trust", Fields: map[string]any{"workspace_id": sp.name, "policy": string(next.Policy), "pins": len(next.Pins)}}
	if _, err := sp.s.hub.EditDocuments(ctx, []hub.DocumentEdit{{Kind: trustKind, Name: sp.home.ID, Data: data}}, note); err != nil {
		return nil, err
	}
	sp.trust.Store(&next)
	for _, r := range sp.list() {
		r.expel(func(p *remote) bool { return !next.lets(p) })
	}
	return &next, nil
}

// lets reports whether the policy admits a present remote peer.
func (t *trustPolicy) lets(p *remote) bool {
	switch {
	case t.Policy == TrustOff:
		return true
	case p.trust != wire.Verified:
		return t.Policy != TrustRequire
	}
	return t.pinned(p.card.PeerID, p.keyID) == nil
}

// judge returns what is known of the sender of a valid envelope. A rejection precedes
// routing: it is audited and has no other effect.
func (t *trustPolicy) judge(e *wire.Envelope, data []byte) (wire.Trust, *wire.Rejection) {
	state, why := wire.Verify(e, data)
	handle := strings.Contains(e.From, "@")
	if t.Policy == TrustOff {
		switch {
		case state == wire.Verified:
			return state, nil
		case handle:
			return wire.Rejected, &wire.Rejection{Reason: wire.Malformed, Member: "from", Detail: "`from` is a handle without a valid proof"}
		}
		return wire.Unverified, nil
	}
	switch {
	case state == wire.Rejected:
		return state, why
	case state == wire.Verified:
		if why := t.pinned(e.From, wire.ProofKeyID(e)); why != nil {
			return wire.Rejected, why
		}
		return state, nil
	case e.Proof != nil && (handle || t.Policy == TrustRequire):
		return wire.Rejected, &wire.Rejection{Reason: wire.UnsupportedProfile, Member: "proof.profile", Detail: "`proof.profile` is not " + wire.Profile}
	case t.Policy == TrustRequire:
		return wire.Rejected, &wire.Rejection{Reason: wire.VerificationFailed, Member: "proof", Detail: "`proof` is missing, and the workspace requires one"}
	}
	return state, nil
}

// pinned refuses a key for a nickname that is pinned to another one.
func (t *trustPolicy) pinned(handle, keyID string) *wire.Rejection {
	nickname, _, _ := strings.Cut(handle, "@")
	if pin := t.Pins[nickname]; pin == "" || pin == keyID {
		return nil
	}
	return &wire.Rejection{Reason: wire.VerificationFailed, Member: "proof.key_id", Detail: "`proof.key_id` is not the key that is pinned to this nickname"}
}

// expel removes the remote peers of a channel that a function selects.
func (r *netChannel) expel(selects func(*remote) bool) {
	r.mu.Lock()
	var gone []string
	for id, p := range r.remotes {
		if selects(p) {
			r.forgetRemote(id)
			gone = append(gone, id)
		}
	}
	r.mu.Unlock()
	r.left(gone)
}
