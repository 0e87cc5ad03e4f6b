package hpd_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/hub"
)

// The configuration of a run that waits for its producer survives a restart,
// without its secrets, and is visible only to the producer.
func TestConfigOfAWaitingRun(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	r.producer("far").work.close()
	s := r.session()
	r.restart() // the producer has not reconnected yet
	at := "/agents/far/sessions/" + s + "/branches/main"
	follower, err := r.hub.Follow(t.Context(), mainOf(r, s), hub.FollowOptions{})
	c.NoError(err)
	config := object{
		"modelId": "marker-1", "apiKey": "hush-1", "customHeaders": object{"X": "hush-2"}, "chat": object{"maxOutputTokens": 7},
		"contextOverrides": object{"deep": []object{{"Access_Token": "hush-3", "kept": 1}}}, "providerEndpoint": "https://u:hush-4@host/",
		"providerOptionsJson": `{"api-key":"hush-5","region":"eu"}`,
	}
	a := r.do("POST", at+"/inputs", object{"text": "hi", "runConfig": config})
	c.Equal(a.status, 202)
	r.crash()

	p := r.producer("far")
	w := p.work.named("input")
	c.Equal(w["runtimeRunId"], a.object()["runtimeRunId"])
	c.Equal(w["resumed"], any(false))
	c.Equal(w["runConfig"], any(object{
		"modelId": "marker-1", "chat": object{"maxOutputTokens": 7.0}, "contextOverrides": object{"deep": []any{object{"kept": 1.0}}},
		"providerOptionsJson": `{"region":"eu"}`,
	}))
	c.Equal(p.publish(w, "", delta("a")).status, 202)
	c.Equal(p.complete(w, object{"status": "completed"}).status, 200)

	for _, path := range []string{"/sessions/" + s, "/sessions/" + s + "/branches/main", "/sessions/" + s + "/branches/main/events", at + "/runs", at + "/requests"} {
		c.False(bytes.Contains(r.do("GET", path, nil).raw, []byte("marker-1")), "%s shows it", path)
	}
	for {
		ev, wake, err := follower.TryNext(t.Context())
		if err != nil || wake != nil {
			break
		}
		c.False(strings.Contains(string(ev.Envelope.Data), "marker-1"), "a follower is shown it")
	}
	for _, e := range r.side(s) {
		c.False(strings.Contains(fmt.Sprintf("%s %s", e.Data, e.Ext), "hush"), "a secret is stored: %s", e.Ext)
	}
}

// An input for a connected producer is not stored anywhere else.
func TestConfigOfATakenRun(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	p := r.producer("far")
	s := r.session()
	r.do("POST", "/agents/far/sessions/"+s+"/branches/main/inputs", object{"text": "hi", "runConfig": object{"modelId": "marker-1"}})
	c.Equal(p.work.named("input")["runConfig"], any(object{"modelId": "marker-1"}))
	for _, e := range r.side(s) {
		c.False(strings.Contains(string(e.Ext), "marker-1"), "it is stored: %s", e.Ext)
	}
}
