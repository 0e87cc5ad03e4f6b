package hub

import (
	"cmp"
	"context"
	"slices"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/turns"
	"github.com/parley-hub/parley/task"
)

// Access is the hub with the rights of one caller: reads show what the caller may see,
// and changes are refused unless the caller may make them. All surfaces use it, so that
// they have the same rules:
//
//	                     sees               closes    acts for
//	an agent's caller    its channels,      its       its agents
//	                     their tasks,       channels
//	                     its own tasks
//	RoleReader           everything but     as above  as above
//	                     private channels
//	RoleOperator         everything         every     as above
//	Anyone, or nil       everything         every     everyone
//
// Refusals have the code fault.AccessDenied; a surface may say them in its own
// words.
type Access struct {
	hub *Hub
	by  *Caller
}

// As returns the hub with a caller's rights.
func (h *Hub) As(by *Caller) Access { return Access{h, by} }

// MayActFor returns an error if the caller may not act for an agent.
func (a Access) MayActFor(agent string) error {
	if a.by.MayActFor(agent) {
		return nil
	}
	return fault.New(fault.AccessDenied, "the caller may not act for '%.100s': it has not proved to be that agent", agent)
}

// SeesAll reports whether the caller sees everything.
func (a Access) SeesAll() bool { return a.by.seesAll() }

// Sees refuses a channel that the caller may not see.
func (a Access) Sees(ctx context.Context, m *channel.Metadata) error {
	sees, err := a.sees(ctx, m)
	if err != nil || sees {
		return err
	}
	return fault.New(fault.AccessDenied, "no agent of the caller takes part in channel '%.100s'", m.ID)
}

func (a Access) sees(ctx context.Context, m *channel.Metadata) (bool, error) {
	if a.by.closesAll() || a.by.seesAll() && !a.hub.private(m) {
		return true, nil
	}
	return a.hub.takesPart(ctx, a.by, m)
}

// private reports whether only members and operators see a channel.
func (h *Hub) private(m *channel.Metadata) bool {
	p, ok := h.adapterOf(m.Manifest.Key()).(channel.Private)
	return ok && p.Private()
}

