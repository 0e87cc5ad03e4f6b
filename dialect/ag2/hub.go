package ag2

import (
	"context"
	"iter"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/turns"
	"github.com/parley-hub/parley/task"
)

// Hub is the part of the hub that the dialect uses; *hub.Hub implements it.
type Hub interface {
	Register(ctx context.Context, r hub.Registration) (hub.Profile, error)
	Unregister(ctx context.Context, id string) error
	Authenticate(ctx context.Context, name, scheme string, claim []byte) (hub.Profile, error)
	Agent(nameOrID string) (hub.Profile, error)
	AgentByID(id string) (hub.Profile, error)
	FindAgent(name string) (id string, ok bool)
	Name(id string) string
	Agents(ctx context.Context, q hub.AgentQuery) ([]hub.Profile, error)
	MayList(who string) error
	Listed(who string, bytes int)
	Reading(who string) *turns.Turn
	Details(ctx context.Context, id string) (hub.Details, error)
	SetResume(ctx context.Context, id string, resume *identity.Resume) error
	SetSkill(ctx context.Context, id string, skill *string) error
	SetRule(ctx context.Context, id string, rule *identity.Rule) error

	As(by *hub.Caller) hub.Access

	Bind(agent string, at hub.Endpoint) error
	BindReplaying(ctx context.Context, agent string, at hub.Endpoint, since string) error
	Unbind(at hub.Endpoint, agents ...string)
	Bound(agent string) (endpointID string, ok bool)
	Ack(ctx context.Context, agent, channelID, envelopeID string) error
	Nack(agent, channelID, envelopeID, reason string)

	Open(ctx context.Context, o hub.Opening) (hub.Opened, error)
	Channel(ctx context.Context, id string) (*channel.Metadata, error)
	Channels(ctx context.Context, o hub.ListOptions) (list []*channel.Metadata, next string, err error)
	CloseChannel(ctx context.Context, id, reason string) (*channel.Metadata, error)
	AdapterFor(m *channel.Metadata) channel.Adapter
	Members(ctx context.Context, channelID string) (channel.Members, error)
	Cursor(ctx context.Context, agent, channelID string) (string, error)
	Say(ctx context.Context, s hub.Saying, by *hub.Caller) *hub.Pending
	Admit(ctx context.Context, e *envelope.Envelope, by *hub.Caller) *hub.Pending
	AdmitRun(ctx context.Context, list []*envelope.Envelope, by *hub.Caller) (p *hub.Pending, n int)
	CanSend(ctx context.Context, channelID, sender, eventType string) (bool, error)
	Sight(ctx context.Context, channelID string, agents []string) (func(*envelope.Envelope) bool, error)
	Log(ctx context.Context, channelID string, from, to uint64) iter.Seq2[*envelope.Envelope, error]
	Length(ctx context.Context, channelID string) (uint64, error)
	SequenceOf(ctx context.Context, channelID, envelopeID string) (uint64, error)
	AnswerTo(ctx context.Context, channelID, sender, cause string) (*envelope.Envelope, error)
	Turns(ctx context.Context, agent string) ([]hub.Turn, error)
	Task(ctx context.Context, id string) (*task.Task, error)
	Tasks(ctx context.Context, q hub.TaskQuery) (list []*task.Task, next string, err error)
	ObserveTask(ctx context.Context, t task.Task, by *hub.Caller, mirror hub.Mirror) error
	UpdateTask(ctx context.Context, u task.Update, by *hub.Caller, mirror hub.Mirror) error
	RecordObservation(ctx context.Context, o hub.Observation) error
	FireTaskEvent(ctx context.Context, taskID, kind string, payload []byte) error
	CheckpointTask(ctx context.Context, taskID string, state []byte, as string, by *hub.Caller) error
	TaskCheckpoint(ctx context.Context, taskID string, by *hub.Caller) ([]byte, error)
	ReportTurnFailure(ctx context.Context, channelID, agent, envelopeID, kind, message string) error
	Audit(ctx context.Context, kind string, record map[string]any) error
}
