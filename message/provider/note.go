package provider

import (
	"fmt"
	"slices"

	"github.com/parley-hub/parley/message/value"
)

// Kind says what happened to something that a provider's form cannot express.
type Kind string

// The kinds of a note.
const (
	Dropped Kind = "dropped" // it is left out
	Changed Kind = "changed" // it has another form
	Moved   Kind = "moved"   // it is at another place
	Added   Kind = "added"   // it was added
)

// The codes of notes, for programs.
const (
	NoteOrphan   = "orphan"    // a tool call or result without its partner
	NotePending  = "pending"   // a request for input or approval
	NoteError    = "error"     // an error message
	NoteDelta    = "delta"     // a fragment of a stream
	NoteRole     = "role"      // a role the provider does not know
	NoteName     = "name"      // a speaker's name
	NoteFile     = "file"      // a file that cannot be read or sent
	NoteMedia    = "media"     // media where the provider takes none
	NoteBlock    = "block"     // a content block of no known type
	NoteArgs     = "arguments" // a call's arguments that are not an object
	NoteID       = "id"        // a call id the provider would refuse
	NoteFailure  = "failure"   // the failure of a tool
	NoteResult   = "result"    // a part of a tool's answer that is not sent
	NoteOpaque   = "opaque"    // what another provider wants back verbatim
	NoteReason   = "reasoning" // readable reasoning
	NoteRefusal  = "refusal"   // a refusal that is sent as a plain text
	NoteOrder    = "order"     // the order of messages
	NoteOpening  = "opening"   // a first user turn
	NotePart     = "part"      // a part that is not a message
	NoteContinue = "previous"  // continuing from an earlier response
	NoteChoices  = "choices"   // further answers to one request
)

// Note describes something that a provider's form cannot express.
type Note struct {
	Index int // of the message in the list that was given; -1: of none
	Kind  Kind
	Code  string
	Text  string
}

// String returns the note for a reader.
func (n Note) String() string {
	if n.Index < 0 {
		return fmt.Sprintf("%s: %s", n.Kind, n.Text)
	}
	return fmt.Sprintf("message %d: %s: %s", n.Index, n.Kind, n.Text)
}

// Canonical returns the note as a map.
func (n Note) Canonical() *value.Map {
	return value.New().
		Set("index", value.Int(n.Index)).
		Set("kind", string(n.Kind)).
		Set("code", n.Code).
		Set("text", n.Text)
}

// MarshalJSON writes the note.
func (n Note) MarshalJSON() ([]byte, error) { return n.Canonical().MarshalJSON() }

// Notes collects notes while a mapping runs.
type Notes []Note

// Sorted returns the notes in the order of their messages.
func (l Notes) Sorted() []Note {
	slices.SortStableFunc(l, func(a, b Note) int { return a.Index - b.Index })
	return l
}

// Add adds a note, once.
func (l *Notes) Add(index int, kind Kind, code, format string, args ...any) {
	note := Note{Index: index, Kind: kind, Code: code, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(*l, note) {
		*l = append(*l, note)
	}
}
