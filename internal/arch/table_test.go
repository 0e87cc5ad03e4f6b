package arch

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// anything marks the packages that put the others together.
const anything = "*"

// leaves are small packages without imports of ours that every row with an
// import may use besides what it names.
var leaves = []string{"fault", "internal/gate", "internal/jsonbuf", "internal/jsonscan", "internal/logsample", "internal/loop", "internal/openapi", "internal/pmap", "internal/scale", "internal/turns"}

// rows is the import table of docs/architecture.md. A row covers the package
// and those below it, unless a longer row does; below a row, packages may
// import each other. What a row names brings along what that may import.
// Test files are free, and so are packages made only for tests.
var rows = map[string][]string{
	"envelope":          {},
	"journal":           {},
	"message":           {},
	"fault":             {},
	"identity":          {"envelope"},
	"channel":           {"envelope", "message"},
	"graph":             {"envelope"},
	"task":              {"envelope"},
	"request":           {"envelope"},
	"view":              {"envelope", "channel", "message"},
	"adapter":           {"envelope", "channel", "graph", "view"},
	"hub":               {"journal", "identity", "channel", "task", "request"},
	"dialect/*/wire":    {"envelope", "identity", "channel", "task", "view"},
	"dialect/*":         {"./wire", "hub", "view", "message", "adapter", "internal/wsconn", "internal/sse", "internal/answers", "server/dialect", "server/config"},
	"client":            {"dialect/ag2/wire", "agent"},
	"client/v1":         {"envelope", "request"},
	"client/hpd":        {"client/v1", "dialect/hpd/wire"},
	"agent":             {"channel", "graph", "view", "message", "adapter", "task", "request"},
	"agent/embedded":    {"agent", "hub"},
	"schemas":           {},
	"server":            {anything},
	"server/config":     {},
	"server/dialect":    {},
	"console":           {anything},
	"cmd":               {anything},
	"bench":             {anything},
	"internal":          {},
	"internal/bench":    {anything},
	"internal/balancer": {"journal"},
	"internal/bundle":   {"envelope", "channel"},
	"internal/replay":   {"internal/bundle"},
	"internal/demo":     {"client", "client/v1", "client/hpd", "graph", "internal/scripted"},
	"internal/screen":   {"client/v1"},
	"internal/scripted": {"agent"},
	"internal/answers":  {"fault", "internal/turns"},
	"internal/turns":    {"fault"},
	"internal/wsconn":   {"fault"},
	"conformance":       {},

	"journal/cluster/natsservers": {"internal/freeport"},
}

// rowOf finds the longest row that covers a package.
func rowOf(pkg string) (string, bool) {
	for p := pkg; p != "."; p = path.Dir(p) {
		best := ""
		for row := range rows {
			ok, err := path.Match(row, p)
			if err == nil && ok && (best == "" || strings.Count(row, "*") < strings.Count(best, "*")) {
				best = row
			}
		}
		if best != "" {
			return best, true
		}
	}
	return "", false
}

// allowed lists the rows whose packages pkg may import, or anything.
func allowed(pkg string) []string {
	set := map[string]bool{}
	var add func(from string)
	add = func(from string) {
		row, _ := rowOf(from)
		for _, name := range rows[row] {
			if rest, own := strings.CutPrefix(name, "./"); own {
				name = strings.Join(strings.Split(from, "/")[:2], "/") + "/" + rest
			}
			if !set[name] {
				set[name] = true
				add(name)
			}
		}
	}
	add(pkg)
	if len(set) > 0 {
		for _, leaf := range leaves {
			set[leaf] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// mayImport reports whether a package may import another package of ours.
func mayImport(pkg, imported string) bool {
	mine, _ := rowOf(pkg)
	theirs, _ := rowOf(imported)
	if mine == theirs && (!strings.Contains(mine, "*") || sameDialect(pkg, imported)) {
		return true
	}
	for _, name := range allowed(pkg) {
		if name == anything || imported == name || strings.HasPrefix(imported, name+"/") {
			return true
		}
	}
	return false
}

func sameDialect(a, b string) bool {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	return len(as) > 1 && len(bs) > 1 && as[1] == bs[1]
}
