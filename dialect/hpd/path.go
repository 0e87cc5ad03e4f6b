package hpd

import (
	"net/url"
	"slices"
	"strings"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
)

// path is a parsed request path. Ids may contain slashes, encoded or not:
// everything between `branches` and the verb is the id.
type path struct {
	surface wire.Surface
	agent   string
	session string
	branch  string
	// route is the pattern of the path, such as
	// /agents/{}/sessions/{}/branches/{}/runs/{}. Both surfaces have the same
	// patterns.
	route string
	// item is the last id: that of a run or a content.
	item string
}

// verbs are the suffixes that may follow a branch's id: words, and {} for an id.
var verbs = [][]string{
	{"events", "live"},
	{"events", "stream"},
	{"events"},
	{"inputs"},
	{"interrupt"},
	{"responses"},
	{"requests"},
	{"stream"},
	{"ws"},
	{"fork"},
	{"siblings"},
	{"runs", "active"},
	{"runs", "{}", "complete"},
	{"runs", "{}"},
	{"runs"},
	{"content", "{}"},
	{"content"},
	{"permissions", "respond"},
	{"continuation", "respond"},
	{"clarifications", "respond"},
	{"client-tools", "respond"},
}

// sessionWords are the words that end a session's id.
var sessionWords = []string{"branches", "threads", "content", "thread-graph"}

// parsePath parses a path, in its escaped form and without the prefix. It
// returns false if no route matches.
func parsePath(escaped string) (path, bool) {
	raw := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	segments := make([]string, len(raw))
	for i, s := range raw {
		text, err := url.PathUnescape(s)
		if err != nil || s == "" {
			return path{}, false
		}
		segments[i] = text
	}
	switch raw[0] {
	case "sessions":
		return parseSessions(path{}, "", raw, segments)
	case "agents":
		return parseAgents(raw, segments)
	case "openapi.json":
		return path{route: "/openapi.json"}, len(raw) == 1
	}
	return path{}, false
}

func parseAgents(raw, segments []string) (path, bool) {
	if len(raw) == 1 {
		return path{route: "/agents"}, true
	}
	p := path{agent: segments[1]}
	switch {
	case len(raw) == 2:
		p.route = "/agents/{}"
		return p, true
	case len(raw) == 3 && raw[2] == "work":
		p.route = "/agents/{}/work"
		return p, true
	case raw[2] == "sessions":
		p, ok := parseSessions(p, "/agents/{}", raw[2:], segments[2:])
		return p, ok && strings.Contains(p.route, "branches")
	}
	return path{}, false
}

// parseSessions reads the rest of a path from `sessions` on.
func parseSessions(p path, before string, raw, segments []string) (path, bool) {
	if len(raw) == 1 {
		p.route = before + "/sessions"
		return p, before == ""
	}
	end := 2
	for end < len(raw) && !slices.Contains(sessionWords, raw[end]) {
		end++
	}
	p.session = strings.Join(segments[1:end], "/")
	p.route = before + "/sessions/{}"
	if end == len(raw) {
		return p, true
	}
	word, raw, segments := raw[end], raw[end+1:], segments[end+1:]
	switch word {
	case "thread-graph":
		p.route += "/thread-graph"
		return p, len(raw) == 0
	case "content":
		p.route += "/content"
		p.branch = wire.MainBranch
		if len(raw) == 1 {
			p.route, p.item = p.route+"/{}", segments[0]
		}
		return p, len(raw) <= 1
	case "threads":
		p.surface = wire.Threads
	}
	p.route += "/branches"
	return parseBranch(p, raw, segments)
}

// parseBranch reads the rest of a path after `branches`: an id of one segment or
// more, and a verb.
func parseBranch(p path, raw, segments []string) (path, bool) {
	if len(raw) == 0 {
		return p, true
	}
	for _, verb := range verbs {
		if item, ok := endsIn(raw, segments, verb); ok {
			p.branch = strings.Join(segments[:len(segments)-len(verb)], "/")
			p.route += "/{}/" + strings.Join(verb, "/")
			p.item = item
			return p, true
		}
	}
	p.branch = strings.Join(segments, "/")
	p.route += "/{}"
	return p, true
}

// endsIn reports whether a path ends in a verb, with an id before it.
func endsIn(raw, segments, verb []string) (item string, ok bool) {
	at := len(raw) - len(verb)
	if at < 1 {
		return "", false
	}
	for i, word := range verb {
		switch {
		case word == "{}":
			item = segments[at+i]
		case raw[at+i] != word:
			return "", false
		}
	}
	return item, true
}

// givenID returns the id of a body unchanged, or "" if it is blank.
func givenID(id *string) string {
	if strings.TrimSpace(deref(id)) == "" {
		return ""
	}
	return *id
}

// checkSessionID returns an error if no path could name a new session's id.
func checkSessionID(id string) error {
	if err := wire.CheckID("session", id); err != nil {
		return err
	}
	p, ok := parsePath("/sessions/" + id)
	if !ok || p.session != id || p.route != "/sessions/{}" || id == "search" {
		return errVerb("session", id)
	}
	return nil
}

// checkBranchID returns an error if no path could name a new branch's id.
func checkBranchID(id string) error {
	if err := wire.CheckID("branch", id); err != nil {
		return err
	}
	last := id[strings.LastIndexByte(id, '/')+1:]
	p, ok := parsePath("/sessions/s/branches/" + id)
	isVerb := slices.ContainsFunc(verbs, func(verb []string) bool { return verb[len(verb)-1] == last })
	if !ok || p.branch != id || p.route != "/sessions/{}/branches/{}" || isVerb {
		return errVerb("branch", id)
	}
	return nil
}

func errVerb(what, id string) error {
	return fault.New(fault.Invalid, "%s id %.60q ends in a word of a route, so no path could name it; choose another", what, id)
}
