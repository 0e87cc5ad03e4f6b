package hpd

// Right is who may call a route, according to the table of routes. It is for
// documentation and tests.
type Right struct {
	Method, Path, Says      string
	Operator, Reader, Agent May
}

// May is what a caller may do with a route.
type May string

// Values of May.
const (
	No     May = "no"     // 403
	Yes    May = "yes"    // everything
	Theirs May = "theirs" // sessions that the caller created or in which a branch or run names it; others are 404
	Watch  May = "watch"  // reading, without writing
	Itself May = "itself" // for runs and work of that agent; others are 403
)

// Rights lists who may call each route, in the order of the table. Where keys
// are needed, a caller without one is refused with 401 everywhere.
func Rights() []Right {
	var list []Right
	for _, r := range new(Server).table() {
		path := openAPIPath(r.path)
		list = append(list, Right{r.method, path, r.says, Yes, r.need.reader(), r.agentMay()})
	}
	return list
}

func (n need) reader() May {
	switch n {
	case toRead:
		return Yes
	case toWatch:
		return Watch
	}
	return No
}

// agentMay returns what an agent's or a person's key allows: its own sessions, and
// outside of sessions everything that does not need an operator.
func (r *route) agentMay() May {
	switch {
	case r.need == toOperate:
		return No
	case r.need == toProduce:
		return Itself
	case ofSessions(r.path):
		return Theirs
	}
	return Yes
}

// ofSessions reports whether a route shows or changes sessions.
func ofSessions(path string) bool {
	return path != "/openapi.json" && path != "/agents" && path != "/agents/{}"
}