// Channel returns a channel that the caller may see.
func (a Access) Channel(ctx context.Context, id string) (*channel.Metadata, error) {
	m, err := a.hub.Channel(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := a.Sees(ctx, m); err != nil {
		return nil, err
	}
	return m, nil
}

// Channels lists channels that the caller may see, as Hub.Channels does.
func (a Access) Channels(ctx context.Context, o ListOptions) (list []*channel.Metadata, next string, err error) {
	o.by = a.by
	return a.hub.Channels(ctx, o)
}

// ChannelPage lists channels that the caller may see, as Hub.ChannelPage does.
func (a Access) ChannelPage(ctx context.Context, o ListOptions) (list []ListedChannel, next string, err error) {
	o.by = a.by
	return a.hub.ChannelPage(ctx, o)
}

// CloseChannel closes a channel that the caller may close.
func (a Access) CloseChannel(ctx context.Context, id, reason string) (*channel.Metadata, error) {
	m, err := a.Channel(ctx, id)
	if err != nil {
		return nil, err
	}
	closes := a.by.closesAll()
	if !closes {
		if closes, err = a.hub.takesPart(ctx, a.by, m); err != nil {
			return nil, err
		}
	}
	if !closes {
		return nil, fault.New(fault.AccessDenied, "closing a channel takes an operator or a participant")
	}
	return a.hub.closeChannel(ctx, id, reason, a.by)
}

// Unregister removes an identity that the caller may act for.
func (a Access) Unregister(ctx context.Context, id string) error {
	if err := a.MayActFor(id); err != nil {
		return err
	}
	return a.hub.unregister(ctx, id, a.by)
}

// Task returns a task that the caller may see: one of its agents', or one of a channel
// that it may see.
func (a Access) Task(ctx context.Context, id string) (*task.Task, error) {
	t, err := a.hub.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	if !a.seesTask(ctx)(t) {
		return nil, fault.New(fault.AccessDenied, "task '%.100s' belongs to '%s': only its owner and the participants of its channel may see it", id, t.Owner)
	}
	return t, nil
}

// Tasks lists tasks that the caller may see, as Hub.Tasks does.
func (a Access) Tasks(ctx context.Context, q TaskQuery) (list []*task.Task, next string, err error) {
	for {
		page, next, err := a.TaskPage(ctx, q)
		if err != nil {
			return nil, "", err
		}
		for _, t := range page {
			list = append(list, t.Task)
		}
		if q.Limit = cmp.Or(max(q.Limit, 0), 50); next == "" || len(page) >= q.Limit {
			return list, next, nil
		}
		q.Limit, q.After = q.Limit-len(page), next
	}
}

// TaskPage lists tasks that the caller may see, as Hub.TaskPage does.
func (a Access) TaskPage(ctx context.Context, q TaskQuery) (list []ListedTask, next string, err error) {
	return a.hub.tasks.List(ctx, q, a.seesTask(ctx))
}

// seesTask returns a function that reports whether the caller may see a task; it looks
// each channel up once.
func (a Access) seesTask(ctx context.Context) func(*task.Task) bool {
	sees := map[string]bool{"": false}
	return func(t *task.Task) bool {
		if a.by.seesAll() || a.by.is(t.Owner) {
			return true
		}
		in, known := sees[t.Channel]
		if !known {
			m, err := a.hub.Channel(ctx, t.Channel)
			if err == nil {
				in, err = a.sees(ctx, m)
			}
			in = in && err == nil
			sees[t.Channel] = in
		}
		return in
	}
}

// Caller is the identity on whose behalf the hub is called. It is data, so that it can
// be sent to another machine; the surface that fills it in has verified it. A nil
// *Caller is the program that embeds the hub: it sees everything and acts for everyone.
type Caller struct {
	// Agents are the ids that the caller has proved to be, sorted. It acts for
	// them and sees what concerns them.
	Agents []string
	// Anyone lets the caller act for every agent.
	Anyone bool
	Role   Role
	// Key is the id of the access key that was shown, if one was.
	Key string
	// Connection is the id of the caller's endpoint, if there is one.
	Connection string
}

// Role is what a caller may do besides acting for its agents.
type Role uint8

// Roles, each with the rights of those before it.
const (
	RoleNone     Role = iota
	RoleReader        // sees everything
	RoleOperator      // closes every channel
)

// MayActFor reports whether the caller may act for an agent.
func (c *Caller) MayActFor(agent string) bool {
	return c == nil || c.Anyone || c.is(agent)
}

func (c *Caller) is(agent string) bool {
	_, found := slices.BinarySearch(c.Agents, agent)
	return found
}

// seesAll reports whether the caller sees everything.
func (c *Caller) seesAll() bool { return c == nil || c.Anyone || c.Role >= RoleReader }

// closesAll reports whether the caller may close every channel: a reader, who
// only sees them, may not.
func (c *Caller) closesAll() bool { return c == nil || c.Anyone || c.Role >= RoleOperator }

// roleNames are the names of roles in the audit.
var roleNames = map[Role]string{RoleReader: "reader", RoleOperator: "operator"}

// describe adds the caller to an audit record. For a nil caller, which is the program
// that embeds the hub, it adds nothing.
func (c *Caller) describe(f fields) {
	if c == nil {
		return
	}
	f["by"] = c.audited().Map()
}

// audited is who acted, as audit records tell it; nil if there is no caller.
func (c *Caller) audited() *schema.AuditBy {
	if c == nil {
		return nil
	}
	return &schema.AuditBy{
		Agents: c.Agents[:min(len(c.Agents), maxAuditAgents)], Connection: c.Connection, Key: c.Key, Role: roleNames[c.Role],
	}
}

// actedFor audits that an operator speaks for an agent without having proved to be it,
// in the batch of the envelope.
func (b *batch) actedFor(e *envelope.Envelope, by *Caller) error {
	if by == nil || by.Role < RoleOperator || by.is(e.Sender) {
		return nil
	}
	f := fields{"channel_id": b.ch.id, "agent_id": e.Sender, "envelope_id": e.ID, "event_type": e.Type}
	by.describe(f)
	return b.audit("acted_for", f)
}

// maxAuditAgents bounds how many agents of a caller one audit record names.
const maxAuditAgents = 16

// MayList refuses a list when the lists of this reader, or of all readers, have
// recently cost more than limits.lists. The argument who is a key or a connection.
func (h *Hub) MayList(who string) error { return h.lists.May(who) }

// Listed counts a list of a reader.
func (h *Hub) Listed(who string, bytes int) { h.lists.Count(who, bytes) }

// Reading returns a reader's turn to read logs, within its share of limits.reads. The
// argument who is a key or a connection.
func (h *Hub) Reading(who string) *turns.Turn { return h.reads.For(who) }

// Arbiter decides who may do what. Each gate allows with nil and denies with
// an error, whose code reaches the caller; an error without one is a denial of
// access. Gates do no I/O.
type Arbiter interface {
	// AuthorizeSend checks a post before its channel is loaded. Recipients are the
	// registered ones of the audience, without the sender.
	AuthorizeSend(sender Profile, e *envelope.Envelope, recipients []Profile) error
	// AuthorizeInbox checks whether a recipient can take one more envelope.
	AuthorizeInbox(recipient Profile, pending int64) error
	// AuthorizeDispatch checks each delivery; a denial skips the recipient.
	AuthorizeDispatch(sender, recipient Profile, e *envelope.Envelope) error
	// AuthorizeOpen checks a new channel; open is how many channels of the creator have
	// not ended, counted only if its rule bounds them.
	AuthorizeOpen(creator Profile, invitees []Profile, manifest *channel.Manifest, open int64) error
	// AuthorizeRegister checks a new identity.
	AuthorizeRegister(p *identity.Passport) error
	// ResolveUnknown may return recipients in place of unknown ids.
	ResolveUnknown(e *envelope.Envelope, ids []string) []string
}

func (h *Hub) arbiter() Arbiter { return *h.judge.Load() }

// SetArbiter replaces the arbiter, from the next check on.
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

// AuthorizeSend enforces the sender's list of names that it may address and its depth of
// delegation.
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

// AuthorizeInbox refuses envelopes to a full inbox.
func (Rules) AuthorizeInbox(recipient Profile, pending int64) error {
	limit := recipient.Enforced().Limits.Inbox.MaxPending
	if limit <= 0 || pending < limit {
		return nil
	}
	return fault.New(fault.InboxFull, "inbox at capacity: '%s' has %d unanswered envelopes, its limit is %d",
		recipient.Passport.Name, pending, limit)
}

// AuthorizeDispatch skips a recipient whose rule does not accept the sender.
func (Rules) AuthorizeDispatch(sender, recipient Profile, _ *envelope.Envelope) error {
	if recipient.Enforced().AcceptsFrom(sender.Passport.Name) {
		return nil
	}
	return fault.New(fault.AccessDenied, "'%s' does not accept inbound from '%s'", recipient.Passport.Name, sender.Passport.Name)
}

// AuthorizeOpen checks every invitee's rule, and the creator's.
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
