package agh_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/mem"
)

// written collects a log of every level.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// hidden is in every secret of these tests.
const hidden = "HUNTER2"

// secrets have each of the shapes that a secret is known by.
var secrets = []string{"password: " + hidden, "agh_claim_" + hidden, "Bearer " + hidden, "api_key=" + hidden}

// wrappings are the values that a member with a secret has.
func wrappings(secret string) []any {
	return []any{secret, obj{"text": secret}, obj{"text": "x", secret: 1}, obj{"text": "x", "password": secret}, []any{secret}}
}

// TestSecretsAreNotLogged drives refusals of every kind with a secret in each member, by
// HTTP and over the network, and reads the whole log and audit.
func TestSecretsAreNotLogged(t *testing.T) {
	t.Parallel()
	for name, scan := range map[string]agh.Scan{"off": agh.ScanOff, "outbound": agh.ScanOutbound, "both": agh.ScanBoth} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log, a := &written{}, newAir()
				r := &rig{
					T: &spec.T{T: t}, store: mem.NewStore(), logs: slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}),
					cfg: agh.Config{Broker: a, SecretScan: scan, Limits: agh.Limits{AuditRejects: 1 << 20}},
				}
				r.start()
				stop := sync.OnceFunc(r.stop)
				defer stop()
				crane := r.join("dock", "crane", "crane.s01")
				f := &far{r, a, "far.s9"}
				for _, secret := range secrets {
					refuseOverHTTP(r, crane, secret)
					refuseOverNATS(r, f, secret)
				}
				pass(time.Second)
				lines, _, err := r.hub.AuditLog(context.Background(), hub.AuditQuery{Limit: 100_000})
				r.NoError(err)
				reasons := map[string]bool{}
				for _, l := range lines {
					r.False(strings.Contains(string(l.Data), hidden), "the audit has a secret: %s", l.Data)
					var of struct{ Reason string }
					_ = json.Unmarshal(l.Data, &of) // records of other kinds have none
					reasons[of.Reason] = true
				}
				all := []string{"malformed", "expired", "unsupported_kind", "verification_failed", "invalid_surface", "legacy_field_rejected", "spoofed", "subject_mismatch"}
				if scan != agh.ScanBoth { // what has a secret opens no work
					all = append(all, "duplicate", "work_closed", "work_container_mismatch", "internal")
				}
				for _, reason := range all {
					r.True(reasons[reason], "nothing was refused as %s", reason)
				}
				stop()
				r.False(strings.Contains(log.String(), hidden), "the log has a secret: %s", log)
			})
		})
	}
}

func refuseOverHTTP(r *rig, crane *host, secret string) {
	r.Helper()
	for _, member := range []string{
		"session_id", "workspace_id", "channel", "kind", "surface", "thread_id", "direct_id", "to", "work_id", "reply_to", "trace_id",
		"causation_id", "expires_at", "id", "ext", "body", "interaction_id", secret,
	} {
		for _, value := range wrappings(secret) {
			body := obj{"session_id": crane.session, "channel": "dock", "surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "x"}}
			body[member] = value
			r.serve("operator", "POST", "/send", body)
		}
	}
	for _, text := range []string{
		secret, `{"` + secret + `":1,"` + secret + `":2}`, `{"body":{"text":"` + secret + `\ud800"}}`, `["` + secret + `"]`,
	} {
		r.serve("operator", "POST", "/send", text)
	}
	escaped := url.PathEscape(secret)
	for _, path := range []string{
		"/channels/" + escaped, "/channels/dock/threads/" + escaped, "/channels/dock/directs/" + escaped + "/messages", "/peers/" + escaped,
		"/work/" + escaped, "/inbox?session_id=" + url.QueryEscape(secret), "/channels/dock/threads?after=" + url.QueryEscape(secret), "/" + escaped,
	} {
		r.serve("operator", "GET", path, nil)
		r.serve("nobody", "GET", path, nil)
	}
	r.serve("operator", "POST", "/channels/dock/peers", obj{"agent": "crane", "peer_id": secret})
	r.serve("operator", "PUT", "/trust", obj{"policy": secret})
	r.serve("operator", http.MethodPut, "/agh/agents/crane/capabilities", obj{"capabilities": []any{obj{"id": secret}}})
}

func refuseOverNATS(r *rig, f *far, secret string) {
	r.Helper()
	const subject = "agh.network.v0.ws_harbor.dock.peer.a0d17369c6cd114e1d6aa2b9f8a5b776" // of crane.s01
	n := 0
	on := func(members obj) {
		n++
		e := f.envelope(obj{"to": "crane.s01"})
		for k, v := range members {
			e[k] = v
		}
		text, err := json.Marshal(e)
		r.NoError(err)
		f.on(subject, text)
		f.on("agh.network.v0.ws_harbor.dock.broadcast", text)
	}
	for _, member := range []string{
		"protocol", "id", "workspace_id", "kind", "channel", "surface", "thread_id", "direct_id", "from", "to", "work_id", "reply_to",
		"trace_id", "causation_id", "ts", "expires_at", "body", "proof", "ext", "interaction_id", secret,
	} {
		for _, value := range wrappings(secret) {
			on(obj{member: value})
			on(obj{member: value, "from": "crane.s01"})
		}
	}
	work := "work_" + strings.Repeat("a", len(secret))
	tells := obj{"text": secret}
	on(obj{"id": "opens" + work, "work_id": work, "body": tells})
	on(obj{"id": "opens" + work, "work_id": work, "body": tells})
	on(obj{"id": "m2" + work, "work_id": work, "body": tells, "thread_id": "thread_elsewhere"})
	on(obj{"id": "m3" + work, "work_id": work, "body": tells, "ts": 1})
	on(obj{"id": "m4" + work, "work_id": work, "kind": "trace", "body": obj{"state": "submitted", "message": secret}})
	on(obj{"id": "m5" + work, "work_id": work, "kind": "trace", "body": obj{"state": "completed", "message": secret}})
	on(obj{"id": "m6" + work, "work_id": work, "body": tells})
	on(obj{"id": "m7" + work, "kind": "capability", "body": obj{"capability": obj{"id": "a", "summary": secret, "outcome": "c", "digest": "sha256:0"}}})
	f.on(subject, []byte(secret))
}
