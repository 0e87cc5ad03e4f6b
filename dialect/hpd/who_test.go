package hpd_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
)

// byHeader takes the caller from a header, as a guard would from a key.
func byHeader(r *http.Request) hpd.Who {
	switch who := r.Header.Get("Who"); who {
	case "operator":
		return hpd.Who{Role: hpd.Operator}
	case "reader":
		return hpd.Who{Role: hpd.Reader}
	case "":
		return hpd.Who{}
	default:
		return hpd.Who{Role: hpd.Agent, Agent: who}
	}
}

func TestWhoMay(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{Who: byHeader, Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	as := func(who, method, path string, body any) answer {
		return r.send(method, path, body, map[string]string{"Who": who})
	}
	c.Equal(as("operator", "POST", "/sessions", object{"sessionId": "ops"}).status, 201)
	c.Equal(as("ada", "POST", "/sessions", object{"sessionId": "adas"}).status, 201)
	a := "/agents/echo/sessions/adas/branches/main"
	for _, row := range []struct {
		method, path                       string
		body                               any
		operator, reader, ada, bob, nobody int
	}{
		{"GET", "/sessions/ops", nil, 200, 200, 404, 404, 401},
		{"GET", "/sessions/adas", nil, 200, 200, 200, 404, 401},
		{"GET", "/sessions/adas/branches/main/events", nil, 200, 200, 200, 404, 401},
		{"GET", a + "/runs", nil, 200, 200, 200, 404, 401},
		{"PATCH", "/sessions/adas", "{}", 200, 403, 200, 404, 401},
		{"POST", a + "/interrupt", nil, 409, 403, 409, 404, 401},
		{"POST", "/agents", `{"name":"n","config":{}}`, 201, 403, 403, 403, 401},
		{"GET", "/agents", nil, 200, 200, 200, 200, 401},
		{"GET", "/agents/echo/work", nil, 409, 403, 403, 403, 401}, // echo runs in the hub
	} {
		for who, want := range map[string]int{"operator": row.operator, "reader": row.reader, "ada": row.ada, "bob": row.bob, "": row.nobody} {
			if got := as(who, row.method, row.path, row.body).status; got != want {
				t.Errorf("%s %s as %q: %d, want %d", row.method, row.path, who, got, want)
			}
		}
	}
	c.Equal(len(as("ada", "GET", "/sessions", nil).list()), 1)
	c.Equal(len(as("bob", "GET", "/sessions", nil).list()), 0)
	c.Equal(len(as("reader", "GET", "/sessions", nil).list()), 2)
}

func TestTokenInThePath(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	take := r.server.Mount().Routes[0].Token
	for _, row := range []struct{ in, token, out string }{
		{"/hpd/~secret/sessions/s", "secret", "/hpd/sessions/s"},
		{"/hpd/~secret/sessions/s/branches/a%2Fb/ws", "secret", "/hpd/sessions/s/branches/a%2Fb/ws"},
		{"/hpd/sessions/~s", "", "/hpd/sessions/~s"},
		{"/hpd/sessions?access_token=secret", "secret", "/hpd/sessions"},
	} {
		u, err := url.Parse(row.in)
		c.NoError(err)
		c.Equal(take(u), row.token)
		c.Equal(u.EscapedPath(), row.out)
	}
}
