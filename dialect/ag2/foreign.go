package ag2

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/adapter/discussion"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// A channel of another dialect is shown to AG2's clients as a type that they know:
// a conversation of its two members, or a discussion. Its log is never translated:
// what clients read, receive and may do there is computed from its items.

// foreign is a channel of another dialect as some identities see it.
type foreign struct {
	meta    *channel.Metadata // the hub's metadata
	adapter channel.Adapter
	readers []string // the members who read
	sees    func(*envelope.Envelope) bool
	whole   bool // the readers see everything
	find    func(name string) (id string, ok bool)
	shown   *channel.Metadata // the metadata that AG2's clients see
}

// maxShownMembers is how many members of a channel fit its metadata.
const maxShownMembers = logBytes / 512

// isForeign reports whether a channel is of another dialect. Such channels are in
// homes, and AG2's channels are not.
func (s *Server) isForeign(m *channel.Metadata) bool {
	if hub.HomeOf(m.ID) == "" {
		return false
	}
	only, ok := s.cfg.Hub.AdapterFor(m).(channel.DialectOnly)
	return ok && only.Dialect() != dialectName
}

// foreign returns a channel as some identities see it. If sees is nil, it returns
// what these identities may see.
func (s *Server) foreign(ctx context.Context, m *channel.Metadata, agents []string, sees func(*envelope.Envelope) bool) (*foreign, error) {
	in, err := s.cfg.Hub.Members(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	f := &foreign{meta: m, adapter: s.cfg.Hub.AdapterFor(m), sees: sees, whole: sees != nil, find: s.cfg.Hub.FindAgent}
	for _, id := range agents {
		if in.Has(id) {
			f.readers = append(f.readers, id)
		}
	}
	slices.Sort(f.readers)
	if f.sees == nil {
		if f.sees, err = s.cfg.Hub.Sight(ctx, m.ID, f.readers); err != nil {
			return nil, err
		}
	}
	f.shown = f.metadata(in)
	return f, nil
}

// foreignHere returns a channel as this connection sees it.
func (c *conn) foreignHere(ctx context.Context, m *channel.Metadata) (*foreign, error) {
	var all func(*envelope.Envelope) bool
	if c.server.cfg.TrustClients || c.isOperator() {
		all = func(*envelope.Envelope) bool { return true }
	}
	return c.server.foreign(ctx, m, c.caller().Agents, all)
}

// sight returns a key of what the readers see, so that a cached result is used only
// for readers that see the same.
func (f *foreign) sight() string {
	if f.whole {
		return "*"
	}
	return strings.Join(f.readers, ",")
}

// LabelType is the label with the actual type of a foreign channel.
const LabelType = "parley.type"

// metadata returns the channel with the keys, type and roles that AG2's clients
// know. Its manifest has no expectations.
func (f *foreign) metadata(in channel.Members) *channel.Metadata {
	m := *f.meta
	ids := f.participants(in)
	manifest, other := discussion.Adapter{}.Manifest(), channel.Member
	if len(ids) == 2 {
		manifest, other = conversation.Adapter{}.Manifest(), channel.Respondent
	}
	manifest.Expectations = nil
	m.Manifest, m.Knobs, m.Parent, m.RequiredAcks, m.PendingAcks, m.RejectedBy = &manifest, nil, "", nil, nil, nil
	m.Labels = map[string]string{LabelType: f.meta.Manifest.Type}
	maps.Copy(m.Labels, f.meta.Labels)
	m.Participants = make([]channel.Participant, len(ids))
	for i, id := range ids {
		m.Participants[i] = channel.Participant{Agent: id, Role: other, Order: i, JoinedAt: m.CreatedAt}
	}
	if len(ids) > 0 {
		m.Participants[0].Role = channel.Initiator
	}
	return &m
}

// participants returns the members: the creator first, then the readers, then as
// many of the others as fit.
func (f *foreign) participants(in channel.Members) []string {
	var ids []string
	add := func(id string) bool {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return len(ids) < maxShownMembers
	}
	if in.Has(f.meta.Creator) {
		add(f.meta.Creator)
	}
	if in.Count() > maxShownMembers {
		for _, id := range f.readers {
			add(id)
		}
	}
	in.Each(add)
	return ids
}

// invitee returns the recipient of the invitation at the head of the log: the
// reader or, if the reader is the creator, the next participant; "" if there is
// none.
func (f *foreign) invitee() string {
	for _, id := range f.readers {
		if id != f.meta.Creator {
			return id
		}
	}
	for _, p := range f.shown.Participants {
		if p.Agent != f.meta.Creator {
			return p.Agent
		}
	}
	return ""
}
