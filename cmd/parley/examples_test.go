package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/client/hpd"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/request"
	"github.com/parley-hub/parley/server/folder"
	"github.com/parley-hub/parley/task"
)

// example is what a command's example needs, beside the files every scene has.
type example struct {
	hub   bool   // a hub runs on the folder, with alice, parrot and a task
	alone bool   // it changes the scene for others
	until string // it stays until it is stopped: after it has printed this
	first string // run before
}

// examples by command. A command that is not listed needs nothing.
var examples = map[string]example{
	"parley serve":                {until: "is running"},
	"parley agent echo":           {hub: true, alone: true, until: "takes part as"},
	"parley agent exec":           {hub: true, alone: true, until: "takes part as"},
	"parley agent run":            {hub: true, alone: true, until: "takes part as", first: "export ANTHROPIC_API_KEY=sk-none OPENAI_API_KEY=sk-none; echo 'Be brief.' > triage.md; echo '{\"tools\":[{\"name\":\"clock\",\"command\":[\"date\"]}]}' > tools.json"},
	"parley agent script":         {hub: true, alone: true, until: "takes part as"},
	"parley agents add":           {hub: true, alone: true},
	"parley agents list":          {hub: true},
	"parley agents show":          {hub: true},
	"parley agents rule":          {hub: true, alone: true},
	"parley agents budget":        {hub: true, alone: true, first: "parley agents budget alice --budget-turns 9"},
	"parley agents remove":        {hub: true, alone: true},
	"parley audit":                {hub: true},
	"parley backup":               {hub: true},
	"parley chat":                 {hub: true, alone: true},
	"parley channels open":        {hub: true},
	"parley channels list":        {hub: true},
	"parley channels show":        {hub: true},
	"parley channels close":       {hub: true, alone: true},
	"parley channels why":         {hub: true, first: "WORKFLOW=$(parley channels open workflow parrot --graph talk.yaml --as alice -o json | sed 's/.*\"channel_id\":\"\\([^\"]*\\)\".*/\\1/'); parley send $WORKFLOW hello --as alice"},
	"parley channels state":       {hub: true},
	"parley join":                 {hub: true},
	"parley turns":                {hub: true},
	"parley stats":                {hub: true},
	"parley top":                  {hub: true},
	"parley channels delete":      {hub: true},
	"parley channels lint":        {hub: true},
	"parley channels messages":    {hub: true},
	"parley events":               {hub: true},
	"parley sessions list":        {hub: true},
	"parley sessions show":        {hub: true},
	"parley sessions fork":        {hub: true},
	"parley sessions delete":      {hub: true},
	"parley send":                 {hub: true},
	"parley tail":                 {hub: true, until: "ag2.channel.opened"},
	"parley export":               {hub: true, alone: true},
	"parley import":               {hub: true, alone: true, first: "parley export @latest --bundle incident.bundle"},
	"parley replay":               {hub: true, alone: true, first: "WORKFLOW=$(parley channels open workflow parrot --graph talk.yaml --as alice -o json | sed 's/.*\"channel_id\":\"\\([^\"]*\\)\".*/\\1/'); parley export $WORKFLOW --bundle incident.bundle; cp talk.yaml incident-v2.yaml"},
	"parley requests list":        {hub: true},
	"parley requests show":        {hub: true},
	"parley requests answer":      {hub: true},
	"parley context use":          {alone: true, first: aContext},
	"parley context show":         {alone: true, first: aContext},
	"parley context remove":       {alone: true, first: aContext},
	"parley console":              {hub: true},
	"parley tasks list":           {hub: true},
	"parley tasks show":           {hub: true},
	"parley tasks cancel":         {hub: true},
	"parley keys add":             {alone: true, first: "echo an-existing-token-of-bob > bob.token"},
	"parley keys list":            {hub: true},
	"parley keys revoke":          {alone: true, first: `KEY=$(parley keys add --role reader -o json | sed 's/.*"id":"\([^"]*\)".*/\1/')`},
	"parley data check":           {alone: true, first: aStore},
	"parley data stats":           {alone: true, first: aStore},
	"parley data salvage":         {alone: true, first: aStore},
	"parley restore":              {alone: true, first: aBackup},
	"parley cluster init":         {alone: true, first: aBackup},
	"parley cluster status":       {alone: true, first: aCluster},
	"parley cluster move":         {alone: true, first: aCluster + aNode + "; trap 'kill $pid; wait $pid' EXIT"},
	"parley cluster operator-key": {alone: true, first: aCluster + `; node=n1` + aNode + `; kill $pid; wait $pid`},
	"parley cluster reseed":       {alone: true, first: aCluster + `; node=n1` + aNode + `; kill $pid; wait $pid`},
	"parley cluster dev":          {alone: true, until: "is running"},
	"parley agh validate":         {first: "touch envelopes.jsonl"},
	"parley agh verify":           {first: "touch signed.jsonl"},
	"parley agh sign":             {alone: true, first: aKey + `; (umask 077; parley agh keys export mason --private > mason.json); sed 's/.*"handle":"\([^"]*\)".*/{"from":"\1"}/' mason.json > unsigned.jsonl`},
	"parley agh keys export":      {alone: true, first: aKey},
	"parley agh status":           {hub: true},
	"parley agh peers":            {hub: true, first: aHarbor},
	"parley agh channels list":    {hub: true, first: aHarbor},
	"parley agh channels create":  {hub: true, first: aHarbor},
	"parley agh threads list":     {hub: true, first: aHarbor},
	"parley agh threads show":     {hub: true, first: aHarbor},
	"parley agh threads messages": {hub: true, first: aHarbor},
	"parley agh directs list":     {hub: true, first: aHarbor},
	"parley agh directs resolve":  {hub: true, first: aHarbor},
	"parley agh directs show":     {hub: true, first: aHarbor},
	"parley agh directs messages": {hub: true, first: aHarbor},
	"parley agh work lookup":      {hub: true, first: aHarbor},
	"parley agh work status":      {hub: true, first: aHarbor},
	"parley agh send":             {hub: true, first: aHarbor},
	"parley agh inbox":            {hub: true, first: aHarbor},
	"parley agh done":             {hub: true, first: aHarbor},
	"parley agh join":             {hub: true},
	"parley agh leave":            {hub: true, alone: true, first: aHarbor},
	"parley completion":           {first: `mkdir -p ~/.config/fish/completions; fpath=(- "$PWD")`},
}

