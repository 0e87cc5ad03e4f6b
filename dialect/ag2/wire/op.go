package wire

// Op is the name of an operation.
type Op string

// The 30 operations.
const (
	Register    Op = "register"
	GetAgent    Op = "get_agent"
	GetResume   Op = "get_resume"
	GetSkill    Op = "get_skill"
	GetRule     Op = "get_rule"
	FindAgentID Op = "find_agent_id"
	NamesFor    Op = "names_for"
	ListAgents  Op = "list_agents"
	SetResume   Op = "set_resume"
	SetSkill    Op = "set_skill"
	SetRule     Op = "set_rule"
	Unregister  Op = "unregister"

	CreateChannel           Op = "create_channel"
	GetChannel              Op = "get_channel"
	ListChannels            Op = "list_channels"
	CloseChannel            Op = "close_channel"
	PostEnvelope            Op = "post_envelope"
	ReadWAL                 Op = "read_wal"
	FindEnvelopeByCausation Op = "find_envelope_by_causation"
	CanSend                 Op = "can_send"
	PendingTurnsFor         Op = "pending_turns_for"
	ReportTurnFailure       Op = "report_turn_failure"

	GetTask            Op = "get_task"
	ListTasks          Op = "list_tasks"
	ObserveTask        Op = "observe_task"
	UpdateTask         Op = "update_task"
	RecordObservation  Op = "record_observation"
	FireTaskEvent      Op = "fire_task_event"
	CheckpointTask     Op = "checkpoint_task"
	ReadTaskCheckpoint Op = "read_task_checkpoint"
)

// Ops lists the operations.
func Ops() []Op {
	return []Op{
		Register, GetAgent, GetResume, GetSkill, GetRule, FindAgentID, NamesFor, ListAgents, SetResume, SetSkill, SetRule, Unregister,
		CreateChannel, GetChannel, ListChannels, CloseChannel, PostEnvelope, ReadWAL, FindEnvelopeByCausation, CanSend, PendingTurnsFor, ReportTurnFailure,
		GetTask, ListTasks, ObserveTask, UpdateTask, RecordObservation, FireTaskEvent, CheckpointTask, ReadTaskCheckpoint,
	}
}

// MirrorHeader is sent with the upgrade by clients that post their tasks to
// channels themselves; with MirrorOwn a hub does not do it for them.
const (
	MirrorHeader = "Parley-Mirror-Tasks"
	MirrorOwn    = "own"
)
