package hub_test

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// agent is an identity with an endpoint within the process. It acks invitations.
type agent struct {
	r    *rig
	id   string
	name string

	mu     sync.Mutex
	got    []*hub.Notice
	shy    bool // leaves invitations unanswered
	replay func()
	broken error
	cut    error // why the hub ended it
	busy   sync.WaitGroup
}

// agent registers an identity and binds it. Extra options edit its passport,
// resume and rule.
func (r *rig) agent(name string, edit ...func(*hub.Registration)) *agent {
	r.t.Helper()
	resume, rule := identity.DefaultResume(), identity.DefaultRule()
	reg := hub.Registration{
		Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}, Version: 1},
		Resume:   &resume, Rule: &rule,
	}
	for _, e := range edit {
		e(&reg)
	}
	p, err := r.Register(context.Background(), reg)
	if err != nil {
		r.t.Fatal(err)
	}
	a := &agent{r: r, id: p.ID(), name: name}
	r.agents = append(r.agents, a)
	if err := r.Bind(a.id, a); err != nil {
		r.t.Fatal(err)
	}
	return a
}

// human does the same as agent, for a person.
func (r *rig) human(name string, edit ...func(*hub.Registration)) *agent {
	r.t.Helper()
	return r.agent(name, append(edit, func(reg *hub.Registration) { reg.Passport.Kind = identity.Human })...)
}

// ID implements hub.Endpoint.
func (a *agent) ID() string { return "endpoint-" + a.id }

// Deliver implements hub.Endpoint.
func (a *agent) Deliver(n *hub.Notice) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken != nil {
		return a.broken
	}
	a.got = append(a.got, n)
	if n.Envelope.Type == envelope.TypeInvite && !a.shy {
		h := a.r.Hub
		a.busy.Go(func() {
			_, _ = h.Post(context.Background(), invitation(a, n.Envelope.Channel, envelope.TypeInviteAck), nil)
		})
	}
	return nil
}

// Replay implements hub.Endpoint.
func (a *agent) Replay(_ context.Context, n *hub.Notice) error {
	a.mu.Lock()
	replay := a.replay
	a.mu.Unlock()
	if replay != nil {
		replay()
	}
	return a.Deliver(n)
}

// CutOff implements hub.Endpoint.
func (a *agent) CutOff(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut = why
}

func invitation(a *agent, channelID, answer string) *envelope.Envelope {
	return &envelope.Envelope{Channel: channelID, Sender: a.id, Type: answer, Data: []byte(`{"channel_id":"` + channelID + `"}`)}
}

// ignoreInvites makes the agent leave invitations unanswered.
func (a *agent) ignoreInvites() *agent {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shy = true
	return a
}

// replaying calls do before each notice that is replayed to the agent.
func (a *agent) replaying(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replay = do
}

// fail makes every further delivery to the agent fail; nil ends that.
func (a *agent) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = err
}

// inbox returns the deliveries so far, once none is pending.
func (a *agent) inbox() []*envelope.Envelope {
	a.r.settle()
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]*envelope.Envelope, len(a.got))
	for i, n := range a.got {
		list[i] = n.Envelope
	}
	return list
}

// received returns the types of the deliveries so far.
func (a *agent) received() []string { return types(a.inbox()) }

// clear removes the deliveries so far.
func (a *agent) clear() {
	a.r.settle()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = nil
}
