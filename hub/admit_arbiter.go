package hub

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
)

// Arbiter decides who may do what. Each gate allows with nil and denies with
// an error, whose code reaches the caller; an error without one is a denial of
// access. Gates do no I/O.
type Arbiter interface {
	// AuthorizeSend judges a post before its channel is looked at. Recipients
	// are the registered ones that the audience names, without the sender.
	AuthorizeSend(sender Profile, e *envelope.Envelope, recipients []Profile) error
	// AuthorizeInbox judges whether a recipient can take one more.
	AuthorizeInbox(recipient Profile, pending int64) error
	// AuthorizeDispatch judges each delivery; a denial skips the recipient.
	AuthorizeDispatch(sender, recipient Profile, e *envelope.Envelope) error
	// AuthorizeOpen judges a new channel; open is how many of the creator's
	// have not ended, counted only if its rule bounds them.
	AuthorizeOpen(creator Profile, invitees []Profile, manifest *channel.Manifest, open int64) error
	// AuthorizeRegister judges a new identity.
	AuthorizeRegister(p *identity.Passport) error
	// ResolveUnknown may name recipients in place of ids that nobody has.
	ResolveUnknown(e *envelope.Envelope, ids []string) []string
}

func (h *Hub) arbiter() Arbiter { return *h.judge.Load() }

// SetArbiter replaces the arbiter; it holds from the next check on.
func (h *Hub) SetArbiter(a Arbiter) { h.judge.Store(&a) }

// AllowAll allows everything. Embed it to override some gates.
type AllowAll struct{}

func (AllowAll) AuthorizeSend(Profile, *envelope.Envelope, []Profile) error       { return nil }
func (AllowAll) AuthorizeInbox(Profile, int64) error                              { return nil }
func (AllowAll) AuthorizeDispatch(Profile, Profile, *envelope.Envelope) error     { return nil }
func (AllowAll) AuthorizeOpen(Profile, []Profile, *channel.Manifest, int64) error { return nil }
func (AllowAll) AuthorizeRegister(*identity.Passport) error                       { return nil }
func (AllowAll) ResolveUnknown(*envelope.Envelope, []string) []string             { return nil }

// Rules enforces each identity's rule.
type Rules struct{ AllowAll }

// AuthorizeSend holds the sender to the names it may address and to its depth
// of delegation.
func (Rules) AuthorizeSend(sender Profile, e *envelope.Envelope, recipients []Profile) error {
	for _, r := range recipients {
		if !sender.Enforced().SendsTo(r.Passport.Name) {
			return fault.New(fault.AccessDenied, "'%s' may not send to '%s': its rule's access.outbound_to does not match",
				sender.Passport.Name, r.Passport.Name)
		}
	}
	if limit := sender.Enforced().Limits.DelegationDepth; limit > 0 && int64(e.Depth) > limit {
		return fault.New(fault.AccessDenied, "depth %d is over the limits.delegation_depth of '%s', %d",
			e.Depth, sender.Passport.Name, limit)
	}
	return nil
}

// AuthorizeInbox refuses what a full inbox could not take.
func (Rules) AuthorizeInbox(recipient Profile, pending int64) error {
	limit := recipient.Enforced().Limits.Inbox.MaxPending
	if limit <= 0 || pending < limit {
		return nil
	}
	return fault.New(fault.InboxFull, "inbox at capacity: '%s' has %d unanswered envelopes, its limit is %d",
		recipient.Passport.Name, pending, limit)
}

// AuthorizeDispatch holds back what a recipient does not want from a sender.
func (Rules) AuthorizeDispatch(sender, recipient Profile, _ *envelope.Envelope) error {
	if recipient.Enforced().AcceptsFrom(sender.Passport.Name) {
		return nil
	}
	return fault.New(fault.AccessDenied, "'%s' does not accept inbound from '%s'", recipient.Passport.Name, sender.Passport.Name)
}

// AuthorizeOpen asks every invitee's rule, and the creator's own.
func (Rules) AuthorizeOpen(creator Profile, invitees []Profile, manifest *channel.Manifest, open int64) error {
	name := creator.Passport.Name
	if !creator.Enforced().MayInitiate(manifest.Type) {
		return fault.New(fault.AccessDenied, "'%s' may not open a %s: its rule's access.channel_types.initiate does not match", name, manifest.Type)
	}
	for _, invitee := range invitees {
		if !invitee.Enforced().AcceptsFrom(name) {
			return fault.New(fault.AccessDenied, "'%s' does not accept inbound from '%s'", invitee.Passport.Name, name)
		}
		if !invitee.Enforced().MayAccept(manifest.Type) {
			return fault.New(fault.AccessDenied, "'%s' does not accept a %s: its rule's access.channel_types.accept does not match",
				invitee.Passport.Name, manifest.Type)
		}
	}
	if limit := creator.Enforced().Limits.MaxConcurrentChannels; limit > 0 && open >= limit {
		return fault.New(fault.AccessDenied, "'%s' has %d channels open, its max_concurrent_channels is %d", name, open, limit)
	}
	return nil
}

// denied gives a gate's error the code of a denial if it has none.
func denied(err error) error {
	if err == nil || fault.CodeOf(err) != fault.Internal {
		return err
	}
	return fault.Wrap(fault.AccessDenied, err, "%v", err)
}
