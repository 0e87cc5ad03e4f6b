package hpd_test

import (
	"sync"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// An input for a branch that is being deleted waits, and is then answered as for
// one that does not exist. A branch is deleted or has a run: the first of the two
// refuses the other.
func TestInputMeetsDeletion(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"branch": "/branches/b", "session": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &spec.T{T: t}
			found, goOn := make(chan struct{}, 1), make(chan struct{})
			r := newRig(t, hpd.Config{Hosted: func(wire.StoredAgent) hpd.Producer { // called once the branch is found
				found <- struct{}{}
				<-goOn
				return hpd.Echo{}
			}})
			agent := r.do("POST", "/agents", object{"name": "desk", "config": object{}}).object()["id"].(string)
			s := r.session()
			r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": "b"})
			answers := make(chan answer, 1)
			go func() { answers <- r.input(agent, s, "b", "hi") }()
			<-found
			var once sync.Once
			r.armed.Store(func() { once.Do(func() { close(goOn) }) }) // the deletion has begun, but nothing of it is stored
			c.Equal(r.do("DELETE", "/sessions/"+s+path, nil).status, 204)
			a := <-answers
			c.Equal(a.status, 404)
			c.Equal(a.object()["title"], any("Branch 'b' was not found in session '"+s+"'."))
		})
	}
}
