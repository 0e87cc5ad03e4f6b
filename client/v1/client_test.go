package v1_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
)

func newClient(t *testing.T, h http.Handler, opts v1.Options) *v1.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := v1.New(server.URL, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestARefusalCarriesItsCode(t *testing.T) {
	t.Parallel()
	base, stop := startHub("alice")
	t.Cleanup(stop)
	c, err := v1.New(base, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Channel(t.Context(), "missing")
	if fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a missing channel is refused with %v", err)
	}
	if _, err := c.Agent(t.Context(), "nobody"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a missing agent is refused with %v", err)
	}
	if _, err := c.Task(t.Context(), "missing"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a missing task is refused with %v", err)
	}
}

func TestListsAndItemsAgree(t *testing.T) {
	t.Parallel()
	base, stop := startHub("alice", "bob")
	t.Cleanup(stop)
	c, err := v1.New(base, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Agents(t.Context(), url.Values{"limit": {"1"}})
	if err != nil || len(first.Items) != 1 || first.Next == "" {
		t.Fatalf("the first page is %+v (%v)", first, err)
	}
	rest, err := c.Agents(t.Context(), url.Values{"after": {first.Next}})
	if err != nil || len(rest.Items) != 1 || rest.Next != "" {
		t.Fatalf("the last page is %+v (%v)", rest, err)
	}
	one, err := c.Agent(t.Context(), rest.Items[0].Passport.Name)
	if err != nil || one.Passport.ID != rest.Items[0].Passport.ID || len(one.Raw) == 0 {
		t.Errorf("the agent is %+v (%v)", one, err)
	}
	if err := c.RemoveAgent(t.Context(), "bob"); err != nil {
		t.Error(err)
	}
	audit, err := c.Audit(t.Context(), url.Values{"kind": {"agent_unregistered"}})
	if err != nil || len(audit.Items) != 1 {
		t.Errorf("the audit is %+v (%v)", audit, err)
	}
}

func TestURLsThatAreNotAHubs(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "localhost:7440", "ftp://hub", "http://", "::"} {
		if _, err := v1.New(base, v1.Options{}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestTheTokenIsSent(t *testing.T) {
	t.Parallel()
	c := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"channel_id":%q}`, r.Header.Get("Authorization"))
	}), v1.Options{Token: "secret"})
	ch, err := c.Channel(t.Context(), "any")
	if err != nil || ch.ID != "Bearer secret" {
		t.Errorf("the header is %+v (%v)", ch, err)
	}
}

func TestDataOfSeveralLinesIsOneFrame(t *testing.T) {
	t.Parallel()
	stream := ": welcome\nid: 7\nevent: envelope\ndata: {\"a\":\ndata:1}\nretry: 5\n\n\ndata\n\n"
	var got []v1.Frame
	err := v1.ReadFrames(strings.NewReader(stream), func(f v1.Frame) error {
		got = append(got, f)
		return nil
	})
	if err == nil || len(got) != 2 {
		t.Fatalf("%d frames, %v", len(got), err)
	}
	if f := got[0]; f.ID != "7" || f.Name != "envelope" || string(f.Data) != "{\"a\":\n1}" {
		t.Errorf("the frame is %+v", f)
	}
	if len(got[1].Data) != 0 {
		t.Errorf("the frame without data is %+v", got[1])
	}
}

func TestAStreamFollowsAHubThatMoves(t *testing.T) {
	t.Parallel()
	var asked []string
	frame := func(w http.ResponseWriter, r *http.Request, id int) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: %d\ndata: {}\n\n", id)
	}
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { frame(w, r, 2) }))
	t.Cleanup(second.Close)
	c := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { frame(w, r, 1) }),
		v1.Options{Relocate: func() (string, *http.Client) { return second.URL, nil }})
	err := c.Follow(t.Context(), "/v1/events", "0", func(f v1.Frame) error {
		if f.ID == "2" {
			return v1.ErrStop
		}
		return nil
	})
	if err != nil || strings.Join(asked, " ") != "0 1" {
		t.Errorf("the stream went on after %q (%v)", asked, err)
	}
}

func TestAVisitorsErrorEndsTheStream(t *testing.T) {
	t.Parallel()
	c := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "data: {}\n\n")
	}), v1.Options{})
	want := errors.New("enough")
	if err := c.Follow(t.Context(), "/", "", func(v1.Frame) error { return want }); !errors.Is(err, want) {
		t.Errorf("the stream ended with %v", err)
	}
}
