package agh_test

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
)

// keyFor returns the key of a nickname and a seed's text.
func keyFor(nickname, seed string) *wire.Key {
	sum := sha256.Sum256([]byte(seed))
	key, err := wire.KeyFromSeed(nickname, sum[:])
	if err != nil {
		panic(err)
	}
	return key
}

// signed publishes an envelope of the key's handle. Tamper, if set, changes it
// after signing.
func (f *far) signed(key *wire.Key, members obj, tamper func(obj)) string {
	f.r.Helper()
	who := &far{f.r, f.a, key.Handle()}
	e := who.envelope(members)
	data, err := key.Sign(must(json.Marshal(e)))
	f.r.NoError(err)
	if tamper != nil {
		var changed obj
		f.r.NoError(json.Unmarshal(data, &changed))
		tamper(changed)
		data = must(json.Marshal(changed))
	}
	subject := "agh.network.v0.ws_harbor.dock.broadcast"
	if to, _ := e["to"].(string); to != "" {
		token, err := wire.RouteToken(to)
		f.r.NoError(err)
		subject = "agh.network.v0.ws_harbor.dock.peer." + token
	}
	f.on(subject, data)
	return e["id"].(string)
}

func greeting(id string, capabilities ...string) obj {
	card := obj{"peer_id": id, "profiles_supported": []string{}, "capabilities": append([]string{}, capabilities...), "artifacts_supported": []string{}, "trust_modes_supported": []string{}}
	return obj{"kind": "greet", "to": nil, "surface": nil, "thread_id": nil, "body": obj{"peer_card": card}}
}

func (r *rig) reasons() []string {
	r.Helper()
	reasons := []string{}
	for _, text := range r.audited("rejected") {
		var record obj
		r.NoError(json.Unmarshal([]byte(text), &record))
		reasons = append(reasons, record["reason"].(string))
	}
	return reasons
}

func (r *rig) present() []string {
	r.Helper()
	return each(list(r.get("/peers"), "peers"), "peer_id")
}

func forge(e obj) { e["body"] = obj{"text": "forged"} }

