package hpd_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/hpd"
)

// An agent that reads a branch is online, and the hub knows where it reads.
func TestWhoReadsIsOnline(t *testing.T) {
	t.Parallel()
	r := newRig(t, hpd.Config{Who: byHeader, Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	header := map[string]string{"Who": "ada"}
	if a := r.send("POST", "/sessions", object{"sessionId": "adas"}, header); a.status != 201 {
		t.Fatal(a.status)
	}
	id, _ := r.hub.FindAgent("ada")
	w := r.watch("/agents/echo/sessions/adas/branches/main/events/live", header)
	here := r.hub.Presence(id)
	if len(here.Connections) != 1 || !here.Online || here.Connections[0].Dialect != "hpd" || here.Connections[0].Address == "" {
		t.Errorf("it reads: %+v", here)
	}
	w.close()
	for deadline := time.Now().Add(30 * time.Second); r.hub.Online(id); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("it is still online")
		}
	}
	r.watch("/agents/echo/sessions/adas/branches/main/events/live", map[string]string{"Who": "operator"})
	if r.hub.Online(id) {
		t.Error("an operator's stream is ada's")
	}
}
