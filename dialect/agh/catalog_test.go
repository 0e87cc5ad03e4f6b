package agh_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-hub/parley/dialect/agh"
)

// whois sends a whois as a remote peer and returns the answers.
func (f *far) whois(ext obj, members obj) []obj {
	f.r.Helper()
	before := len(f.a.published("whois"))
	all := obj{"kind": "whois", "surface": nil, "thread_id": nil, "to": nil, "body": obj{"type": "request"}}
	if ext != nil {
		all["ext"] = ext
	}
	for k, v := range members {
		all[k] = v
	}
	f.send(all)
	return f.a.published("whois")[before:]
}

var lifting = obj{"capabilities": []obj{
	{"id": "lift-load", "summary": "Lift one load.", "outcome": "The load stands on the quay."},
	{"id": "chart", "summary": " Chart tides ", "outcome": "A chart.", "requirements": []string{"read-gauge", "draw"}},
	{"id": "task.write", "summary": "Write tasks.", "outcome": "Tasks."},
}}

func TestCatalogs(t *testing.T) {
	t.Parallel()
	over(t, "agh-network#107 agh-network#106: a card has the catalog in brief, and its ids in the same order", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		greets := len(a.published("greet"))
		r.ask(http.StatusOK, "PUT", "/agh/agents/crane/capabilities", lifting)
		synctest.Wait()
		now := a.published("greet")[greets:]
		r.Equal(each(now, "from"), []string{"crane.s01"}) // at once
		card := now[0]["body"].(obj)["peer_card"].(obj)
		// A capability that needs a proof is not offered without one.
		r.Equal(card["capabilities"], any([]any{"lift-load", "chart"}))
		r.Equal(card["ext"], any(obj{"agh.capabilities_brief": []any{obj{"id": "lift-load", "summary": "Lift one load."}, obj{"id": "chart", "summary": "Chart tides"}}}))
		r.Equal(now[0]["body"].(obj)["summary"], any("crane ready for Lift one load. +1 more"))
		peer := r.get("/peers/crane.s01")["peer"].(obj)
		r.Equal(peer["peer_card"].(obj)["capabilities"], any([]any{obj{"id": "lift-load", "summary": "Lift one load."}, obj{"id": "chart", "summary": "Chart tides"}}))
		r.Equal(len(peer["capability_catalog"].(obj)["capabilities"].([]any)), 2)
		none := f.whois(obj{"agh.include": []string{"capability_catalog"}}, obj{"to": "tug.s02"})[0]
		bare := none["body"].(obj)["peer_card"].(obj)
		_, brief := bare["ext"]
		r.Equal([]any{bare["capabilities"], brief, none["ext"]}, []any{[]any{}, false, obj{"agh.capability_catalog": obj{"capabilities": []any{}}}})
	})
	over(t, "agh-network#104 agh-network#105: the rich catalog is told where it is asked for, in its own order", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		r.ask(http.StatusOK, "PUT", "/agh/agents/crane/capabilities", lifting)
		r.restart() // it is stored
		synctest.Wait()
		ids := func(ext obj) []string {
			answer := f.whois(ext, obj{"to": "crane.s01"})[0]
			said, ok := answer["ext"].(obj)
			if !ok {
				return nil
			}
			entries := list(said["agh.capability_catalog"].(obj), "capabilities")
			r.Equal(len(answer["body"].(obj)["peer_card"].(obj)["capabilities"].([]any)), len(entries))
			for _, e := range entries {
				r.True(strings.HasPrefix(e["digest"].(string), "sha256:"), "%v", e)
				if e["id"] == "lift-load" {
					r.Equal(e["digest"], any("sha256:ee37844f021db568e388a9fcb0fa5c476512cc19e1f2713b6e0c9ca4f0b2e898"))
				} else {
					r.Equal(e["requirements"], any([]any{"draw", "read-gauge"}))
				}
			}
			return each(entries, "id")
		}
		want := []string{"capability_catalog", "else"}
		r.Equal(len(ids(nil)), 0)
		r.Equal(ids(obj{"agh.include": []string{"else"}}), []string(nil))
		r.Equal(ids(obj{"agh.include": want}), []string{"lift-load", "chart"})
		r.Equal(ids(obj{"agh.include": want, "agh.capability_ids": []string{"chart", "none", "lift-load"}}), []string{"lift-load", "chart"})
		r.Equal(ids(obj{"agh.include": want, "agh.capability_ids": []string{" ", ""}}), []string{})
		r.Equal(ids(obj{"agh.include": want, "agh.capability_ids": "chart"}), []string{})
		// A query finds a capability.
		r.Equal(each(f.whois(nil, obj{"body": obj{"type": "request", "query": "chart"}}), "from"), []string{"crane.s01"})
		// A hosted peer that asks gets the answer in its inbox.
		tug.send(http.StatusOK, obj{"kind": "whois", "surface": nil, "thread_id": nil, "to": "crane.s01", "body": obj{"type": "request"}, "ext": obj{"agh.include": want}})
		r.Equal(len(tug.waiting()[0]["ext"].(obj)["agh.capability_catalog"].(obj)["capabilities"].([]any)), 2)
	})
	over(t, "agh-network#109: an answer that is too large is not sent", agh.Config{}, func(r *rig, a *air, crane, tug *host, f *far) {
		one := func(outcome int) obj {
			return obj{"capabilities": []obj{{"id": "a", "summary": "s", "outcome": strings.Repeat("o", outcome)}}}
		}
		asked := obj{"agh.include": []string{"capability_catalog"}}
		r.ask(http.StatusOK, "PUT", "/agh/agents/crane/capabilities", one(1_040_000))
		r.Equal(len(f.whois(asked, obj{"to": "crane.s01"})), 1)
		r.ask(http.StatusOK, "PUT", "/agh/agents/crane/capabilities", one(1_048_400))
		r.Equal(len(f.whois(asked, obj{"to": "crane.s01"})), 0)
		r.Equal(len(f.whois(nil, obj{"to": "crane.s01"})), 1)
		tug.send(http.StatusOK, obj{"kind": "whois", "surface": nil, "thread_id": nil, "to": "crane.s01", "body": obj{"type": "request"}, "ext": asked})
		r.Equal(tug.inbox(), []string{})
	})
	runTrust(t, "catalogs that cannot be are refused, and one is its agent's own", func(r *rig, a *air, crane, tug *host, f *far) {
		const at = "/agh/agents/crane/capabilities"
		r.ask(http.StatusOK, "PUT", at, obj{"capabilities": []obj{{"id": "a", "summary": "s", "outcome": "o"}}})
		for _, bad := range []any{
			obj{},
			obj{"capabilities": obj{}},
			obj{"capabilities": []obj{}, "version": 1},
			"x",
			obj{"capabilities": []obj{{"id": "a"}}},
			obj{"capabilities": []obj{{"id": "a", "summary": "s", "outcome": "o", "digest": "x"}}},
			obj{"capabilities": []obj{{"id": "a", "summary": "s", "outcome": "o"}, {"id": "a", "summary": "s", "outcome": "o"}}},
		} {
			r.ask(http.StatusBadRequest, "PUT", at, bad)
		}
		r.ask(http.StatusNotFound, "PUT", "/agh/agents/nobody/capabilities", lifting)
		for as, want := range map[string]int{"operator": 200, "agent:crane": 200, "agent:tug": 403, "reader": 403, "nobody": 401} {
			r.askAs(as, want, "PUT", at, obj{"capabilities": []obj{{"id": "a", "summary": "s", "outcome": "o"}}})
		}
		r.Equal(each(list(r.get(at)["capability_catalog"].(obj), "capabilities"), "id"), []string{"a"})
		r.ask(http.StatusNoContent, "DELETE", at, nil)
		r.ask(http.StatusNoContent, "DELETE", at, nil)
		r.Equal(list(r.get(at)["capability_catalog"].(obj), "capabilities"), []obj{})
		r.Equal(len(r.get("/peers/crane.s01")["peer"].(obj)["peer_card"].(obj)["capabilities"].([]any)), 0)
	})
}
