package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// TestTwoMachines types what docs/agh.md shows for two machines: both are this one,
// with certificates for localhost that SSL_CERT_FILE names.
func TestTwoMachines(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/agh.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(raw), "## Two machines")
	var shown []string
	for _, b := range blocks.FindAllStringSubmatch(page, -1) {
		if b[1] == "console" {
			shown = append(shown, b[2])
		}
	}
	if len(shown) != 2 {
		t.Fatalf("the page shows %d ways", len(shown))
	}
	t.Run("one hub brings NATS", func(t *testing.T) {
		t.Parallel()
		dir := certified(t, "north")
		script := fmt.Sprintf("export PARLEY_AGH_GREET_INTERVAL=2s SSL_CERT_FILE=%s/north.pem\nNATS=127.0.0.1:4222\nmkdir north south\ncp %[1]s/* north\n", dir)
		here := strings.NewReplacer("0.0.0.0:", "127.0.0.1:", "north.example:4222", "localhost:${NATS##*:}", "TOKEN=…", "TOKEN=$(cat ../north/parley-data/nats-token)")
		for line := range linesOf(shown[0]) {
			where, command, _ := strings.Cut(line, "$ ")
			switch {
			case strings.HasPrefix(command, "parley keys add "):
				script += fmt.Sprintf("TOKEN=$(cd %s && %s | sed -n 's/^token  *//p')\n", where, here.Replace(command))
			default:
				script += fmt.Sprintf("(cd %s && PARLEY_HTTP_LISTEN=127.0.0.1:7441 %s > hub.log 2>&1) &\n", where, here.Replace(command))
				script += fmt.Sprintf("until [ -s %s/hub.log ] && grep -q running %[1]s/hub.log; do sleep 0.1; done\n", where)
			}
		}
		script += `(cd north && PARLEY_TOKEN=$TOKEN parley agh join --workspace ws_harbor --channel dock --agent crane)
(cd south && parley agh join --workspace ws_harbor --channel dock --agent tug)
until (cd south && parley agh peers --workspace ws_harbor) | grep '^crane.* dock .* active'; do sleep 0.1; done
`
		if out, err := typed(t, script); err != nil || !strings.Contains(out, "\ncrane.") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("a NATS server of yours", func(t *testing.T) {
		t.Parallel()
		dir := certified(t, "broker")
		parts := strings.Split(shown[1], "$ ") // one for each command, and what it prints
		if len(parts) != 4 || !strings.HasPrefix(parts[1], "cat nats.conf\n") || parts[2] != "nats-server -c nats.conf\n" {
			t.Fatalf("the page shows %q", parts)
		}
		conf := strings.NewReplacer("4222", "-1", "…", "open-sesame-1", "broker.", dir+"/broker.").Replace(strings.TrimPrefix(parts[1], "cat nats.conf\n"))
		file := filepath.Join(dir, "nats.conf")
		if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		opts, err := server.ProcessConfigFile(file)
		if err != nil {
			t.Fatal(err)
		}
		opts.NoLog, opts.NoSigs, opts.Host = true, true, "127.0.0.1"
		broker, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		broker.Start()
		t.Cleanup(func() { broker.Shutdown(); broker.WaitForShutdown() })
		if !broker.ReadyForConnections(startTimeout) {
			t.Fatal("the NATS server does not start")
		}
		_, port, _ := strings.Cut(broker.Addr().String(), ":")
		serve := strings.NewReplacer("TOKEN=…", "TOKEN=open-sesame-1", "broker.example:4222", "localhost:"+port).Replace(strings.TrimSpace(parts[3]))
		script := fmt.Sprintf("export SSL_CERT_FILE=%s/broker.pem\n%s > hub.log 2>&1 &\n", dir, serve)
		script += "until parley agh status 2> wait.log | grep '^network *running'; do sleep 0.1; done\n"
		if out, err := typed(t, script); err != nil || !strings.Contains(out, "running") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// certified is a folder with a certificate for localhost, NAME.pem and NAME.key.
func certified(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := writeCertificate(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")); err != nil {
		t.Fatal(err)
	}
	return dir
}