// aKey makes a key of AGH's; aHarbor a workspace in which two peers work; aBackup leaves a backup, and aStore a data folder
// that no hub uses.
const (
	aKey    = `parley agh keys new mason`
	aHarbor = `set -e
text() { sed 's/.*"'$1'":"\([^"]*\)".*/\1/'; }
dock='--workspace ws_harbor --channel dock'
parley agh join $dock --agent tug --peer tug.s02 || true
SESSION=$(parley agh join $dock --agent crane -o json | text session_id)
SENDER=$(parley agh join $dock --agent pilot -o json | text session_id)
DIRECT=$(parley agh directs resolve $dock --session $SESSION --peer tug.s02 -o json | text direct_id)
MESSAGE=$(parley agh send $dock --session $SENDER --surface thread --thread thread_tide_table --body '{"text":"High water at six."}' -o json | text id)
parley agh send $dock --session $SENDER --surface thread --thread thread_tide_table --to tug.s02 --work work_tide_1 --body '{"text":"Chart it."}' || true
`
	aCluster = `parley cluster init --cluster nats://a:4222,b:4222,c:4222 --shards 1`
	aNode    = `; node=${node:-n2}; parley serve --cluster nats://a:4222,b:4222,c:4222 --node-name $node --data ./$node > started & pid=$!
until parley cluster status --cluster nats://a:4222,b:4222,c:4222 | grep -q "node $node serves"; do sleep 0.05; done`
	aContext = `parley context add prod --hub http://127.0.0.1:7440`
	aHub     = `parley serve > started & pid=$!; until [ -s started ]; do sleep 0.05; done; `
	aStore   = aHub + `kill $pid; wait $pid`
	aBackup  = aHub + `parley backup ./backup-monday; kill $pid; wait $pid`
)

// TestExamples runs every line that a command's help shows.
func TestExamples(t *testing.T) {
	t.Parallel()
	shared := sync.OnceValue(func() *scene { return newScene(t, true) })
	var paths []string
	walk((&app{}).root(), func(c *cobra.Command) {
		if !c.Runnable() || c.HasSubCommands() || c.Name() == "help" {
			return
		}
		path := c.CommandPath()
		paths = append(paths, path)
		for line := range linesOf(c.Example) {
			t.Run(strings.TrimSpace(line), func(t *testing.T) {
				t.Parallel()
				needs := examples[path]
				s := shared
				if needs.alone || !needs.hub {
					s = func() *scene { return newScene(t, needs.hub) }
				}
				s().run(t, strings.TrimSpace(line), needs)
			})
		}
	})
	for path := range examples {
		if !slices.Contains(paths, path) {
			t.Errorf("there is no command %s", path)
		}
	}
}

