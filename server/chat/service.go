package chat

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	adapter "github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	messages "github.com/parley-hub/parley/message/chat"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

// Config says how chats are run. Zero values are the defaults.
type Config struct {
	Store *Store
	// Hosted finds a definition that is run in this process by its name or id;
	// nil and false say that there is none.
	Hosted func(ctx context.Context, agent string) (Hosted, bool, error)
	// Runs is how many run at once (chat.runs): 256.
	Runs int
	// Timeout is how long a run may take (chat.timeout): 10 minutes.
	Timeout time.Duration
	Log     *slog.Logger
}

// Hosted answers turns in this process. Text that comes before the answer is
// passed to delta, and reset withdraws it.
type Hosted interface {
	Answer(ctx context.Context, turn messages.Turn, delta func(text string), reset func()) (any, error)
}

// Service runs the turns of sessions. A run belongs to the service, not to its
// caller: it continues when the caller disconnects, and after a restart.
type Service struct {
	cfg    Config
	hub    *hub.Hub
	store  *Store
	ctx    context.Context // of runs
	cancel context.CancelFunc
	slots  chan struct{}
	failed failures

	mu      sync.Mutex
	closing bool
	active  map[string]*running // by home and run
	done    sync.WaitGroup
}

// New makes a service. Resume continues what an earlier process left.
func New(cfg Config) *Service {
	cfg.Runs, cfg.Timeout = cmp.Or(cfg.Runs, 256), cmp.Or(cfg.Timeout, 10*time.Minute)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	s := &Service{cfg: cfg, hub: cfg.Store.hub, store: cfg.Store, slots: make(chan struct{}, cfg.Runs), active: map[string]*running{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.hub.Listen(&s.failed)
	return s
}

// Store returns where sessions are kept.
func (s *Service) Store() *Store { return s.store }

// Close stops the runs. They have no end in the log, so that the next process
// resumes them.
func (s *Service) Close() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.cancel()
	s.done.Wait()
}

func (s *Service) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// Request is a turn of a session.
type Request struct {
	Principal transcript.Principal
	Scope     transcript.Scope
	Agent     string         // name or id; empty: the session's
	Session   string         // empty: a new one
	Run       string         // the run's id: a repeated one gets the first answer
	Input     jsontext.Value // an object of chat.Dispatcher.Chat
}

// input decodes what is said.
func (r *Request) input() (any, error) {
	input, err := value.Decode(r.Input)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the request is not JSON: %v", err)
	}
	return input, nil
}

// Run is a run that was begun, by this request or an earlier one.
type Run struct {
	ID      string
	Session string
	Channel string // of the session
	Began   uint64 // the sequence at which it begins
	service *Service
	live    *running // nil: it has ended before
}

// running is a run of this process.
type running struct {
	begun  chan struct{} // closed when it is claimed or refused
	ended  chan struct{}
	began  uint64
	err    error // why it was refused, or could not be stored
	answer jsontext.Value
}

// Start begins a run, or finds it. It returns when the run is durable.
func (s *Service) Start(ctx context.Context, r Request) (*Run, error) {
	owner, ok := r.Principal.Owner()
	if !ok {
		return nil, fault.New(fault.AccessDenied, "the caller owns no sessions")
	}
	session, channelID, err := s.session(ctx, &r, owner)
	if err != nil {
		return nil, err
	}
	run := &Run{ID: r.Run, Session: session, Channel: channelID, service: s}
	if place, ok, err := s.place(ctx, channelID, r.Run); err != nil {
		return nil, err
	} else if ok && place.channel != channelID {
		return nil, fault.New(fault.AccessDenied, "run %.100q belongs to another session; choose a new id", r.Run)
	} else if ok && place.Ended > 0 {
		run.Began = place.Started
		return run, nil
	}
	if run.live, err = s.begin(channelID, r); err != nil {
		return nil, err
	}
	select {
	case <-run.live.begun:
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "gave up waiting; the run may still begin: %v", ctx.Err())
	}
	if run.live.began == 0 {
		if run.live.err == nil {
			return nil, fault.New(fault.Unavailable, "the run did not begin; try again")
		}
		return nil, refusal(run.live.err)
	}
	run.Began = run.live.began
	return run, nil
}

// session finds the session of a request, or makes it.
func (s *Service) session(ctx context.Context, r *Request, owner transcript.Owner) (id, channelID string, err error) {
	if r.Session == "" {
		if r.Agent, err = s.Agent(ctx, r.Agent); err != nil {
			return "", "", err
		}
		// A refusal leaves no session.
		input, err := r.input()
		if err == nil {
			err = refusal(messages.CheckInput(input))
		}
		if err != nil {
			return "", "", err
		}
		id, err = s.store.CreateFor(ctx, r.Run, r.Scope, owner, transcript.Create{AgentSlug: r.Agent})
		if err != nil {
			return "", "", err
		}
		channelID, err = s.store.find(ctx, id)
		r.Session = id
		return id, channelID, err
	}
	channelID, err = s.store.find(ctx, r.Session)
	if err != nil {
		return "", "", err
	}
	found, err := s.store.read(ctx, channelID, false)
	if errors.Is(err, transcript.ErrNotFound) || err == nil && !transcript.Owns(found.Summary(), r.Scope, owner) {
		return "", "", fault.New(fault.NotFound, "there is no session %.100q of yours", r.Session)
	}
	if err != nil {
		return "", "", err
	}
	r.Agent, err = s.Agent(ctx, cmp.Or(r.Agent, found.AgentSlug))
	return found.ID, channelID, err
}

// runPlace is where a run is.
type runPlace struct {
	adapter.RunPlace
	channel string
}

// begin runs a request, unless it is being run.
func (s *Service) begin(channelID string, r Request) (*running, error) {
	home := hub.HomeOf(channelID)
	key := home + "/" + r.Run
	s.mu.Lock()
	defer s.mu.Unlock()
	if live := s.active[key]; live != nil {
		return live, nil
	}
	if s.closing {
		return nil, fault.New(fault.Unavailable, "the hub is shutting down; try again")
	}
	own := 0
	for other := range s.active {
		if strings.HasPrefix(other, home+"/") {
			own++
		}
	}
	if share := max(1, cap(s.slots)/4); own >= share {
		return nil, fault.New(fault.Unavailable, "%d of your runs are under way, which is one owner's share (a quarter of chat.runs); try again", own)
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return nil, fault.New(fault.Unavailable, "%d runs are under way, which is the limit (chat.runs); try again", cap(s.slots))
	}
	live := &running{begun: make(chan struct{}), ended: make(chan struct{})}
	s.active[key] = live
	s.done.Go(func() {
		s.run(channelID, r, live)
		s.mu.Lock()
		delete(s.active, key)
		s.mu.Unlock()
		close(live.ended)
		<-s.slots
	})
	return live, nil
}

// Wait returns the answer to the run's client, once the run has ended.
func (r *Run) Wait(ctx context.Context) (jsontext.Value, error) {
	if r.live == nil {
		return r.service.answerOf(ctx, r.Channel, r.ID)
	}
	select {
	case <-r.live.ended:
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Unavailable, ctx.Err(), "gave up waiting; the run goes on: ask again with the same id")
	}
	if r.live.answer == nil && r.live.err == nil {
		return nil, fault.New(fault.Unavailable, "the hub is shutting down; the run goes on after it: ask again with the same id")
	}
	return r.live.answer, refusal(r.live.err)
}
