package ag2_test

import "testing"

// A connection is described for as long as it lasts.
func TestAConnectionIsDescribed(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p := r.dial()
	id := p.register("alice")
	here := r.hub.Presence(id)
	if len(here.Connections) != 1 || !here.Online || here.LastSeen.IsZero() {
		t.Fatalf("connected: %+v", here)
	}
	if c := here.Connections[0]; c.Dialect != "ag2" || c.Address != p.conn.LocalAddr().String() || c.Since.IsZero() {
		t.Errorf("the connection: %+v", c)
	}
	p.hangUp()
	until(t, "it is away", func() bool { return !r.hub.Presence(id).Online })
}