// scene is a folder in which examples run.
type scene struct {
	dir string
	env []string
}

// sceneFiles are the files that examples name.
var sceneFiles = map[string]string{
	"lines.yaml":    "- say: Looks like the database.\n",
	"quiet.yaml":    "[]\n",
	"old.jsonl":     `{"role":"user","content":"hi"}` + "\n",
	"parley.yaml":   "log:\n  level: warn\n",
	"turns.yaml":    "turns:\n  - text: the disk is full\n  - finish: done\n",
	"bin/dot":       "#!/bin/sh\ncat\n", // stands for Graphviz
	"talk.yaml":     "participants: [alice, parrot]\ninitial_speaker: alice\ntransitions:\n  - when: {name: from_speaker, args: {agent_id: alice}}\n    then: {name: agent, args: {agent_id: parrot}}\n",
	"incident.yaml": "participants: [triage, digger]\ninitial_speaker: triage\ntransitions:\n  - when: {name: from_speaker, args: {agent_id: triage}}\n    then: {name: agent, args: {agent_id: digger}}\ndefault_target: {name: terminate, args: {reason: done}}\n",
}

func newScene(t *testing.T, hub bool) *scene {
	t.Helper()
	s := &scene{dir: t.TempDir()}
	for name, text := range sceneFiles {
		file := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.dir, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.env = []string{
		"HOME=" + s.dir, "PATH=" + filepath.Join(s.dir, "bin") + ":" + os.Getenv("PATH"),
		// A hub on the default port that is not the test's is never asked: the folder is named.
		"PARLEY_DATA_DIR=./parley-data",
		"PARLEY_HTTP_LISTEN=127.0.0.1:0", "GORACE=atexit_sleep_ms=0", "TMPDIR=" + s.dir,
	}
	if !hub {
		return s
	}
	s.background(t, "is running", "parley", "serve")
	s.background(t, "takes part", "parley", "agent", "script", "alice", "quiet.yaml")
	s.background(t, "takes part", "parley", "agent", "script", "parrot", "quiet.yaml")
	s.background(t, "takes part", "parley", "agent", "echo", "helper")
	s.task(t)
	return s
}

// background starts something for the time of the test and waits until it has
// said something.
func (s *scene) background(t *testing.T, says string, args ...string) {
	t.Helper()
	cmd, out := s.command(context.Background(), args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	})
	out.await(t, says)
}

func (s *scene) command(ctx context.Context, args ...string) (*exec.Cmd, *output) {
	binary := lookPath(os.Getenv("PATH"), args[0])
	out := &output{said: make(chan struct{}, 1)}
	cmd := exec.CommandContext(ctx, binary, args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, out, out
	return cmd, out
}

// output collects what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	said chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.said <- struct{}{}:
	default:
	}
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(startTimeout)
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.said:
		case <-late:
			t.Fatalf("never said %q: %s", text, o)
		}
	}
}

