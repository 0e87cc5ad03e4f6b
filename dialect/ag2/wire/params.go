package wire

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/identity"
)

// Parameters of the operations, the same for both sides. A field marked required
// must be present; null is its zero value, which is the default.

type (
	// RegisterParams are those of register.
	RegisterParams struct {
		Passport *identity.Passport `json:"passport" wire:"required"`
		Resume   *identity.Resume   `json:"resume" wire:"required"`
		Skill    *string            `json:"skill_md"`
		Rule     *identity.Rule     `json:"rule"`
	}
	// NameOrID are the parameters of get_agent.
	NameOrID struct {
		NameOrID string `json:"name_or_id" wire:"required"`
	}
	// ByName are the parameters of find_agent_id.
	ByName struct {
		Name string `json:"name" wire:"required"`
	}
	// ByAgent are the parameters of operations on one identity.
	ByAgent struct {
		Agent string `json:"agent_id" wire:"required"`
	}
	// NamesForParams are those of names_for.
	NamesForParams struct {
		Agents []string `json:"agent_ids" wire:"required"`
	}
	// ListAgentsParams are those of list_agents.
	ListAgentsParams struct {
		Capability string        `json:"capability"`
		Query      string        `json:"query"`
		Kind       identity.Kind `json:"kind"`
		SortBy     string        `json:"sort_by"`
		Limit      *Index        `json:"limit"`
	}
	// SetResumeParams are those of set_resume.
	SetResumeParams struct {
		Agent  string           `json:"agent_id" wire:"required"`
		Resume *identity.Resume `json:"resume" wire:"required"`
	}
	// SetSkillParams are those of set_skill; without a text the skill is deleted.
	SetSkillParams struct {
		Agent string  `json:"agent_id" wire:"required"`
		Skill *string `json:"skill_md"`
	}
	// SetRuleParams are those of set_rule.
	SetRuleParams struct {
		Agent string         `json:"agent_id" wire:"required"`
		Rule  *identity.Rule `json:"rule" wire:"required"`
	}
)

type (
	// CreateChannelParams are those of create_channel.
	CreateChannelParams struct {
		Creator         string            `json:"creator_id" wire:"required"`
		ManifestType    string            `json:"manifest_type" wire:"required"`
		ManifestVersion *int              `json:"manifest_version"`
		Participants    []string          `json:"participants" wire:"required"`
		RequiredAcks    *int              `json:"required_acks"`
		TTL             *identity.TTL     `json:"ttl"`
		Knobs           identity.Object   `json:"knobs"`
		Intent          string            `json:"intent"`
		Labels          map[string]string `json:"labels"`
	}
	// ByChannel are the parameters of get_channel.
	ByChannel struct {
		Channel string `json:"channel_id" wire:"required"`
	}
	// ListChannelsParams are those of list_channels.
	ListChannelsParams struct {
		Agent string `json:"agent_id"`
		Limit *Index `json:"limit"`
	}
	// CloseChannelParams are those of close_channel.
	CloseChannelParams struct {
		Channel string `json:"channel_id" wire:"required"`
		Reason  string `json:"reason"`
	}
	// ReadWALParams are those of read_wal: a slice by index.
	ReadWALParams struct {
		Channel string `json:"channel_id" wire:"required"`
		Since   Index  `json:"since"`
		Until   *Index `json:"until"`
	}
	// CausationParams are those of find_envelope_by_causation.
	CausationParams struct {
		Channel   string `json:"channel_id" wire:"required"`
		Sender    string `json:"sender_id" wire:"required"`
		Causation string `json:"causation_id" wire:"required"`
	}
	// CanSendParams are those of can_send.
	CanSendParams struct {
		Channel string `json:"channel_id" wire:"required"`
		Sender  string `json:"sender_id" wire:"required"`
		Type    string `json:"event_type"`
	}
	// TurnFailureParams are those of report_turn_failure.
	TurnFailureParams struct {
		Channel  string `json:"channel_id" wire:"required"`
		Agent    string `json:"agent_id" wire:"required"`
		Envelope string `json:"envelope_id" wire:"required"`
		Error    string `json:"error"`
	}
)