func TestTrust(t *testing.T) {
	t.Parallel()
	mason, other := keyFor("mason", "one"), keyFor("mason", "two")
	over(t, "agh-network#124: rejected envelopes have no effect but their audit record", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		r.ask(http.StatusOK, "PUT", "/trust", obj{"policy": "verify", "pins": obj{"mason": mason.KeyID()}})
		opened := f.signed(mason, obj{"work_id": "work_1"}, nil)
		r.Equal(tug.inbox(), []string{opened})
		stripped := func(e obj) { e["proof"] = nil }
		f.signed(mason, greeting(mason.Handle()), func(e obj) { e["ts"] = e["ts"].(float64) - 1 })
		f.signed(mason, greeting(mason.Handle()), stripped)
		f.signed(other, greeting(other.Handle()), nil) // the nickname is pinned to another key
		f.signed(mason, nil, forge)
		f.signed(mason, obj{"to": nil}, forge)
		f.signed(mason, obj{"work_id": "work_1"}, forge)
		f.signed(mason, obj{"kind": "trace", "work_id": "work_1", "body": obj{"state": "failed"}}, func(e obj) { e["body"] = obj{"state": "completed"} })
		f.signed(mason, obj{"kind": "trace", "work_id": "work_1", "body": obj{"state": "failed"}}, stripped)
		f.signed(mason, obj{"kind": "whois", "surface": nil, "thread_id": nil, "to": nil, "body": obj{"type": "request"}}, stripped)
		r.Equal(r.present(), []string{"crane.s01", "tug.s02"})
		r.Equal(tug.inbox(), []string{opened})
		r.Equal(crane.inbox(), []string{})
		r.Equal(r.work("work_1"), "submitted")
		r.Equal([]int{len(a.published("receipt")), len(a.published("whois"))}, []int{0, 1}) // the only whois is the runtime's own question
		r.Equal(r.reasons(), slices.Repeat([]string{"verification_failed"}, 9))
		f.signed(mason, greeting(mason.Handle()), nil)
		r.Equal(len(r.present()), 3)
	})
	for _, policy := range []string{"off", "verify", "require"} {
		over(t, "agh-network#124: malformed work under "+policy+" is answered only if its sender is proved", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
			r.ask(http.StatusOK, "PUT", "/trust", obj{"policy": policy})
			f.signed(mason, obj{"work_id": "work_1"}, nil)
			blank := obj{"work_id": "work_1", "body": obj{"text": " "}}
			f.signed(mason, blank, func(e obj) { e["proof"] = nil })
			f.signed(mason, blank, func(e obj) { e["body"] = obj{"text": ""} })
			f.signed(mason, obj{"work_id": "work_1"}, func(e obj) { e["ts"] = e["ts"].(float64) - 400 })
			r.Equal(r.work("work_1"), "submitted")
			r.Equal(len(a.published("receipt")), 0)
			r.Equal(r.reasons(), []string{"malformed", "malformed", "expired"})
			f.signed(mason, blank, nil)
			r.Equal(r.work("work_1"), "failed")
			r.Equal(len(a.published("receipt")), 1)
		})
	}
	over(t, "seed-001#67 agh-network#123: with the policy off nothing is refused for its proof, and what verifies is shown so", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		r.Equal(r.get("/trust")["trust"], any(obj{"policy": "off", "pins": obj{}}))
		good := f.signed(mason, obj{"to": nil}, nil)
		odd := f.send(obj{"proof": obj{"profile": "somebody's own"}})
		wrong := f.send(obj{"proof": obj{"profile": wire.Profile, "sig": "x"}})
		f.greet(obj{"capabilities": []string{"task.write"}})
		r.Equal(tug.inbox(), []string{good, odd, wrong})
		r.Equal(each(tug.waiting(), "trust"), []string{"verified", "unverified", "unverified"})
		rows := list(r.get("/channels/dock/threads/thread_tide/messages"), "messages")
		trust := map[any]any{}
		for _, m := range rows {
			trust[m["message_id"]] = m["trust"]
		}
		r.Equal(trust, map[any]any{good: "verified", odd: "unverified", wrong: "unverified"})
		f.signed(mason, obj{"to": nil}, forge) // outside of the grammar, and not proved
		f.signed(mason, obj{"to": nil}, func(e obj) { e["proof"] = nil })
		f.signed(mason, obj{"to": nil}, func(e obj) { e["proof"] = obj{"profile": "somebody's own"} })
		r.Equal(len(tug.inbox()), 3)
		r.Equal(r.reasons(), []string{"malformed", "malformed", "malformed"})
		f.signed(mason, greeting(mason.Handle()), nil)
		r.Equal(r.get("/peers/" + mason.Handle())["peer"].(obj)["trust"], any("verified"))
		r.Equal(r.get("/peers/far.s9")["peer"].(obj)["trust"], any("unverified"))
	})
	over(t, "agh-network#46: a privileged capability needs a proof where proofs count", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		for _, policy := range []string{"verify", "require"} {
			r.ask(http.StatusOK, "PUT", "/trust", obj{"policy": policy})
			f.greet(obj{"capabilities": []string{"task.write"}})
			r.Equal(len(r.present()), 2)
		}
		r.Equal(r.reasons(), []string{"verification_failed", "verification_failed"})
		r.ask(http.StatusOK, "PUT", "/trust", obj{"policy": "verify"})
		members := greeting(f.id, "task.write")
		members["proof"] = obj{"by": "anything"}
		f.send(members)
		r.Equal(r.present(), []string{"crane.s01", "tug.s02", f.id})
	})
	runTrust(t, "under require only proofs count, and who has none leaves", func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		f.signed(mason, greeting(mason.Handle()), nil)
		r.Equal(len(r.present()), 4)
		r.ask(http.StatusOK, "PUT", "/trust", obj{"policy": "require"})
		r.Equal(r.present(), []string{"crane.s01", "tug.s02", mason.Handle()})
		f.greet(nil)
		f.send(nil)
		f.send(obj{"proof": obj{"profile": "somebody's own"}})
		r.Equal(r.reasons(), []string{"verification_failed", "verification_failed", "unsupported_profile"})
		id := f.signed(mason, nil, nil)
		r.Equal(tug.inbox(), []string{id})
		r.restart()
		r.Equal(r.get("/trust")["trust"].(obj)["policy"], any("require"))
		f.send(nil)
		r.Equal(tug.inbox(), []string{id})
	})
	runTrust(t, "policies that cannot be are refused and change nothing", func(r *rig, a *air, crane, tug *host, f *far) {
		r.ask(http.StatusOK, "PUT", "/trust", obj{"policy": "verify", "pins": obj{"mason": mason.KeyID()}})
		for _, bad := range []any{obj{}, obj{"policy": "on"}, obj{"policy": "off", "pins": obj{"Mason": mason.KeyID()}}, obj{"policy": "off", "pins": obj{"mason": "sha256:1"}}, obj{"policy": "off", "more": 1}, "["} {
			r.ask(http.StatusBadRequest, "PUT", "/trust", bad)
		}
		r.ask(http.StatusNotFound, "PUT", "/agh/workspaces/ws_none/network/trust", obj{"policy": "off"})
		want := obj{"policy": "require", "pins": obj{"mason": mason.KeyID()}}
		r.Equal(r.ask(http.StatusOK, "PUT", "/trust", obj{"policy": "require"})["trust"], any(want))
		r.Equal(r.get("/trust")["trust"], any(want))
	})
}

