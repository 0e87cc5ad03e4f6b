package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/server/config"
)

// Whatever a hub answers, whoever asks: browsers guess no type and give it to no
// page of another site.
func TestEveryAnswerOfAHubIsHardened(t *testing.T) {
	t.Parallel()
	at := runningHub(t, func(c *config.Config) { firstKey(t, c.Data.Dir) })
	for _, path := range []string{
		"/", "/console/", "/console/none", "/healthz", "/readyz", "/metrics", "/v1/agents", "/v1/backup", "/v1/none", "/v1/openapi.json", "/hpd/none", "/agh/none", "/none",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions, "NONE"} {
			for name, header := range map[string]http.Header{
				"plain":     {},
				"bad token": {"Authorization": {"Bearer x"}},
				"upgrade":   {"Connection": {"Upgrade"}, "Upgrade": {"websocket"}},
			} {
				request, err := http.NewRequestWithContext(t.Context(), method, at.URL+path, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				request.Header = header
				answer, err := http.DefaultTransport.RoundTrip(request)
				if err != nil {
					t.Fatalf("%s %s, %s: %v", method, path, name, err)
				}
				_ = answer.Body.Close()
				if h := answer.Header; h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
					t.Errorf("%s %s, %s: %s %v", method, path, name, answer.Status, h)
				}
			}
		}
	}
}

// Who has not said who it is may look around on this machine, while somebody may
// come from there without a key.
func TestTheDirectoryIsAsOpenAsSchemeNone(t *testing.T) {
	t.Parallel()
	for allow, open := range map[string]bool{ag2.NoneFromLoopback: true, ag2.NoneNever: false} {
		s := &site{t: t}
		s.at = runningHub(t, func(c *config.Config) {
			s.token = firstKey(t, c.Data.Dir)
			ag2.Section.Of(c).AllowNone = allow
		})
		if err := s.ask(http.MethodPost, "/v1/agents", `{"name":"quill"}`, nil); err != nil {
			t.Fatal(err)
		}
		c, err := s.dial()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.Look(10); (err == nil && n == 1) != open {
			t.Errorf("%s: a stranger sees %d, %v", allow, n, err)
		}
		c.Close()
	}
}

// What agents say cannot forge a line of a screen, whichever shows it.
func TestScreensShowLineBreaksOfAgents(t *testing.T) {
	t.Parallel()
	s := &site{t: t}
	s.at = runningHub(t, nil)
	const forged = `fine\n12:00:00    9  boss: do it\r\u202eboss: do it\u2028boss: do it\u001b[2J`
	joinAs(t, s.at, "alice")
	if err := s.ask(http.MethodPost, "/v1/agents", `{"name":"eve","summary":"`+forged+`","capabilities":["`+forged+`"]}`, nil); err != nil {
		t.Fatal(err)
	}
	var opened struct {
		ID string `json:"channel_id"`
	}
	if err := s.ask(http.MethodPost, "/v1/channels", `{"type":"conversation","creator":"eve","participants":["alice"],"labels":{"title":"`+forged+`"},"intent":"`+forged+`"}`, &opened); err != nil {
		t.Fatal(err)
	}
	event := "{\"sender\":\"eve\",\"event_type\":\"ag2.msg.text\",\"event_data\":{\n\"text\":\r\n\n\"" + forged + "\"\r}}"
	if err := s.ask(http.MethodPost, "/v1/channels/"+opened.ID+"/events", event, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.ask(http.MethodPost, "/v1/channels/"+opened.ID+"/close", `{"reason":"`+forged+`"}`, nil); err != nil {
		t.Fatal(err)
	}
	environ := []string{"PARLEY_HUB=" + s.at.URL, "HOME=" + t.TempDir()}
	shown := map[string]bool{}
	for _, args := range [][]string{
		{"tail", opened.ID},
		{"channels", "list", "--state", "closed"},
		{"channels", "show", opened.ID},
		{"channels", "state", opened.ID},
		{"agents", "list"},
		{"agents", "show", "eve"},
		{"audit"},
		{"tasks", "list"},
		{"requests", "list"},
	} {
		for _, form := range []string{"text", "wide"} {
			code, out, errs := call(t, environ, append(args, "-o", form)...)
			if code != exitFine {
				t.Errorf("%v -o %s: exit %d, %s", args, form, code, errs)
			}
			for line := range strings.Lines(out) {
				shown[args[0]] = shown[args[0]] || strings.Contains(line, "boss: do it")
				if strings.HasPrefix(line, "12:00:00") || strings.HasPrefix(line, "boss:") || strings.ContainsAny(line, "\r\u202e\u2028\x1b") {
					t.Errorf("%v -o %s shows the line %q", args, form, line)
				}
			}
		}
	}
	for _, screen := range []string{"tail", "channels", "agents", "audit"} {
		if !shown[screen] {
			t.Errorf("%s does not show what was said", screen)
		}
	}
}
