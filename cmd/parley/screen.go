package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-hub/parley/server/dialect"
)

// started describes a hub that has started.
type started struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	URL     string `json:"url"`
	Console string `json:"console,omitempty"`
	Agents  string `json:"agents,omitempty"` // address for clients with the label agents
	// Also are addresses that work from other machines.
	Also   []string `json:"also,omitempty"`
	Listen string   `json:"listen"`
	Data   string   `json:"data"`
	Keys   int      `json:"keys"`
	Access string   `json:"access"`
	// Dialects are the addresses for clients of the other dialects, by label.
	Dialects map[string]string `json:"dialects,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	// Cluster names the cluster and the node.
	Cluster string `json:"cluster,omitempty"`

	terminal bool // the output is a terminal
}

// add adds the lines of a dialect.
func (s *started) add(b dialect.Banner) {
	switch {
	case b.URL == "":
	case b.Label == "agents":
		s.Agents = b.URL
	default:
		if s.Dialects == nil {
			s.Dialects = map[string]string{}
		}
		s.Dialects[b.Label] = b.URL
	}
	s.Warnings = append(s.Warnings, b.Warnings...)
}

// write writes the start-up screen: addresses, and what to try next. If the output is
// not a terminal, it writes plain lines.
func (s started) write(w io.Writer) error {
	if !s.terminal {
		fmt.Fprintf(w, "Parley %s is running (pid %d)\n", s.Version, s.PID)
		for _, l := range s.lines() {
			fmt.Fprintf(w, "%s: %s\n", l[0], l[1])
		}
		return nil
	}
	fmt.Fprintf(w, "\n  Parley %s is running (pid %d)\n\n", s.Version, s.PID)
	for _, l := range s.lines() {
		fmt.Fprintf(w, "    %-7s %s\n", l[0], l[1])
	}
	fmt.Fprint(w, "\n  Try next:\n")
	fmt.Fprintf(w, "    curl %s/readyz\n", s.URL)
	if s.Keys == 0 && s.Cluster == "" {
		fmt.Fprintf(w, "    %s keys add --role operator%s    makes the first key; from then on only its holder is operator\n", program(), s.folder())
	}
	fmt.Fprintf(w, "    %s config show    tells every setting and where it comes from\n", program())
	_, err := fmt.Fprint(w, "\n  Stop with Ctrl+C.\n\n")
	return err
}

// lines returns the addresses, each with its name.
func (s started) lines() [][2]string {
	var list [][2]string
	add := func(name string, values ...string) {
		for _, value := range values {
			if value != "" {
				list = append(list, [2]string{name, value})
			}
		}
	}
	add("hub", s.URL)
	add("also", s.Also...)
	add("console", s.Console)
	add("agents", s.Agents)
	for _, label := range slices.Sorted(maps.Keys(s.Dialects)) {
		add(label, s.Dialects[label])
	}
	add("cluster", s.Cluster)
	add("data", s.Data)
	add("access", s.Access)
	add("warning", s.Warnings...)
	return list
}

// folder returns the flag with which another command uses the same folder.
func (s started) folder() string {
	if s.Data == allSettings.Default().Data.Dir {
		return ""
	}
	return " --data " + s.Data
}

// program returns how the user called this program, as far as that is known: the go
// command runs it from a temporary folder.
func program() string {
	if path, err := os.Executable(); err == nil && isGoRun(path) {
		return "go run ./cmd/parley"
	}
	return "parley"
}

// cached matches the cache of the go command, wherever GOCACHE is.
var cached = regexp.MustCompile(`[/\\][0-9a-f]{2}[/\\][0-9a-f]{64}-d[/\\][^/\\]+$`)

// isGoRun reports whether go run started the program at path: from a new folder the
// first time, from its cache later.
func isGoRun(path string) bool {
	return strings.Contains(path, string(os.PathSeparator)+"go-build") || cached.MatchString(path)
}

// nodeScreen writes the screen of a node of a cluster, which may serve later.
func (a *app) nodeScreen(n *node, url string) error {
	data := started{
		Version: thisBuild().Version, PID: os.Getpid(), URL: url, Listen: n.door.Addr().String(), Data: n.cfg.Data.Dir,
		Access:   "of the node that serves; parley cluster status tells which that is",
		Cluster:  fmt.Sprintf("node %s of %s on %s", nodeName(n.cfg), n.cfg.Cluster.Name, shownServers(n.cfg.Cluster)),
		Warnings: n.warnings, terminal: isTerminal(a.out),
	}
	return a.print(data, data.write)
}
