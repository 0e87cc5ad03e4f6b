package ag2_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gobwas/ws/wsutil"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite what the hub sends in testdata/*.txtar")

// TestTranscripts plays every transcript against a hub of its own.
//
// A transcript has a prose header, an optional setup, and lines for the frames on
// connections: "quill > …" is sent to the hub, "quill < …" comes from it, "quill x"
// disconnects. $name stands for an id: it is set by its first occurrence in a frame
// from the hub, and must be the same afterwards. $time is any time, $any any text.
// At the end nothing more may have been sent.
//
// The setup has one command on each line: "register quill" registers it on a
// connection of that name, "register ink on quill" on another's, "keyed" instead of
// "register" uses the scheme api_key; "open TYPE quill ink …" opens a channel,
// $channel; "say quill text" posts there, $said.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(strings.TrimSpace(string(archive.Comment))) < 20 {
				t.Error("a transcript begins with what it shows")
			}
			p := &play{t: t, rig: newRig(t, options{}), peers: map[string]*peer{}, known: map[string]string{}}
			for i := range archive.Files {
				switch f := &archive.Files[i]; f.Name {
				case "setup":
					p.setup(string(f.Data))
				case "transcript":
					f.Data = []byte(p.run(string(f.Data)))
				default:
					t.Fatalf("section %q is unknown", f.Name)
				}
			}
			if *update && !t.Failed() {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// play is a transcript being played.
type play struct {
	t     *testing.T
	rig   *rig
	peers map[string]*peer
	known map[string]string // ids by label
}

func (p *play) peer(name string) *peer {
	if p.peers[name] == nil {
		p.peers[name] = p.rig.dial()
		p.peers[name].t = p.t
	}
	return p.peers[name]
}

func (p *play) setup(text string) {
	on := map[string]*peer{} // connections by identity
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		switch words[0] {
		case "register", "keyed":
			name := words[1]
			host := name
			if len(words) == 4 {
				host = words[3]
			}
			on[name] = p.peer(host)
			passport := object{"name": name}
			if words[0] == "keyed" {
				passport["auth"] = object{"scheme": "api_key", "claim": object{"token": map[string]string{"quill": "tok-7", "keyed": "tok-8"}[name]}}
			}
			var stamped struct {
				ID string `json:"agent_id"`
			}
			on[name].call("register", object{"passport": passport, "resume": object{}}, &stamped)
			p.known[name] = stamped.ID
		case "open":
			creator := on[words[2]]
			p.known["channel"] = p.open(words[1], creator, words[2], words[3:], on)
		case "say":
			id := on[words[1]].say(p.known["channel"], p.known[words[1]], strings.Join(words[2:], " "))
			p.known["said"] = id
		default:
			p.t.Fatalf("setup: %q is unknown", line)
		}
	}
	for _, q := range p.peers {
		q.drain()
	}
}

// open opens a channel and acks for its invitees, in order.
func (p *play) open(channelType string, creator *peer, name string, invitees []string, on map[string]*peer) string {
	ids := make([]string, len(invitees))
	for i, invitee := range invitees {
		ids[i] = p.known[invitee]
	}
	request := creator.request("create_channel", object{"creator_id": p.known[name], "manifest_type": channelType, "participants": ids})
	for _, invitee := range invitees {
		on[invitee].ack(on[invitee].notifiedOf("ag2.channel.invite"))
	}
	raw, err := creator.response(request)
	if err != nil {
		p.t.Fatal(err)
	}
	return regexp.MustCompile(`"channel_id":"([0-9a-f]+)"`).FindStringSubmatch(string(raw))[1]
}

// drain takes all frames that have been sent.
func (p *peer) drain() {
	p.t.Helper()
	p.send(`{"kind":"ping"}`)
	for p.recv() != `{"kind":"pong"}` {
	}
	p.notices = nil
}

