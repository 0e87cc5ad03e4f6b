package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
)

// bigID is the channel of bigHub.
const bigID = "00000000000000000000000000000b16"

// bigHub is a hub with one closed channel of n envelopes of 900 kB, which come
// on pages of per.
func bigHub(t *testing.T, n, per int) string {
	t.Helper()
	long := strings.Repeat("x", 900<<10)
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/channels/"+bigID, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"channel_id":"`+bigID+`","state":"closed","names":{}}`)
	})
	mux.HandleFunc("/v1/channels/"+bigID+"/events", func(w http.ResponseWriter, r *http.Request) {
		from := 0
		_, _ = fmt.Sscanf(r.URL.Query().Get("after"), "1.1.%d", &from)
		to := min(from+per, n)
		fmt.Fprint(w, `{"events":[`)
		for i := from + 1; i <= to; i++ {
			if i > from+1 {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, `{"sequence":%d,"event_type":"note","event_data":{"text":%q}}`, i, long)
		}
		fmt.Fprintf(w, `],"next":"1.1.%d","more":%t}`, to, to < n)
	})
	mux.HandleFunc("/v1/agents", func(w http.ResponseWriter, _ *http.Request) {
		for range (v1.MaxAnswer >> 20) + 2 {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<20)); err != nil {
				return
			}
		}
		fmt.Fprint(w, `{"agents":[]}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// TestBigChannelsAreReadToTheirEnd reads more than is held at once, on pages of
// every length.
func TestBigChannelsAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	const n = 80 // more than v1.MaxAnswer together
	for _, per := range []int{5, n} {
		url := bigHub(t, n, per)
		for _, args := range [][]string{{"export", bigID}, {"tail", bigID}} {
			code, stdout, stderr := call(t, nil, append(args, "--hub", url)...)
			if code != 0 {
				t.Fatalf("%v, %d a page: %d %s", args, per, code, stderr)
			}
			seen := 0
			for line := range linesOf(stdout) {
				seen++
				var ev v1.Event
				if err := json.Unmarshal([]byte(line), &ev); err != nil || ev.Sequence != uint64(seen) {
					t.Fatalf("%v, %d a page: line %d is %.80s (%v)", args, per, seen, line, err)
				}
			}
			if seen != n {
				t.Errorf("%v, %d a page: %d envelopes of %d", args, per, seen, n)
			}
		}
		code, stdout, stderr := call(t, nil, "channels", "lint", bigID, "--hub", url, "-o", "json")
		if got := strings.Count(stdout, `"problem"`); code != 0 || got != n {
			t.Errorf("lint, %d a page: %d, %d findings, %s", per, code, got, stderr)
		}
	}
}

func TestAnAnswerThatIsTooLongIsSaidToBe(t *testing.T) {
	t.Parallel()
	code, _, stderr := call(t, nil, "agents", "list", "--hub", bigHub(t, 1, 1))
	if want := "its answer is over 64 MiB, which is what is read at once; ask for less"; code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("%d %s", code, stderr)
	}
}

// TestWhatIsNoPage is refused, and not taken for a shorter channel.
func TestWhatIsNoPage(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		``, `{`, `{"events":[`, `{"events":[{"sequence":1}`, `{"events":[{"sequence":1}],"next":"1.1.1"`,
		`{"events":{"sequence":1}}`, `{"events":[{"sequence":"one"}]}`, `{"events":null}`, `{"more":7}`,
	} {
		hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		code, _, stderr := call(t, nil, "export", bigID, "--hub", hub.URL)
		if code != 1 || !strings.Contains(stderr, "not the page that was expected") {
			t.Errorf("%s: %d %s", answer, code, stderr)
		}
		hub.Close()
	}
}

// TestNamesStayInTheirCells prints names that would break a table.
func TestNamesStayInTheirCells(t *testing.T) {
	t.Parallel()
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/agents" {
			fmt.Fprint(w, `{"agents":[{"passport":{"name":"two\nlines\tand \u001b[31mred","agent_id":"a1"},"resume":{"claimed_capabilities":["o\ncr"]}}],"next":"a1"}`)
			return
		}
		fmt.Fprint(w, `{"channels":[{"channel_id":"c1","type":"t","state":"active","participants":[{"agent_id":"a1"}]}],"names":{"a1":"two\nlines"},"next":"c1"}`)
	}))
	t.Cleanup(hub.Close)
	for what, want := range map[string]string{
		"agents":   `two\nlines\tand \x1b[31mred  agent  away      0      0      o\ncr`,
		"channels": `two\nlines`,
	} {
		code, stdout, stderr := call(t, nil, what, "list", "--hub", hub.URL, "--data", "d 7", "--limit", "1")
		lines := strings.Split(stdout, "\n")
		if code != 0 || len(lines) != 5 || !strings.Contains(lines[1], want) {
			t.Errorf("%s: %d %s %q", what, code, stderr, stdout)
		}
		if want := "More: parley " + what + " list --data='d 7' --hub=" + hub.URL + " --limit=1 --after "; !strings.Contains(stdout, want) {
			t.Errorf("%s does not say %s", stdout, want)
		}
	}
}

func TestTheAuditGoesOnAsItBegan(t *testing.T) {
	t.Parallel()
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"records":[{"kind":"x"}],"next":"1.9"}`)
	}))
	t.Cleanup(hub.Close)
	_, _, stderr := call(t, nil, "audit", "--hub", hub.URL, "--kind", "x", "--limit", "1", "--after", "1.3")
	if want := "More: parley audit --hub=" + hub.URL + " --kind=x --limit=1 --after 1.9\n"; !strings.Contains(stderr, want) {
		t.Errorf("%q, want %q", stderr, want)
	}
}
