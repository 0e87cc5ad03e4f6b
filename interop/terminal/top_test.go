package terminal

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// room is a hub with two people, an agent and a channel in which something waits.
func room(t *testing.T) (h *hub, channel string) {
	t.Helper()
	h = startHub(t)
	h.run("agents", "add", "hana", "--human")
	h.run("agents", "add", "zoe", "--human")
	h.echo("parrot")
	channel = h.open("conversation", "parrot", "--as", "hana", "--label", "title=harbour talk")
	return h, channel
}

func TestTopShowsTheHub(t *testing.T) {
	t.Parallel()
	h, channel := room(t)
	ask := func(title string) {
		h.ask(channel, map[string]any{
			"kind": "approval", "asked_by": "parrot", "for": "hana", "title": title,
			"choices": []map[string]any{{"id": "approve"}, {"id": "deny"}},
		})
	}
	ask("Sail \x1b[2J\nnow?")
	w := openWindow(t, h, 80, 24, "top --interval 200ms")
	w.shows("parley ", "admitted ", "delivered ", "sync p99 ", "disk ", " connections", "1 channels (1)", "2 requests (1)", "3 agents (3)", "harbour talk")

	w.keys("Enter")
	w.shows("channel "+channel, "opened", "Esc back")
	h.run("send", channel, "ahoy there", "--as", "hana")
	w.shows("hana: ahoy there")
	w.keys("Escape")
	w.shows("CHANNEL", "RATE/S")

	w.keys("2")
	w.shows(`Sail \x1b[2J\nnow?`)
	for key, choice := range map[string]string{"a": "approve", "d": "deny"} {
		w.keys(key)
		w.shows(key + " again: " + choice)
		w.keys(key)
		w.shows("No request is open.")
		if out := h.run("requests", "list", "--state", "answered", "-o", "json"); !strings.Contains(out, `"choice":"`+choice+`"`) {
			t.Errorf("%s: %s", key, out)
		}
		ask("Dive?")
		w.shows("Dive?")
	}

	w.keys("3")
	w.shows("AGENT", "INBOX", "by inbox", "parrot", "online")
	w.keys("s")
	w.shows("by turns")
	w.keys("/")
	w.types("zoe")
	w.hides("parrot")
	w.keys("Enter", "Escape")
	w.shows("parrot")
	w.keys("4")
	w.shows("by count")

	w.tmux("resize-window", "-x", "100", "-y", "30")
	w.shows("by count")
	w.tmux("resize-window", "-x", "60", "-y", "20")
	w.shows("parley top needs a window of 80×24")
	w.tmux("resize-window", "-x", "80", "-y", "24")
	w.shows("by count")
	w.keys("q")
	w.shows("ended with 0")
	w.hides("by count")
}

func TestTopSurvivesARestart(t *testing.T) {
	t.Parallel()
	h, _ := room(t)
	w := openWindow(t, h, 80, 24, "top --interval 200ms")
	w.shows("harbour talk", "up ")
	h.kill()
	w.shows("the hub is away since ", "harbour talk")
	h.start()
	w.shows("the hub restarted at ")
	w.hides("away since")
	w.keys("C-c")
	w.shows("ended with 0")
}

var colours = regexp.MustCompile("\x1b\\[[0-9;:]*m")

func TestNoColor(t *testing.T) {
	t.Parallel()
	h, _ := room(t)
	for _, test := range []struct {
		env    string
		colour bool
	}{{"NO_COLOR=1", false}, {"NO_COLOR=", true}} {
		w := openWindow(t, h, 80, 24, "top --interval 200ms", test.env)
		w.shows("harbour talk")
		h.kill() // which is told in red
		w.shows("the hub is away since ")
		found := false
		for _, escape := range colours.FindAllString(w.escapes(), -1) {
			for _, attribute := range regexp.MustCompile("[0-9]+").FindAllString(escape, -1) {
				found = found || len(attribute) == 2 && (attribute[0] == '3' || attribute[0] == '4') && attribute != "39" && attribute != "49"
			}
		}
		if found != test.colour {
			t.Errorf("%s: colours %v in %q", test.env, found, w.escapes())
		}
		h.start()
	}
}

// Not a terminal: one snapshot, in words or as JSON.
func TestTopOnce(t *testing.T) {
	t.Parallel()
	h, channel := room(t)
	for _, args := range [][]string{{"top", "--interval", "200ms"}, {"top", "--once", "--interval", "200ms"}} {
		out := h.run(args...)
		for _, want := range []string{"admitted ", "channels (1), by rate", "harbour talk", "requests (0)", "agents (3)", "refusals ("} {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", args, want, out)
			}
		}
	}
	var got struct {
		Version  string `json:"version"`
		Channels []struct {
			ID   string   `json:"channel_id"`
			Rate *float64 `json:"rate"`
		} `json:"channels"`
	}
	if err := json.Unmarshal([]byte(h.run("top", "-o", "json", "--interval", "200ms")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version == "" || len(got.Channels) != 1 || got.Channels[0].ID != channel || got.Channels[0].Rate == nil {
		t.Errorf("%+v", got)
	}
}
