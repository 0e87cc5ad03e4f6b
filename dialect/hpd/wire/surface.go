package wire

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/view/branch"
)

// Surface is one of the two sets of names under which everything is served.
// Internally everything has the first names; a surface only renames requests and
// responses.
type Surface uint8

// Surfaces.
const (
	Branches Surface = iota
	Threads
)

// Segment returns the surface's segment of a path.
func (s Surface) Segment() string {
	if s == Threads {
		return "threads"
	}
	return "branches"
}

func (s Surface) branchID() string {
	if s == Threads {
		return "threadId"
	}
	return "branchId"
}

// threadMembers are the members that have another name on the thread surface.
var threadMembers = map[string]string{
	"branchId": "threadId", "newBranchId": "newThreadId", "sourceBranchId": "sourceThreadId",
	"originalBranchId": "originalThreadId", "childBranches": "childThreads", "branchMetadata": "threadMetadata",
	"parentBranchId": "parentThreadId",
}

// Member returns a surface's name of a member of a body.
func (s Surface) Member(name string) string {
	if other, ok := threadMembers[name]; ok && s == Threads {
		return other
	}
	return name
}

// memberAliases are names that are accepted besides the canonical ones, on both
// surfaces.
var memberAliases = func() map[string]string {
	found := map[string]string{
		"streamId":                 "eventFlowId",
		"toolharnessName":          "toolHarnessName",
		"harnessName":              "toolHarnessName",
		"modelReducedMessageIds":   "modelCompactedMessageIds",
		"durableRemovedMessageIds": "durableCompactedMessageIds",
	}
	for canonical, other := range threadMembers {
		found[other] = canonical
	}
	return found
}()

// baseAliases are the aliases of base fields, which any event may have.
var baseAliases = map[string]bool{"streamId": true, "threadId": true}

// renamedPayloads are the types whose payload has members with another name on the
// thread surface, each with the member whose own members are renamed too.
var renamedPayloads = map[string]string{
	branch.BranchCreated:                   "branchMetadata",
	branch.BranchForked:                    "",
	branch.BranchMetadataUpdated:           "branchMetadata",
	branch.BranchTreeUpdated:               "",
	branch.ToolCallBackgroundTaskStarted:   "invocation",
	branch.ToolCallBackgroundTaskCompleted: "invocation",
	branch.ToolCallBackgroundTaskCancelled: "invocation",
	branch.ToolCallBackgroundTaskFaulted:   "invocation",
}

func renameMembers(name string, payload []byte) []byte {
	if name == branch.MiddlewareStateSnapshot || name == branch.MiddlewareStateChanged {
		return renameScopes(name, payload)
	}
	below, ok := renamedPayloads[name]
	if !ok {
		return payload
	}
	return rename(payload, threadMembers, below)
}

// Body renames the members of a route's body, or of each object of a list, for
// the surface. Nested members keep their names, except the metadata that names
// a parent.
func (s Surface) Body(data []byte) []byte {
	if s == Branches {
		return data
	}
	return rename(data, threadMembers, "metadata")
}

// Canonical renames the members of a request's body from either surface.
func Canonical(data []byte) []byte { return rename(data, memberAliases, "metadata") }

// rename writes a JSON object, or each object of a list, with other member names,
// also within the member that below names. It returns unreadable data unchanged:
// the parser reports what is wrong.
func rename(data []byte, names map[string]string, below string) []byte {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	if d.PeekKind() == '[' {
		return renameList(data, names, below)
	}
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return data
	}
	out, written := append(make([]byte, 0, len(data)), '{'), map[string]bool{}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return data
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return data
		}
		nested := []byte(value)
		if below != "" && name == below && value.Kind() == '{' {
			nested = rename(bytes.Clone(value), names, "")
		}
		if other, ok := names[name]; ok {
			name = other
		}
		if written[name] {
			continue // a body may have a member under both names
		}
		written[name] = true
		if len(out) > 1 {
			out = append(out, ',')
		}
		if out, err = jsontext.AppendQuote(out, name); err != nil {
			return data
		}
		out = append(append(out, ':'), nested...)
	}
	if !ends(d, data) {
		return data
	}
	return append(out, '}')
}

// ends reports whether nothing but the end of a value is left.
func ends(d *jsontext.Decoder, data []byte) bool {
	_, err := d.ReadToken()
	return err == nil && len(bytes.TrimLeft(data[d.InputOffset():], " \t\r\n")) == 0
}

func renameList(data []byte, names map[string]string, below string) []byte {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	if _, err := d.ReadToken(); err != nil {
		return data
	}
	out := append(make([]byte, 0, len(data)), '[')
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return data
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, rename(bytes.Clone(value), names, below)...)
	}
	if !ends(d, data) {
		return data
	}
	return append(out, ']')
}

// Code returns the surface's form of a problem's code.
func (s Surface) Code(code string) string {
	if s == Branches {
		return code
	}
	if strings.HasPrefix(code, "BidirectionalResponse") {
		return strings.Replace(code, "BidirectionalResponse", "RequestResponse", 1)
	}
	code = strings.Replace(code, "Branches", "Threads", 1)
	return strings.Replace(code, "Branch", "Thread", 1)
}

// renameScopes turns the state scope Branch into Thread.
func renameScopes(name string, payload []byte) []byte {
	var event Payload
	switch name {
	case branch.MiddlewareStateSnapshot:
		var e MiddlewareStateSnapshot
		if json.Unmarshal(payload, &e) != nil {
			return payload
		}
		for i := range e.States {
			e.States[i].Scope = threadScope(e.States[i].Scope)
		}
		event = e
	default:
		var e MiddlewareStateChanged
		if json.Unmarshal(payload, &e) != nil {
			return payload
		}
		for i := range e.Changes {
			e.Changes[i].Scope = threadScope(e.Changes[i].Scope)
		}
		event = e
	}
	if out, err := json.Marshal(event, json.Deterministic(true)); err == nil {
		return out
	}
	return payload
}

func threadScope(scope StateScope) StateScope {
	if scope == BranchScope {
		return "Thread"
	}
	return scope
}