// task lets someone have the task that examples name.
func (s *scene) task(t *testing.T) {
	t.Helper()
	var shown struct {
		Passport struct {
			ID string `json:"agent_id"`
		} `json:"passport"`
	}
	if err := json.Unmarshal([]byte(s.output(t, "parley agents show alice -o json")), &shown); err != nil {
		t.Fatal(err)
	}
	var held struct {
		URL string `json:"url"`
	}
	raw, err := os.ReadFile(filepath.Join(s.dir, "parley-data", "parley.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &held); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	link, err := client.Dial(t.Context(), "ws"+strings.TrimPrefix(held.URL, "http"), client.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	who := identity.Passport{Name: "scanner", Auth: identity.Auth{Scheme: identity.SchemeNone}}
	scanner, err := link.Attach(t.Context(), client.Registration{Passport: who})
	if err != nil {
		t.Fatal(err)
	}
	ch, err := scanner.OpenChannel(t.Context(), agent.Opening{Type: "conversation", Participants: []string{shown.Passport.ID}})
	if err != nil {
		t.Fatal(err)
	}
	err = scanner.ObserveTask(t.Context(), &task.Task{ID: "scan-7", State: "running", Spec: task.Spec{Title: "scan"}, Channel: ch.ID})
	if err != nil {
		t.Fatal(err)
	}
}

// output runs a line that ends well.
func (s *scene) output(t *testing.T, line string) string {
	t.Helper()
	cmd, out := s.command(t.Context(), "bash", "-c", line)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return out.String()
}

// onServers lets a line find the NATS servers that examples name, with a cluster of
// its own.
func (s *scene) onServers(t *testing.T, line, first string) (string, string) {
	t.Helper()
	const one, all = "nats://a:4222 ", "nats://a:4222,b:4222,c:4222"
	if !strings.Contains(line, "nats://a:4222") {
		return line, first
	}
	servers := startServers(t)
	s.env = append(s.env, "PARLEY_CLUSTER_MONITOR="+strings.Join(servers.Monitors(), ","))
	if strings.HasPrefix(line, "parley serve") {
		first = aCluster
	}
	there := strings.NewReplacer(all, servers.URL(), one, servers.URL()+" ")
	return there.Replace(line), there.Replace(first)
}

// run runs an example; one that stays is stopped once it has said something.
func (s *scene) run(t *testing.T, line string, needs example) {
	t.Helper()
	line, needs.first = s.onServers(t, line, needs.first)
	if strings.Contains(line, "$CHANNEL") {
		var opened struct {
			ID string `json:"channel_id"`
		}
		if err := json.Unmarshal([]byte(s.output(t, "parley channels open conversation parrot --as alice -o json")), &opened); err != nil {
			t.Fatal(err)
		}
		line = "CHANNEL=" + opened.ID + "; " + line
	}
	if strings.Contains(line, "$REQUEST") {
		line = "REQUEST=" + s.ask(t) + "; " + line
	}
	if strings.Contains(line, "$SESSION") && needs.first == "" {
		session, message := s.session(t)
		line = "SESSION=" + session + "; MESSAGE=" + message + "; " + line
	}
	if needs.first != "" {
		line = needs.first + "\n" + line
	}
	if strings.Contains(line, "--follow") {
		needs.until = cmp.Or(map[bool]string{true: "BRANCH_TREE_UPDATED"}[strings.Contains(line, "parley events")], `"kind":`)
	}
	if needs.until == "" {
		s.output(t, line)
		return
	}
	cut := strings.LastIndex(line, "parley ")
	cmd, out := s.command(t.Context(), "bash", "-c", line[:cut]+"exec "+line[cut:])
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.await(t, needs.until)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: ended with %v: %s", line, err, out)
	}
}

// session leaves an HPD session with one message.
func (s *scene) session(t *testing.T) (id, message string) {
	t.Helper()
	holder, _, err := folder.Look(filepath.Join(s.dir, "parley-data"))
	if err != nil {
		t.Fatal(err)
	}
	hub, err := v1.New(holder.URL, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := hpd.New(hub).CreateSession(t.Context(), wire.CreateSession{})
	if err != nil {
		t.Fatal(err)
	}
	input := map[string]any{"type": "USER_MESSAGES_INPUT", "messages": []any{map[string]string{"messageId": "m-1", "text": "hi"}}}
	// Nobody answers for the person, and it is stored.
	err = hub.Call(t.Context(), "POST", "/hpd/agents/user/sessions/"+made.ID+"/branches/main/inputs", input, nil)
	if fault.CodeOf(err) != fault.Internal {
		t.Fatal(err)
	}
	return made.ID, "m-1"
}

// ask leaves a request that waits for an approval, and returns its id.
func (s *scene) ask(t *testing.T) string {
	t.Helper()
	holder, _, err := folder.Look(filepath.Join(s.dir, "parley-data"))
	if err != nil {
		t.Fatal(err)
	}
	hub, err := v1.New(holder.URL, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ch, err := hub.OpenChannel(t.Context(), v1.Opening{Type: "conversation", Creator: "alice", Participants: []string{"parrot"}})
	if err != nil {
		t.Fatal(err)
	}
	asked, err := hub.Ask(t.Context(), v1.Asking{Request: v1.Request{
		Kind: request.Approval, Channel: ch.ID, AskedBy: "alice", For: "parrot", Title: "Go on?", Choices: []request.Choice{{ID: "approve"}, {ID: "deny"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return asked.ID
}