type (
	// ByTask are the parameters of operations on one task.
	ByTask struct {
		Task string `json:"task_id" wire:"required"`
	}
	// ListTasksParams are those of list_tasks.
	ListTasksParams struct {
		Owner   string `json:"agent_id"`
		Channel string `json:"channel_id"`
		State   string `json:"state"`
		Limit   *Index `json:"limit"`
	}
	// ObserveTaskParams are those of observe_task.
	ObserveTaskParams struct {
		Metadata *Task `json:"metadata" wire:"required"`
	}
	// UpdateTaskParams are those of update_task; null members do not change.
	UpdateTaskParams struct {
		Task     string          `json:"task_id" wire:"required"`
		State    string          `json:"state"`
		Progress identity.Object `json:"progress"`
		Result   jsontext.Value  `json:"result"`
		Error    string          `json:"error"`
	}
	// ObservationParams are those of record_observation.
	ObservationParams struct {
		Owner      string           `json:"owner_id" wire:"required"`
		Capability string           `json:"capability" wire:"required"`
		Outcome    identity.Outcome `json:"outcome" wire:"required"`
		LatencyMS  *Millis          `json:"latency_ms"`
		Task       string           `json:"task_id"`
	}
	// TaskEventParams are those of fire_task_event.
	TaskEventParams struct {
		Task    string          `json:"task_id" wire:"required"`
		Kind    string          `json:"kind" wire:"required"`
		Payload identity.Object `json:"payload"`
	}
	// CheckpointParams are those of checkpoint_task.
	CheckpointParams struct {
		Task  string         `json:"task_id" wire:"required"`
		State jsontext.Value `json:"state" wire:"required"`
	}
)

// Index is a place in a list, or its length. Python's integers have no bounds, and
// its slices take any of them: what is too large is as large as can be.
type Index int64

// UnmarshalJSONFrom reads a whole number of any size.
func (i *Index) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '0' {
		return json.UnmarshalDecode(dec, (*int64)(i))
	}
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("a whole number is wanted, not %s", value)
	}
	*i = Index(n)
	return nil
}

// Millis are whole milliseconds. A fraction, which the difference of two clock
// readings in Python has, is rounded.
type Millis int64

// UnmarshalJSONFrom reads a number.
func (m *Millis) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var n float64
	if err := json.UnmarshalDecode(dec, &n); err != nil {
		return err
	}
	if math.Abs(n) >= 1<<63 {
		return errors.New("a latency has fewer than 2^63 milliseconds")
	}
	*m = Millis(math.Round(n))
	return nil
}

// form keeps the bytes of opaque values as they were sent.
var form = json.JoinOptions(
	identity.Codec(envelope.FormatTimeAG2),
	jsontext.PreserveRawStrings(true),
)

// DecodeParams reads the parameters of a request into a pointer to one of the
// structs above. Unknown keys are dropped; the error for a missing required key
// contains the key in quotes.
func DecodeParams(raw []byte, params any) error {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if err := valid(raw); err != nil {
		return err
	}
	if err := required(raw, reflect.TypeOf(params).Elem()); err != nil {
		return err
	}
	return identity.Explain("params", json.Unmarshal(raw, params, form))
}

// EncodeParams writes the parameters of a request.
func EncodeParams(params any) ([]byte, error) { return json.Marshal(params, form) }

// required returns an error for the first required member that a request does not
// have. It reads the parameters once: they may be as long as a frame.
func required(raw []byte, t reflect.Type) error {
	var wanted []string
	for field := range t.Fields() {
		if field.Tag.Get("wire") == "required" {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			wanted = append(wanted, key)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	err := members(raw, func(name, _ []byte) error {
		wanted = slices.DeleteFunc(wanted, func(key string) bool { return string(name) == key })
		return nil
	})
	if err == nil && len(wanted) > 0 {
		err = missing(wanted[0])
	}
	return err
}

// EncodePost writes the parameters of a post_envelope request.
func EncodePost(e *envelope.Envelope) []byte {
	buf := append([]byte(nil), `{"envelope":`...)
	buf = AppendEnvelope(buf, e)
	return append(buf, '}')
}