func (p *play) run(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		name, rest, ok := strings.Cut(line, " ")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case ok && strings.HasPrefix(rest, "> "):
			p.peer(name).send(p.filled(rest[2:]))
		case ok && strings.HasPrefix(rest, ">> "):
			if err := wsutil.WriteClientBinary(p.peer(name).conn, []byte(p.filled(rest[3:]))); err != nil {
				p.t.Fatal(err)
			}
		case ok && strings.HasPrefix(rest, "<"):
			line = name + " < " + p.expect(name, strings.TrimSpace(rest[1:]))
		case ok && rest == "x":
			p.hangUp(name)
		default:
			p.t.Fatalf("line %q is not understood", line)
		}
		out.WriteString(line + "\n")
	}
	for name, q := range p.peers {
		q.send(`{"kind":"ping"}`)
		if got := q.recv(); got != `{"kind":"pong"}` {
			p.t.Errorf("%s got more: %s", name, p.labelled(got, ""))
		}
	}
	return out.String()
}

// hangUp closes a connection and waits until the hub has detected it.
func (p *play) hangUp(name string) {
	before := p.rig.server.Stats().Connections
	p.peers[name].hangUp()
	delete(p.peers, name)
	until(p.t, name+" is gone", func() bool { return p.rig.server.Stats().Connections < before })
}

var label = regexp.MustCompile(`\$[a-z][a-z0-9_]*`)

// filled replaces labels by their values.
func (p *play) filled(text string) string {
	return label.ReplaceAllStringFunc(text, func(l string) string {
		id, ok := p.known[l[1:]]
		if !ok {
			p.t.Fatalf("%s is not known yet", l)
		}
		return id
	})
}

const (
	idPattern   = `[0-9a-f]{32}`
	timePattern = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00`
)

// expect compares the next frame with a pattern, and sets new labels.
func (p *play) expect(name, want string) string {
	p.t.Helper()
	got := p.peer(name).recv()
	if *update {
		return p.labelled(got, want)
	}
	var learned []string
	pattern := label.ReplaceAllStringFunc(regexp.QuoteMeta(want), func(string) string { return "\x00" })
	for _, l := range label.FindAllString(want, -1) {
		part := ""
		switch l = l[1:]; {
		case l == "time":
			part = timePattern
		case l == "any":
			part = `[^"]*`
		case p.known[l] != "":
			part = regexp.QuoteMeta(p.known[l])
		case contains(learned, l):
			part = idPattern // compared below
		default:
			learned = append(learned, l)
			part = `(?P<` + l + `>` + idPattern + `)`
		}
		pattern = strings.Replace(pattern, `\`+"\x00", part, 1)
	}
	expression := regexp.MustCompile(`^` + pattern + `$`)
	match := expression.FindStringSubmatch(got)
	if match == nil {
		p.t.Fatalf("%s got\n\t%s\nwant\n\t%s", name, p.labelled(got, ""), want)
	}
	for _, l := range learned {
		p.known[l] = match[expression.SubexpIndex(l)]
	}
	if len(learned) > 0 && p.filledTimes(want) != timesOf(got) {
		p.t.Fatalf("%s got\n\t%s\nwant\n\t%s", name, p.labelled(got, ""), want)
	}
	return want
}

func contains(list []string, s string) bool {
	return slices.Contains(list, s)
}

// filledTimes returns an expectation with all labels but times and texts filled in.
func (p *play) filledTimes(want string) string {
	if strings.Contains(want, "$any") {
		return ""
	}
	return p.filled(strings.ReplaceAll(want, "$time", "TIME"))
}

func timesOf(got string) string { return regexp.MustCompile(timePattern).ReplaceAllString(got, "TIME") }

// labelled replaces ids and times by labels, for people and -update. A want of
// "?name" names the first new id.
func (p *play) labelled(got, want string) string {
	hint, _ := strings.CutPrefix(want, "?")
	if hint == want {
		hint = ""
	}
	if hint == "" {
		// Keep the names that the line had.
		if old := label.FindAllString(want, -1); old != nil {
			for _, l := range old {
				if l != "$time" && l != "$any" && p.known[l[1:]] == "" {
					hint = l[1:]
					break
				}
			}
		}
	}
	got = regexp.MustCompile(timePattern).ReplaceAllString(got, "$$time")
	return regexp.MustCompile(idPattern).ReplaceAllStringFunc(got, func(id string) string {
		for name, known := range p.known {
			if known == id {
				return "$" + name
			}
		}
		name := hint
		for n := 1; name == "" || p.known[name] != ""; n++ {
			name = fmt.Sprintf("id%d", n)
		}
		p.known[name] = id
		return "$" + name
	})
}
