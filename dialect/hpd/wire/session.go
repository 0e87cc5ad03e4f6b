package wire

import (
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// MainBranch is the branch that every session has.
const MainBranch = "main"

// Session is the JSON body of a session.
type Session struct {
	ID           string         `json:"id"`
	CreatedAt    time.Time      `json:"createdAt"`
	LastActivity time.Time      `json:"lastActivity"`
	Metadata     map[string]Raw `json:"metadata"` // written as {} if there is none
}

// Branch is the JSON body of a branch.
type Branch struct {
	ID                   string            `json:"id"`
	SessionID            string            `json:"sessionId"`
	Name                 string            `json:"name"`
	Description          *string           `json:"description,omitzero"`
	ForkedFrom           *string           `json:"forkedFrom,omitzero"`
	ForkedAtMessageID    *string           `json:"forkedAtMessageId,omitzero"`
	ForkedAtMessageIndex *int64            `json:"forkedAtMessageIndex,omitzero"`
	CreatedAt            time.Time         `json:"createdAt"`
	LastActivity         time.Time         `json:"lastActivity"`
	MessageCount         int64             `json:"messageCount"`
	Tags                 []string          `json:"tags,omitzero"`
	Ancestors            map[string]string `json:"ancestors,omitzero"`
	SiblingIndex         int64             `json:"siblingIndex"`
	TotalSiblings        int64             `json:"totalSiblings"`
	IsOriginal           bool              `json:"isOriginal"`
	OriginalBranchID     *string           `json:"originalBranchId,omitzero"`
	PreviousSiblingID    *string           `json:"previousSiblingId,omitzero"`
	NextSiblingID        *string           `json:"nextSiblingId,omitzero"`
	ChildBranches        []string          `json:"childBranches"`
	TotalForks           int64             `json:"totalForks"`
	Metadata             map[string]Raw    `json:"metadata,omitempty"`
}

// SetPlace fills in the tree fields.
func (b *Branch) SetPlace(p branch.Place) {
	b.ForkedFrom, b.ForkedAtMessageID, b.ForkedAtMessageIndex = p.ForkedFrom, p.ForkedAtMessageID, p.ForkedAtMessageIndex
	b.SiblingIndex, b.TotalSiblings, b.IsOriginal = p.SiblingIndex, p.TotalSiblings, p.IsOriginal
	b.OriginalBranchID, b.PreviousSiblingID, b.NextSiblingID = p.OriginalBranchID, p.PreviousSiblingID, p.NextSiblingID
	b.ChildBranches, b.TotalForks, b.Ancestors = p.ChildBranches, int64(len(p.ChildBranches)), p.Ancestors
}

// TreeUpdated returns the event that records a branch's place in the tree.
func TreeUpdated(p branch.Place) BranchTreeUpdated {
	return BranchTreeUpdated{
		ForkedFrom: p.ForkedFrom, ForkedAtMessageID: p.ForkedAtMessageID, ForkedAtMessageIndex: p.ForkedAtMessageIndex,
		SiblingIndex: p.SiblingIndex, TotalSiblings: p.TotalSiblings, IsOriginal: p.IsOriginal,
		OriginalBranchID: p.OriginalBranchID, PreviousSiblingID: p.PreviousSiblingID, NextSiblingID: p.NextSiblingID,
		ChildBranches: p.ChildBranches,
	}
}

// nameLength is the maximum length of a display name that is derived from a text.
const nameLength = 30

// DisplayName returns a branch's name for people: its name, else its description,
// else the first text of a user, else its id.
func DisplayName(name, description *string, firstUserText, id string) string {
	if text := strings.TrimSpace(deref(name)); text != "" {
		return text
	}
	for _, derived := range []string{deref(description), firstUserText} {
		if text := strings.TrimSpace(derived); text != "" {
			if runes := []rune(text); len(runes) > nameLength {
				return string(runes[:nameLength]) + "..."
			}
			return text
		}
	}
	return id
}

// Bodies of session and branch routes. Unknown members are ignored.
type (
	// CreateSession is the body of POST /sessions.
	CreateSession struct {
		SessionID *string        `json:"sessionId"`
		Metadata  map[string]Raw `json:"metadata"`
	}
	// SearchSessions is the body of POST /sessions/search.
	SearchSessions struct {
		Metadata map[string]Raw `json:"metadata"`
		Offset   *int64         `json:"offset"`
		Limit    *int64         `json:"limit"`
	}
	// UpdateSession is the body of PATCH /sessions/{id}: a null removes a key.
	UpdateSession struct {
		Metadata map[string]Raw `json:"metadata"`
	}
	// CreateBranch is the body of POST …/branches.
	CreateBranch struct {
		BranchID    *string        `json:"branchId"`
		Name        *string        `json:"name"`
		Description *string        `json:"description"`
		Tags        []string       `json:"tags"`
		Metadata    map[string]Raw `json:"metadata"`
	}
	// ForkBranch is the body of POST …/fork.
	ForkBranch struct {
		NewBranchID   *string        `json:"newBranchId"`
		FromMessageID *string        `json:"fromMessageId"`
		Name          *string        `json:"name"`
		Description   *string        `json:"description"`
		Tags          []string       `json:"tags"`
		Metadata      map[string]Raw `json:"metadata"`
	}
	// UpdateBranch is the body of PATCH …/branches/{id}: absent or null members do
	// not change, a null in metadata removes a key.
	UpdateBranch struct {
		Name        *string        `json:"name"`
		Description *string        `json:"description"`
		Tags        []string       `json:"tags"`
		Metadata    map[string]Raw `json:"metadata"`
	}
)

// DefaultSearchLimit is how many sessions a search returns.
const DefaultSearchLimit = 50

// MergeMetadata applies a change key by key; null removes one. It returns a
// new map.
func MergeMetadata(current, change map[string]Raw) map[string]Raw {
	merged := make(map[string]Raw, len(current)+len(change))
	maps.Copy(merged, current)
	for key, value := range change {
		if value.Kind() == 'n' {
			delete(merged, key)
		} else {
			merged[key] = value
		}
	}
	return merged
}

// MatchesMetadata reports whether every wanted key exists with the same value in
// its string form: 5 matches "5".
func MatchesMetadata(metadata, want map[string]Raw) bool {
	for key, value := range want {
		got, ok := metadata[key]
		if !ok || stringForm(got) != stringForm(value) {
			return false
		}
	}
	return true
}

func stringForm(value Raw) string {
	if value.Kind() == '"' {
		if text, ok := unquote(value); ok {
			return text
		}
	}
	out, err := appendLine(nil, value)
	if err != nil {
		return string(value)
	}
	return string(out)
}

var explicitID = regexp.MustCompile(`^[A-Za-z0-9._~/-]{1,200}$`)

// CheckID returns an error if a client could not put a session or branch id into a
// path unescaped.
func CheckID(what, id string) error {
	valid := explicitID.MatchString(id)
	for segment := range strings.SplitSeq(id, "/") {
		valid = valid && segment != "" && segment != "." && segment != ".."
	}
	if !valid {
		return fault.New(fault.Invalid, "%s id %.60q is not valid; it has 1 to 200 letters, digits and . _ ~ - /, without an empty, . or .. segment", what, id)
	}
	return nil
}
