package terminal

import (
	"strings"
	"testing"
)

// A person opens what waits for them, speaks, answers, and leaves.
func TestJoin(t *testing.T) {
	t.Parallel()
	h, channel := room(t)
	h.ask(channel, map[string]any{
		"kind": "approval", "asked_by": "parrot", "for": "hana", "title": "Sail \x1b[2J now?",
		"choices": []map[string]any{{"id": "approve"}, {"id": "deny"}},
	})
	w := openWindow(t, h, 80, 24, "join hana")
	w.shows("hana: 1 waiting", "request", `Sail \x1b[2J now?`)
	w.keys("Enter")
	w.shows("hana in harbour talk (conversation) with hana, parrot", "opened", "(/answer ", "anyone may speak")
	w.types("ahoy there")
	w.shows("> ahoy there")
	w.keys("Enter")
	w.shows("hana: ahoy there", "parrot: ahoy there")
	w.types("/answer approve fair wind")
	w.keys("Enter")
	w.shows("is answered")
	w.hides("request: Sail")
	if out := h.run("requests", "list", "--state", "answered", "-o", "json"); !strings.Contains(out, `"choice":"approve"`) || !strings.Contains(out, `"note":"fair wind"`) {
		t.Errorf("%s", out)
	}
	w.types("/dance")
	w.keys("Enter")
	w.shows("/dance is not a command", "> /dance")
	w.keys("C-u", "Escape")
	w.shows("Nothing waits for hana.", "harbour talk")
	w.keys("Enter")
	w.shows("hana in harbour talk")
	w.types("/leave")
	w.keys("Enter")
	w.shows("ended with 0")
	w.hides("harbour talk")
}

// An invitation is accepted; turns are told; the end of the channel too.
func TestJoinAsInvited(t *testing.T) {
	t.Parallel()
	h, _ := room(t)
	w := openWindow(t, h, 80, 24, "join zoe")
	w.shows("Nothing waits for zoe.", "No channel is open")
	opening := h.command("channels", "open", "consulting", "zoe", "--as", "hana")
	if err := opening.Start(); err != nil { // it ends when the invitation is accepted
		t.Fatal(err)
	}
	w.shows("zoe: 1 waiting", "invitation")
	w.keys("Enter")
	w.shows("zoe is invited: /accept or /decline")
	w.types("/accept")
	w.keys("Enter")
	w.shows("it is the turn of hana")
	if err := opening.Wait(); err != nil {
		t.Fatal(err)
	}
	w.types("me first")
	w.keys("Enter")
	w.shows("not from 'zoe'", "> me first")
	w.keys("C-u")
	h.run("send", "@latest", "what is the tide?", "--as", "hana")
	w.shows("hana: what is the tide?", "it is your turn, zoe")
	w.types("rising")
	w.keys("Enter")
	w.shows("zoe: rising", "the channel has ended: Enter leaves")
	w.keys("Enter")
	w.shows("ended with 0")
}

// An invitation is declined: it is not opened, and whoever asked is told.
func TestJoinDeclines(t *testing.T) {
	t.Parallel()
	h, _ := room(t)
	opening := h.command("channels", "open", "consulting", "zoe", "--as", "hana", "-o", "json")
	var said strings.Builder
	opening.Stderr = &said
	if err := opening.Start(); err != nil { // it ends when the invitation is declined
		t.Fatal(err)
	}
	w := openWindow(t, h, 80, 24, "join zoe")
	w.shows("zoe: 1 waiting", "invitation")
	w.keys("Enter")
	w.shows("zoe is invited: /accept or /decline")
	w.types("/decline")
	w.keys("Enter")
	w.shows("ended with 0")
	if err := opening.Wait(); err == nil || !strings.Contains(said.String(), "invite_rejected") {
		t.Errorf("%v: %s", err, said.String())
	}
	if out := h.run("join", "zoe"); !strings.Contains(out, "Nothing waits for zoe") {
		t.Errorf("%s", out)
	}
}

// What is typed while the hub is away is said once when it is back.
func TestJoinSurvivesARestart(t *testing.T) {
	t.Parallel()
	h, channel := room(t)
	w := openWindow(t, h, 80, 24, "join hana "+channel)
	w.shows("hana in harbour talk", "opened")
	w.types("before")
	w.keys("Enter")
	w.shows("hana: before")
	h.kill()
	w.shows("the hub is away since ")
	w.types("after")
	w.keys("Enter")
	w.shows("what you said is sent when it is back")
	h.start()
	w.shows("hana: after")
	w.hides("away since")
	w.keys("C-c")
	w.shows("ended with 0")
	if out := h.run("channels", "messages", channel, "--as", "hana", "-o", "json"); strings.Count(out, `"role":"assistant","content":"after"`) != 1 {
		t.Errorf("%s", out)
	}
}
