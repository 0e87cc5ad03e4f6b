//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"go.yaml.in/yaml/v3"

	"github.com/parley-hub/parley/server/config"
)

// TestClusterPage runs the commands of docs/cluster.md, on servers of this machine.
func TestClusterPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	n := &nodes{t: t, ctx: t.Context(), dir: t.TempDir(), servers: startServers(t), list: map[string]*nodeProcess{}}
	here := strings.NewReplacer("nats://a:4222,b:4222,c:4222", n.servers.URL(), "http://a:8222,http://b:8222,http://c:8222", strings.Join(n.servers.Monitors(), ","))
	environ := []string{"PARLEY_CLUSTER_SUSPECT=2400ms"}
	ran := map[string]int{}
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if set, ok := strings.CutPrefix(line, "export "); ok {
			environ = append(environ, here.Replace(set))
		}
		args := strings.Fields(line)
		if len(args) < 2 || args[0] != "parley" {
			continue
		}
		what := strings.Join(args[1:min(3, len(args))], " ")
		ran[what]++
		switch {
		case what == "cluster dev": // TestExamples
		case args[1] == "serve":
			n.fromPage(environ, args[1:])
		default:
			code, out, errs := call(t, environ, args[1:]...)
			if code != exitFine {
				t.Errorf("%s: exit %d: %s%s", line, code, out, errs)
			}
			if what == "cluster move" && n.serves("") != args[3] {
				t.Errorf("%s does not serve", args[3])
			}
		}
	}
	for _, what := range []string{"cluster init", "serve --node-name", "cluster status", "cluster move"} {
		if ran[what] == 0 {
			t.Errorf("the page has no line with parley %s", what)
		}
	}
}

// fromPage starts nodes a, b and c with the line for a, on loopback without TLS.
func (n *nodes) fromPage(environ, args []string) {
	n.t.Helper()
	c, _, err := (&app{}).root().Find(args)
	if err != nil || c.ParseFlags(args[1:]) != nil {
		n.t.Fatalf("%v: %v", args, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		n.launch(name, environ, "--node-name", name, "--data", filepath.Join(n.dir, name), "--listen", "127.0.0.1:0")
	}
	n.serves("")
}

// TestFirstKeyInAContainer: our container image has no folder for temporary files. The
// first key is made in the data folder then; if that cannot be written to either, no
// stream is made, so that the command can be given again.
func TestFirstKeyInAContainer(t *testing.T) {
	t.Parallel()
	servers, dir := startServers(t), t.TempDir()
	initialize := func(data string) (string, error) {
		c := exec.CommandContext(t.Context(), "parley", "cluster", "init", "--operator-key", "--shards", "1", "--data", data, //nolint:gosec // itself
			"--cluster", servers.URL(), "--set", "cluster.monitor="+strings.Join(servers.Monitors(), ","))
		c.Env = append(os.Environ(), "TMPDIR="+filepath.Join(dir, "nowhere"))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := initialize("/dev/null/data"); err == nil || !strings.Contains(out, "TMPDIR or --data") {
		t.Errorf("without any folder: %v: %s", err, out)
	}
	if out, err := initialize(filepath.Join(dir, "data")); err != nil || !strings.Contains(out, "shown once: parley_") {
		t.Errorf("%v: %s", err, out)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "data")); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, %v", left, err)
	}
}

// TestClusterFiles: the NATS configuration to copy is one that nodes accept, and the
// compose file names commands and settings that exist.
func TestClusterFiles(t *testing.T) {
	t.Parallel()
	conf, err := os.ReadFile("../../examples/cluster/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(conf), "$NATS_NAME", "a")), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !opts.JetStream || !opts.SyncAlways || opts.HTTPPort != 8222 || len(opts.Routes) != 3 || opts.ServerName != "a" {
		t.Errorf("nats.conf says %+v", opts)
	}

	raw, err := os.ReadFile("../../examples/cluster/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Image       string            `yaml:"image"`
			Command     []string          `yaml:"command"`
			Environment map[string]string `yaml:"environment"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal(raw, &compose); err != nil {
		t.Fatal(err)
	}
	nodes := 0
	for name, s := range compose.Services {
		if s.Image != "parley" {
			continue
		}
		nodes++
		c, rest, err := (&app{}).root().Find(s.Command)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		src := config.Sources{}
		for key, value := range s.Environment {
			src.Environ = append(src.Environ, key+"="+value)
		}
		set, err := allSettings.Load(src)
		if err != nil || len(set.Cluster.URL) != 3 || len(set.Cluster.Monitor) != 3 {
			t.Errorf("%s: %v, %+v", name, err, set)
		}
	}
	if nodes != 4 {
		t.Errorf("%d services run parley", nodes)
	}
}
