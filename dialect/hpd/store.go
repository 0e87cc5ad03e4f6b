package hpd

import (
	"context"
	"time"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// homeKind is the kind of the homes that are sessions.
const homeKind = "hpd"

// session is a session that exists: its home, and the channel of its main
// branch.
type session struct {
	id   string
	home string
	main string
}

// scope is a branch that exists.
type scope struct {
	session session
	branch  string
	channel string
	state   *adapter.State
}

func (x *scope) wire() wire.Scope { return wire.Scope{Session: x.session.id, Branch: x.branch} }

func errNoSession(id string) error {
	return fault.New(fault.NotFound, "Session '%.200s' was not found.", id)
}

func errNoBranch(id, session string) error {
	return fault.New(fault.NotFound, "Branch '%.200s' was not found in session '%.200s'.", id, session)
}

// lookup returns a session, regardless of the caller.
func (s *Server) lookup(ctx context.Context, id string) (session, error) {
	if wire.CheckID("session", id) != nil {
		return session{}, errNoSession(id) // no session has that id
	}
	home, err := s.hub.FindHome(ctx, homeKind, id)
	if fault.CodeOf(err) == fault.NotFound {
		return session{}, errNoSession(id)
	}
	if err != nil {
		return session{}, err
	}
	main, err := s.hub.Named(ctx, home.ID, adapter.Type, wire.MainBranch)
	if fault.CodeOf(err) == fault.NotFound {
		return session{}, errNoSession(id)
	}
	return session{id: id, home: home.ID, main: main}, err
}

// session returns a session that the caller may see, after it has settled the runs
// that a restart left in it.
func (s *Server) session(c *call) (session, error) {
	x, err := s.lookup(c.Context(), c.path.session)
	if err != nil {
		c.missing = fault.CodeOf(err) == fault.NotFound
		return session{}, err
	}
	seen, err := s.seesSession(c.Context(), c.who, x)
	if err == nil && !seen {
		err = errNoSession(x.id)
	}
	if err == nil {
		err = s.settle(c.Context(), x)
	}
	return x, err
}

// seesSession reports whether a caller takes part in any branch of a session.
func (s *Server) seesSession(ctx context.Context, who Who, x session) (bool, error) {
	if seen, err := s.sees(ctx, who, x.main); err != nil || seen || who.Role != Agent {
		return seen, err
	}
	all, err := s.summaries(ctx, x)
	if err != nil {
		return false, err
	}
	for _, b := range all {
		if seen, err := s.sees(ctx, who, b.Channel); err != nil || seen {
			return seen, err
		}
	}
	return false, nil
}

// scope finds a branch of a session that the caller may see.
func (s *Server) scope(c *call) (*scope, error) {
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	return s.branch(c.Context(), x, c.path.branch)
}

// branch finds a branch of a session.
func (s *Server) branch(ctx context.Context, x session, id string) (*scope, error) {
	if wire.CheckID("branch", id) != nil {
		return nil, errNoBranch(id, x.id)
	}
	channelID, err := s.hub.Named(ctx, x.home, adapter.Type, id)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, errNoBranch(id, x.id)
	}
	if err != nil {
		return nil, err
	}
	state, err := s.state(ctx, channelID)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, errNoBranch(id, x.id)
	}
	return &scope{session: x, branch: id, channel: channelID, state: state}, err
}

func (s *Server) state(ctx context.Context, channelID string) (*adapter.State, error) {
	folded, err := s.hub.State(ctx, channelID)
	if err != nil {
		return nil, err
	}
	state, ok := folded.(*adapter.State)
	if !ok {
		return nil, fault.New(fault.Internal, "channel '%s' is not a branch", channelID)
	}
	return state, nil
}

// made returns an event that the server writes, as an envelope.
func made(channelID, sender, flow string, payload wire.Payload, ext branch.Ext) (*envelope.Envelope, error) {
	e := &envelope.Envelope{Channel: channelID, Sender: sender, Priority: envelope.Normal}
	event := wire.Event{Payload: payload}
	event.EventFlowID = flow
	ext.Server = true
	if err := event.Store(e, ext); err != nil {
		return nil, err
	}
	return e, nil
}

// committed returns the events of a message that was not streamed.
func committed(channelID, sender, flow string, m *wire.ChatMessage) ([]*envelope.Envelope, error) {
	drafts, err := branch.Expand(m)
	if err != nil {
		return nil, err
	}
	ext := branch.Ext{Flow: flow, Server: true}.Bytes()
	list := make([]*envelope.Envelope, len(drafts))
	for i, d := range drafts {
		list[i] = &envelope.Envelope{
			Channel: channelID, Sender: sender, Type: branch.LogType(d.Type), Data: d.Data, Ext: ext, Priority: envelope.Normal,
		}
	}
	return list, nil
}

// append stores events that the server made.
func (s *Server) append(ctx context.Context, channelID, sender string, payloads ...wire.Payload) error {
	list := make([]*envelope.Envelope, len(payloads))
	for i, p := range payloads {
		e, err := made(channelID, sender, "", p, branch.Ext{})
		if err != nil {
			return err
		}
		list[i] = e
	}
	_, err := s.hub.AdmitAll(ctx, list, trusted).Wait(ctx)
	return err
}

// tell changes the record of a session, on its main branch.
func (s *Server) tell(ctx context.Context, x session, sender string, info adapter.SessionInfo) error {
	return s.note(ctx, x.main, sender, adapter.TypeSession, info, branch.Ext{})
}

var noExt branch.Ext

// note stores an envelope in a branch's side log.
func (s *Server) note(ctx context.Context, channelID, sender, eventType string, body any, ext branch.Ext) error {
	data, err := marshal(body)
	if err != nil {
		return err
	}
	return s.noteRaw(ctx, channelID, sender, eventType, data, ext)
}

func (s *Server) noteRaw(ctx context.Context, channelID, sender, eventType string, data []byte, ext branch.Ext) error {
	ext.Server = true
	_, err := s.hub.AdmitSide(ctx, &envelope.Envelope{
		Channel: channelID, Sender: sender, Type: eventType, Data: data, Ext: ext.Bytes(), Priority: envelope.Normal,
	}, trusted).Wait(ctx)
	return err
}

// touch records activity in a session. The activity has already happened, so an
// error is only logged.
func (s *Server) touch(ctx context.Context, x session) {
	sender, err := s.user(ctx)
	if err == nil {
		err = s.tell(ctx, x, sender, adapter.SessionInfo{Active: s.now()})
	}
	if err != nil && !hub.Deleted(err) {
		s.log.Warn("session's last activity not stored", "error", err)
	}
}

func (s *Server) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }

// nodes returns the input for the computation of the tree.
func nodes(all []adapter.Summary) []branch.Node {
	list := make([]branch.Node, len(all))
	for i, b := range all {
		list[i] = branch.Node{ID: b.Branch, Fork: b.Fork, Order: int64(i)}
	}
	return list
}

// opening returns the parameters for opening a branch.
func opening(x session, who Who, creator, id string) hub.Opening {
	return hub.Opening{
		By: caller(who, creator), Creator: creator, Type: adapter.Type, Home: x.home, Name: id, Dialect: dialectName,
		Knobs: adapter.Knobs{Session: x.id, Branch: id}.Bytes(),
	}
}