func runTrust(t *testing.T, name string, fn func(r *rig, a *air, crane, tug *host, f *far)) {
	t.Helper()
	a := newAir()
	runs(t, name, agh.Config{Broker: a}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		synctest.Wait()
		fn(r, a, crane, tug, &far{r, a, "far.s9"})
	})
}

func TestSigning(t *testing.T) {
	t.Parallel()
	mason, stranger := keyFor("mason", "one"), keyFor("weaver", "two")
	find := func(handle string) (*wire.Key, error) {
		if handle == mason.Handle() {
			return mason, nil
		}
		return nil, fault.New(fault.NotFound, "there is no key %q", handle)
	}
	over(t, "agh-network#125 agh-network#120: a hosted handle signs all it says, on its fingerprint's subject", agh.Config{Key: find}, func(r *rig, a *air, crane, tug *host, f *far) {
		handle := mason.Handle()
		w := r.serve("operator", "POST", "/channels/dock/peers", obj{"agent": "weaver", "peer_id": stranger.Handle()})
		r.Equal(w.Code, http.StatusBadRequest)
		r.Contains(w.Body.String(), "parley agh keys new")
		signer := r.join("dock", "crane", handle) // crane has a v0 id and a handle
		synctest.Wait()
		r.True(slices.Contains(a.subjects(), "agh.network.v0.ws_harbor.dock.peer."+handle[len(handle)-32:]), "it hears %v", a.subjects())
		f.greet(nil)
		signer.send(http.StatusBadRequest, obj{"ext": obj{"priority": "high"}})
		crane.send(http.StatusOK, obj{"ext": obj{"priority": "high"}})
		signer.say("all", obj{"ext": obj{"acme.priority": "high"}})
		signer.say("you", obj{"to": "far.s9", "work_id": "work_1"})
		f.send(obj{"to": handle, "work_id": "work_9", "body": obj{"text": ""}})                                      // answered by a receipt
		f.send(obj{"kind": "whois", "surface": nil, "thread_id": nil, "to": handle, "body": obj{"type": "request"}}) // and by a card
		f.send(obj{"kind": "trace", "work_id": "work_1", "to": handle, "body": obj{"state": "completed"}})
		synctest.Wait()
		r.Equal(r.work("work_1"), "completed")
		kinds := map[wire.Kind]int{}
		a.mu.Lock()
		log := slices.Clone(a.log)
		a.mu.Unlock()
		for _, m := range log {
			e, err := wire.Decode(m.data, wire.Options{SkipFreshness: true, Handles: true})
			if err != nil || e.From != handle {
				continue
			}
			state, why := wire.Verify(e, m.data)
			r.True(state == wire.Verified, "%s is %s: %v", m.data, state, why)
			kinds[e.Kind]++
			if greet, ok := e.Content.(*wire.GreetBody); ok {
				r.Equal(greet.Card.Profiles, []string{"agh-network/v0", "agh-network.nats/v0", wire.Profile})
				r.Equal(greet.Card.TrustModes, []string{"verified", "unverified"})
			}
		}
		r.Equal(kinds, map[wire.Kind]int{wire.Greet: 1, wire.Say: 2, wire.Receipt: 1, wire.Whois: 1})
		r.Equal(each(tug.waiting(), "trust"), []string{"unverified", "verified"})
		rows := list(r.get("/channels/dock/threads/thread_tide/messages"), "messages")
		said := ""
		for _, key := range each(rows, "key") {
			if strings.HasPrefix(key, handle+"/") {
				said = key
			}
		}
		r.True(said != "", "%v", rows)
		next := append(list(r.get("/channels/dock/threads/thread_tide/messages?after="+said), "messages"), list(r.get("/channels/dock/threads/thread_tide/messages?before="+said), "messages")...)
		r.Equal(len(next), len(rows)-1)
	})
	runTrust(t, "a name that is not proved does not act for a hosted handle", func(r *rig, a *air, crane, tug *host, f *far) {
		r.cfg.Key = find
		r.restart()
		signer := r.join("dock", "crane", mason.Handle())
		synctest.Wait()
		f.signed(mason, obj{"to": "tug.s02"}, nil) // the key is also used elsewhere, and is still not ours
		r.Equal(tug.inbox(), []string{})
		r.Equal(r.reasons(), []string{"spoofed"})
		r.cfg.Key = nil // the key is lost
		r.restart()
		w := r.serve("operator", "POST", "/send", obj{"session_id": signer.session, "channel": "dock", "kind": "say", "surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "x"}})
		r.Equal(w.Code, http.StatusServiceUnavailable)
		r.True(!strings.Contains(w.Body.String(), "seed"), "%s", w.Body)
	})
}

func TestVersions(t *testing.T) {
	t.Parallel()
	mason := keyFor("mason", "one")
	over(t, "agh-network#3 seed-001#121: v1 is refused unless it is on, and then has subjects of its own", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		send := func(subject, protocol string) string {
			e := f.envelope(obj{"to": nil, "protocol": protocol})
			f.on(subject+".ws_harbor.dock.broadcast", must(json.Marshal(e)))
			return e["id"].(string)
		}
		send("agh.network.v0", "agh-network/v1")
		send("agh.network.v1", "agh-network/v1")
		r.Equal(tug.inbox(), []string{})
		r.Equal(r.reasons(), []string{"malformed"})
		r.cfg.V1 = true
		r.restart()
		before := len(a.subjects())
		r.Equal(before, 6)
		send("agh.network.v0", "agh-network/v1")
		send("agh.network.v1", "agh-network/v0")
		r.Equal(r.reasons(), []string{"malformed", "malformed", "subject_mismatch"})
		id := send("agh.network.v1", "agh-network/v1")
		r.Equal(tug.inbox(), []string{id})
		// A peer of v1 is answered in v1.
		e := (&far{r, a, mason.Handle()}).envelope(greeting(mason.Handle()))
		e["protocol"] = "agh-network/v1"
		data, err := mason.Sign(must(json.Marshal(e)))
		r.NoError(err)
		f.on("agh.network.v1.ws_harbor.dock.broadcast", data)
		crane.say("you", obj{"to": mason.Handle()})
		synctest.Wait()
		said := a.published("say")
		last := said[len(said)-1]
		r.Equal([]any{last["protocol"], last["subject"]}, []any{"agh-network/v1", "agh.network.v1.ws_harbor.dock.peer." + mason.Handle()[6:]})
	})
	weaver := keyFor("weaver", "two")
	runTrust(t, "what is said to all is heard in v1 too, while somebody speaks only that, and is signed anew", func(r *rig, a *air, crane, tug *host, f *far) {
		r.cfg.V1 = true
		r.cfg.Key = func(string) (*wire.Key, error) { return mason, nil }
		r.restart()
		signer := r.join("dock", "crane", mason.Handle())
		greet := func(key *wire.Key, protocol, prefix string) {
			e := (&far{r, a, key.Handle()}).envelope(greeting(key.Handle()))
			e["protocol"] = protocol
			data, err := key.Sign(must(json.Marshal(e)))
			r.NoError(err)
			f.on(prefix+".ws_harbor.dock.broadcast", data)
		}
		// heard returns the subjects on which an id was published, in order.
		heard := func(kind, id string) (subjects []string) {
			synctest.Wait()
			a.mu.Lock()
			defer a.mu.Unlock()
			for _, m := range a.log {
				e, err := wire.Decode(m.data, wire.Options{SkipFreshness: true, Handles: true, V1: true})
				if err != nil || e.ID != id || string(e.Kind) != kind {
					continue
				}
				want := wire.Verified
				if e.From == "crane.s01" {
					want = wire.Unverified
				}
				state, why := wire.Verify(e, m.data)
				r.True(state == want, "%s is %s: %v", m.data, state, why)
				r.Equal(wire.ProtocolOf(e.Version()), e.Protocol)
				subjects = append(subjects, m.subject)
			}
			return subjects
		}
		const v0, v1 = "agh.network.v0.ws_harbor.dock.broadcast", "agh.network.v1.ws_harbor.dock.broadcast"
		r.Equal(heard("say", signer.say("nobody speaks v1", nil)), []string{v0})
		greet(weaver, "agh-network/v1", "agh.network.v1")
		r.Equal(heard("say", signer.say("signed", nil)), []string{v0, v1})
		r.Equal(heard("say", crane.say("not signed", obj{"ext": obj{"a.b": "c"}})), []string{v0, v1})
		id := signer.send(http.StatusOK, obj{"kind": "whois", "surface": nil, "thread_id": nil, "body": obj{"type": "request"}})["message"].(obj)["id"].(string)
		r.Equal(len(heard("whois", id)), 2)
		r.Equal(r.reasons(), []string{})                  // our own echo is not a spoofed message
		greet(weaver, "agh-network/v0", "agh.network.v0") // it speaks both
		r.Equal(heard("say", signer.say("again", nil)), []string{v0})
	})
}
