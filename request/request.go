// Package request describes something that waits for an answer: an approval, a
// permission, a question. It is the same in every dialect. The package holds
// no state and does no I/O; the hub stores requests in the channels where they
// are asked.
package request

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
)

// Types of the side envelopes of requests.
const (
	TypeRequest   = envelope.TypeRequest
	TypeAnswer    = envelope.TypeAnswer
	TypeExpired   = envelope.TypeRequestExpired
	TypeCancelled = envelope.TypeRequestCancelled
)

// Kinds that the hub's own surfaces know. Any other name is accepted too.
const (
	Approval      = "approval"
	Permission    = "permission"
	Clarification = "clarification"
	Continuation  = "continuation"
	ClientTool    = "client_tool"
)

// State is where a request is. It is open until it is answered, expires or is
// cancelled, and then changes no more.
type State string

// States.
const (
	Open      State = "open"
	Answered  State = "answered"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// States lists every state.
func States() []State { return []State{Open, Answered, Expired, Cancelled} }

// Valid reports whether s is one of the states.
func (s State) Valid() bool { return slices.Contains(States(), s) }

// Request is something that waits for an answer. The asker fills in the
// question; id, time of asking, state, digest, answer and the fields after it
// are the hub's.
type Request struct {
	ID      string    `json:"request_id"`
	Kind    string    `json:"kind"`
	Channel string    `json:"channel_id"`
	AskedBy string    `json:"asked_by"`
	For     string    `json:"for,omitzero"` // whom it is asked; empty: any person of the channel
	AskedAt time.Time `json:"asked_at"`
	DueAt   time.Time `json:"due_at,omitzero"` // zero: it waits until its channel ends
	// IfNobodyAnswers is the choice that the asker takes when the request expires.
	IfNobodyAnswers string `json:"if_nobody_answers,omitzero"`
	// AgentsMayAnswer lets an agent answer what is asked of a person.
	AgentsMayAnswer bool   `json:"agents_may_answer,omitzero"`
	State           State  `json:"state"`
	Reason          string `json:"reason,omitzero"` // why it was cancelled

	Title   string   `json:"title"`
	Body    string   `json:"body,omitzero"`
	Action  *Action  `json:"action,omitzero"`
	Choices []Choice `json:"choices,omitzero"` // none: the answer is a text
	Trigger *Trigger `json:"trigger,omitzero"`
	Run     string   `json:"run_id,omitzero"` // the run with which it is cancelled
	// Ext is a dialect's own: a JSON object that other surfaces do not show.
	Ext jsontext.Value `json:"ext,omitzero"`

	Answer  *Answer  `json:"answer,omitzero"`
	Similar *Similar `json:"similar,omitzero"`

	// EndedAt is when the request was answered, expired or was cancelled. It is
	// stored with the end, and not shown.
	EndedAt time.Time `json:"-"`
}

// Action is what happens if the request is granted.
type Action struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
	Digest    string         `json:"digest,omitzero"` // of name and arguments; the hub computes it
}

// Choice is one of the answers. An id that is "approve" or "deny", or begins
// with one of these and an underscore, counts as a decision of that kind.
type Choice struct {
	ID          string `json:"id"`
	Label       string `json:"label,omitzero"`
	Consequence string `json:"consequence,omitzero"`
}

// Trigger is the envelope that the request comes from.
type Trigger struct {
	Envelope string `json:"envelope_id"`
	Seq      uint64 `json:"sequence,omitzero"`
}

// Answer is an answer, and who gave it.
type Answer struct {
	Choice   string         `json:"choice,omitzero"`
	Text     string         `json:"text,omitzero"`
	Note     string         `json:"note,omitzero"` // why, for those who read it later
	By       By             `json:"by"`
	At       time.Time      `json:"at"`
	Envelope string         `json:"envelope_id"`
	Ext      jsontext.Value `json:"ext,omitzero"` // a dialect's own
}

// By is who answered: the key or connection, besides the agent that it acted
// for. All are empty for the program that embeds the hub.
type By struct {
	Agent      string `json:"agent_id,omitzero"`
	Key        string `json:"key,omitzero"`
	Connection string `json:"connection,omitzero"`
}

// Similar counts earlier decisions on requests of the same kind, by the same
// asker, for the same action.
type Similar struct {
	Approved int       `json:"approved"`
	Denied   int       `json:"denied"`
	Last     time.Time `json:"last,omitzero"`
}

// Approves reports whether a choice grants what was asked.
func Approves(choice string) bool { return decides(choice, "approve") }

// Denies reports whether a choice refuses what was asked.
func Denies(choice string) bool { return decides(choice, "deny") }

func decides(choice, word string) bool {
	return choice == word || strings.HasPrefix(choice, word+"_")
}

// Outcome returns the choice that counts: the answer's, or IfNobodyAnswers. A
// request that is open or cancelled has none.
func (r *Request) Outcome() string {
	switch {
	case r.Answer != nil:
		return r.Answer.Choice
	case r.State == Expired:
		return r.IfNobodyAnswers
	}
	return ""
}

// Same reports whether two answers say the same.
func (a *Answer) Same(b *Answer) bool { return a.Choice == b.Choice && a.Text == b.Text }

// Offers reports whether a choice is one of the request's.
func (r *Request) Offers(choice string) bool {
	return slices.ContainsFunc(r.Choices, func(c Choice) bool { return c.ID == choice })
}

// digest returns the digest of an action, so that only the action that was
// shown is granted.
func (a *Action) digest() string {
	arguments := slices.Clone(a.Arguments)
	if len(arguments) > 0 {
		if err := arguments.Canonicalize(); err != nil {
			arguments = a.Arguments
		}
	}
	sum := sha256.Sum256(slices.Concat([]byte(a.Name), []byte{0}, arguments))
	return "sha256:" + hex.EncodeToString(sum[:])
}
