package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/scale"
)

// killable is a hub of a scene that can be killed and started again. Each time
// it listens on another port.
type killable struct {
	*scene
	t   *testing.T
	cmd *exec.Cmd
	url string
}

func (k *killable) start() {
	k.t.Helper()
	cmd, out := k.command(context.Background(), "parley", "serve", "-o", "json")
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	out.await(k.t, `"url":"`)
	_, rest, _ := strings.Cut(out.String(), `"url":"`)
	k.url, _, _ = strings.Cut(rest, `"`)
	k.cmd = cmd
}

func (k *killable) kill() {
	k.t.Helper()
	if err := k.cmd.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	_ = k.cmd.Wait() // it was killed: there is no other end
}

// awaitOutput runs a line until it says something.
func (k *killable) awaitOutput(t *testing.T, line, text string) {
	t.Helper()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	late := time.After(startTimeout)
	for {
		got := k.output(t, line)
		if strings.Contains(got, text) {
			return
		}
		select {
		case <-poll.C:
		case <-late:
			t.Fatalf("%s never said %s: %s", line, text, got)
		}
	}
}

// TestTailAcrossCrashes tails a channel, and follows the group it is in, while
// the hub is killed and started again, and again: what is printed is what is
// exported, without gap and without repeat.
func TestTailAcrossCrashes(t *testing.T) {
	t.Parallel()
	k := &killable{scene: newScene(t, false), t: t}
	k.start()
	t.Cleanup(func() { k.kill() })
	for _, name := range []string{"alice", "parrot"} {
		k.background(t, "takes part", "parley", "agent", "script", name, "quiet.yaml")
	}
	var ch v1.Channel
	opened := k.output(t, "parley channels open conversation parrot --as alice --label team=red -o json")
	if err := json.Unmarshal([]byte(opened), &ch); err != nil {
		t.Fatal(err)
	}
	tail, printed := k.command(t.Context(), "parley", "tail", ch.ID)
	beside := &output{said: make(chan struct{}, 1)}
	tail.Stderr = beside
	if err := tail.Start(); err != nil {
		t.Fatal(err)
	}
	group := make(chan []string, 1)
	go func() { group <- k.followGroup(t) }()
	printed.await(t, "ag2.channel.opened")

	words, crashes := scale.N(60), 3
	speaker, told := k.command(t.Context(), "bash", "-c", fmt.Sprintf(
		`for i in $(seq %d); do until parley send %s "word $i." --as alice --key $i; do sleep 0.02; done; done`, words, ch.ID))
	if err := speaker.Start(); err != nil {
		t.Fatal(err)
	}
	for crash := range crashes {
		printed.await(t, fmt.Sprintf("word %d.", words*(crash+1)/(crashes+1)))
		k.kill()
		beside.await(t, "parley: the hub does not answer; waiting for it (")
		k.start()
	}
	for _, name := range []string{"alice", "parrot"} { // who looks again where the hub is
		k.awaitOutput(t, "parley agents show "+name+" -o json", `"online":true`)
	}
	if err := speaker.Wait(); err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	k.output(t, "parley channels close "+ch.ID)
	if err := tail.Wait(); err != nil {
		t.Fatalf("tail ended with %v: %s", err, printed)
	}
	want := strings.TrimSpace(k.output(t, "parley export "+ch.ID))
	if got := strings.TrimSpace(printed.String()); got != want {
		t.Errorf("tail printed\n%s\nthe log is\n%s", got, want)
	}
	if n := strings.Count(want, "\n") + 1; n < words+4 {
		t.Errorf("only %d envelopes", n)
	}
	var ids []string
	for line := range linesOf(want) {
		var ev v1.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, ev.ID)
	}
	if got := <-group; !slices.Equal(got, ids) {
		t.Errorf("the group was followed as\n%v\nthe log is\n%v", got, ids)
	}
}

// followGroup collects the ids of what happens in channels with a label until
// one is closed, looking for the hub wherever it listens.
func (k *killable) followGroup(t *testing.T) (ids []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	a := &app{environ: append(os.Environ(), "PARLEY_DATA_DIR="+k.dir+"/parley-data")}
	find := func() string {
		c := a.channelsList()
		if err := c.ParseFlags(nil); err != nil {
			return ""
		}
		hub, err := a.findHub(&hubFlags{settings: &settingsFlags{flags: c.Flags()}}, v1.Options{})
		if err != nil {
			return ""
		}
		return hub.URL()
	}
	hub, err := v1.New(find(), v1.Options{Relocate: func() (string, *http.Client) { return find(), nil }})
	if err != nil {
		t.Error(err)
		return nil
	}
	ended := false
	err = hub.Follow(ctx, "/v1/events?label=team%3Dred", "", func(f v1.Frame) error {
		ev, err := v1.ParseEvent(f.Data)
		if err != nil {
			return err
		}
		if f.Name != "envelope" {
			return fmt.Errorf("a frame named %s: %s", f.Name, f.Data)
		}
		ids = append(ids, ev.ID)
		if ended = ev.Type == "ag2.channel.closed"; ended {
			return v1.ErrStop
		}
		return nil
	})
	if err != nil || !ended {
		t.Errorf("the group ended with %v", err)
	}
	return ids
}
