package branch

import (
	"bytes"
	"hash/fnv"
	"slices"
	"unicode/utf8"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view/branch"
)

// counter tracks which of the latest events began a message. It holds only the last
// ids, so a message that continues after that many others is counted twice.
type counter struct {
	recent  [recentIDs]uint64 // hashes of message ids
	next    int
	pending []pendingCall // calls between their start and their end
	user    string        // the first message of a user, until its text is known
	last    []byte        // `"messageId":"…"` of the message that is growing
}

// pendingCall is a call whose message may begin with the end of the call.
type pendingCall struct {
	Call    uint64 `json:"call"`
	Message uint64 `json:"message"`
}

const (
	recentIDs    = 64
	pendingCalls = 64
	// firstText is how many runes of the first text are kept; a display name shows
	// fewer.
	firstText = 64
)

func hashOf(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return max(h.Sum64(), 1)
}

// messages folds an event that may begin a message or add text to one. It returns s
// itself if nothing changes, which is the case for nearly every delta.
func (s *State) messages(name string, e *envelope.Envelope) *State {
	switch name {
	case branch.TextDelta, branch.ReasoningDelta:
		if s.count.last != nil && (s.count.user == "" || s.FirstText != "") && bytes.Contains(e.Data, s.count.last) {
			return s
		}
		return s.delta(name, e)
	case branch.ToolCallStart:
		return s.callStarted(e.Data)
	case branch.ToolCallEnd:
		return s.callEnded(e)
	case branch.ToolCallResult:
		id, _ := member(e.Data, "messageId")
		if id == "" {
			call, _ := member(e.Data, "callId")
			if call == "" {
				return s
			}
			id = "tool-" + call
		}
		return s.seen(hashOf(id), "", e)
	}
	id, _ := member(e.Data, "messageId")
	if id == "" {
		return s
	}
	next := s.seen(hashOf(id), id, e)
	if name == branch.MessageStarted && s.FirstText == "" && s.count.user == "" {
		if role, _ := member(e.Data, "role"); role == branch.RoleUser {
			next = next.clone(s)
			next.count.user = id
		}
	}
	return next
}

func (s *State) delta(name string, e *envelope.Envelope) *State {
	id, _ := member(e.Data, "messageId")
	text, isText := member(e.Data, "text")
	if id == "" || !isText {
		return s
	}
	next := s.seen(hashOf(id), id, e)
	if name == branch.TextDelta && s.FirstText == "" && s.count.user == id && text != "" {
		next = next.clone(s)
		next.FirstText, next.count.user = cut(text, firstText), ""
	}
	return next
}

// cut returns the first runes of a text.
func cut(text string, runes int) string {
	for i := range text {
		if runes--; runes < 0 {
			return text[:i]
		}
	}
	if !utf8.ValidString(text) {
		return ""
	}
	return text
}

// seen counts a message once. The id, if given, is that of the message to which
// deltas now belong.
func (s *State) seen(hash uint64, id string, e *envelope.Envelope) *State {
	known := slices.Contains(s.count.recent[:], hash)
	last := s.count.last
	if id != "" {
		last = lastOf(id)
	}
	if known && bytes.Equal(last, s.count.last) {
		return s
	}
	next := s.clone(nil)
	next.count.last = last
	if !known {
		next.Messages++
		next.Active = e.CreatedAt
		next.count.recent[next.count.next] = hash
		next.count.next = (next.count.next + 1) % recentIDs
	}
	return next
}

// lastOf returns how a payload of the dialect names a message. An id that needs
// escapes has no such form and is decoded instead.
func lastOf(id string) []byte {
	for i := range len(id) {
		if id[i] < 0x20 || id[i] == '"' || id[i] == '\\' || id[i] >= 0x7f {
			return nil
		}
	}
	return []byte(`"messageId":"` + id + `"`)
}

func (s *State) callStarted(data []byte) *State {
	call, _ := member(data, "callId")
	if call == "" {
		return s
	}
	id, _ := member(data, "messageId")
	if id == "" {
		id = "call-" + call
	}
	made := pendingCall{hashOf(call), hashOf(id)}
	next := s.clone(nil)
	next.count.pending = slices.DeleteFunc(slices.Clone(s.count.pending), func(p pendingCall) bool { return p.Call == made.Call })
	next.count.pending = append(next.count.pending, made)
	if extra := len(next.count.pending) - pendingCalls; extra > 0 {
		next.count.pending = slices.Delete(next.count.pending, 0, extra)
	}
	return next
}

func (s *State) callEnded(e *envelope.Envelope) *State {
	call, _ := member(e.Data, "callId")
	i := slices.IndexFunc(s.count.pending, func(p pendingCall) bool { return p.Call == hashOf(call) })
	if i < 0 {
		return s
	}
	next := s.seen(s.count.pending[i].Message, "", e).clone(s)
	next.count.pending = slices.Delete(slices.Clone(s.count.pending), i, i+1)
	if len(next.count.pending) == 0 {
		next.count.pending = nil
	}
	return next
}

// clone copies a state, unless it is a copy of the given one already.
func (s *State) clone(of *State) *State {
	if of != nil && s != of {
		return s
	}
	c := *s
	return &c
}
