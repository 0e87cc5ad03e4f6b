package workflow_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/conformance/spec"
	graphs "github.com/parley-hub/parley/graph"
)

const pipeline = `{"initial_speaker":"@desk","transitions":[
 {"when":{"name":"from_speaker","args":{"agent_id":"@desk"}},"then":{"name":"agent","args":{"agent_id":"@checker"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@checker"}},"then":{"name":"agent","args":{"agent_id":"@packer"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@packer"}},"then":{"name":"agent","args":{"agent_id":"@courier"}},"priority":0}],
 "default_target":{"name":"terminate","args":{"reason":"sequence_complete"}},"max_turns":4}`

const hierarchy = `{"initial_speaker":"@front","transitions":[
 {"when":{"name":"from_speaker","args":{"agent_id":"@writer"}},"then":{"name":"terminate","args":{"reason":"delivered"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@finder"}},"then":{"name":"agent","args":{"agent_id":"@lead"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@front"}},"then":{"name":"agent","args":{"agent_id":"@lead"}},"priority":0}],
 "default_target":{"name":"terminate","args":{"reason":"fell_off"}},"max_turns":10}`

const star = `{"initial_speaker":"@asker","transitions":[
 {"when":{"name":"from_speaker","args":{"agent_id":"@tides"}},"then":{"name":"agent","args":{"agent_id":"@core"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@trains"}},"then":{"name":"agent","args":{"agent_id":"@core"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@core"}},"then":{"name":"stay","args":{}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@asker"}},"then":{"name":"agent","args":{"agent_id":"@core"}},"priority":0}],
 "default_target":{"name":"terminate","args":{"reason":"fell_off"}},"max_turns":20}`

const coordinator = `{"initial_speaker":"@client","transitions":[],"default_target":{"name":"agent","args":{"agent_id":"@chair"}},"max_turns":14}`

const escalation = `{"initial_speaker":"@caller","transitions":[
 {"when":{"name":"tool_called","args":{"tool_name":"settle"}},"then":{"name":"terminate","args":{"reason":"settled"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@caller"}},"then":{"name":"agent","args":{"agent_id":"@l1"}},"priority":0}],
 "default_target":{"name":"terminate","args":{"reason":"fell_off"}},"max_turns":10}`

const feedback = `{"initial_speaker":"@brief","transitions":[
 {"when":{"name":"context_equals","args":{"key":"accepted","value":true}},"then":{"name":"terminate","args":{"reason":"accepted"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@brief"}},"then":{"name":"agent","args":{"agent_id":"@author"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@author"}},"then":{"name":"agent","args":{"agent_id":"@editor"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@editor"}},"then":{"name":"agent","args":{"agent_id":"@author"}},"priority":0}],
 "default_target":{"name":"terminate","args":{"reason":"exhausted"}},"max_turns":10}`

const queue = `{"initial_speaker":"@triage","transitions":[
 {"when":{"name":"context_equals","args":{"key":"drained","value":true}},"then":{"name":"terminate","args":{"reason":"all_done"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@digger"}},"then":{"name":"agent","args":{"agent_id":"@triage"}},"priority":0},
 {"when":{"name":"from_speaker","args":{"agent_id":"@scribe"}},"then":{"name":"agent","args":{"agent_id":"@triage"}},"priority":0},
 {"when":{"name":"context_equals","args":{"key":"job","value":"dig"}},"then":{"name":"agent","args":{"agent_id":"@digger"}},"priority":0},
 {"when":{"name":"context_equals","args":{"key":"job","value":"write"}},"then":{"name":"agent","args":{"agent_id":"@scribe"}},"priority":0}],
 "default_target":{"name":"terminate","args":{"reason":"idle"}},"max_turns":30}`

// sequence returns the factory's graph over participants' names.
func sequence(t *spec.T, names ...string) string {
	t.Helper()
	g, err := graphs.NewSequence(ids(names...))
	t.NoError(err)
	text, err := g.MarshalJSON()
	t.NoError(err)
	return string(text)
}

// The patterns of the cookbook, with their speaker sequences.
func TestCookbook(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-002#112: a pipeline runs in order", func(t *spec.T) {
		p := open(t, pipeline, "desk", "checker", "packer", "courier")
		play(t, p, `
			desk T -> checker
			checker P -> packer
			packer P -> courier
			courier P -> closed sequence_complete`)
		t.Equal(state(p).Facts.Turns, 4)
		t.True(state(p).Facts.Ended, "nobody is expected")
	})
	spec.Check(t, "seed-002#112: a star returns to its core", func(t *spec.T) {
		p := open(t, star, "asker", "core", "tides", "trains")
		play(t, p, `
			asker T -> core
			core H ask_spoke tides -> tides
			tides P -> core
			core P -> core
			core H ask_spoke trains -> trains
			trains P -> core
			core C {"summary":"both spokes heard"} -> core
			core F answered -> closed answered`)
		t.Equal(vars(t, p), `{"summary":"both spokes heard"}`)
	})
	spec.Check(t, "seed-002#112: feedback loop", func(t *spec.T) {
		p := open(t, feedback, "brief", "author", "editor")
		play(t, p, `
			brief T -> author
			author P -> editor
			editor P -> author
			author P -> editor`)
		before := state(p).Facts
		play(t, p, `editor C {"accepted":true} -> editor`)
		t.Equal(state(p).Facts.Turns, before.Turns)
		t.Equal(state(p).Facts.LastSpeaker, before.LastSpeaker)
		t.Equal(state(p).Facts.LastEnvelope, before.LastEnvelope)
		play(t, p, `editor P -> closed accepted`)
	})
	spec.Check(t, "seed-002#112: feedback loop that is never accepted", func(t *spec.T) {
		p := open(t, feedback, "brief", "author", "editor")
		play(t, p, `
			brief T -> author
			author P -> editor
			editor P -> author
			author P -> editor
			editor P -> author
			author P -> editor
			editor P -> author
			author P -> editor
			editor P -> author
			author P -> closed max_turns`)
	})
	spec.Check(t, "seed-002#112: triage with tasks, static", func(t *spec.T) {
		vars5 := `{"todo":["dig","write"],"kind":"memo"}`
		names := []string{"triage", "digger", "scribe", "proof", "out"}
		knobs := `{"graph":` + sequence(t, names...) + `,"context_vars":` + vars5 + `}`
		p, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, knobs, ids(names...)...))
		t.NoError(err)
		play(t, p, `
			triage T -> digger
			digger P -> scribe
			scribe P -> proof
			proof P -> out
			out P -> closed sequence_complete`)
		t.Equal(vars(t, p), `{"kind":"memo","todo":["dig","write"]}`)
	})
	spec.Check(t, "seed-002#112: triage with tasks, dynamic queue", func(t *spec.T) {
		p := open(t, queue, "triage", "digger", "scribe")
		play(t, p, `
			triage C {"job":"dig"} -> triage
			triage P -> digger
			digger P -> triage
			triage C {"job":"write"} -> triage
			triage P -> scribe
			scribe P -> triage
			triage C {"drained":true} -> triage
			triage P -> closed all_done`)
	})
	t.Run("hierarchy", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		play(c, open(c, hierarchy, "front", "lead", "finder", "writer"), `
			front T -> lead
			lead H ask_finder finder -> finder
			finder P -> lead
			lead H ask_writer writer -> writer
			writer P -> closed delivered`)
		play(c, open(c, hierarchy, "front", "lead", "finder", "writer"), `
			front T -> lead
			lead P -> closed fell_off`)
	})
	t.Run("coordinator", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		play(c, open(c, coordinator, "client", "chair", "legal", "ops"), `
			client T -> chair
			chair H pass legal -> legal
			legal P -> chair
			chair H pass ops -> ops
			ops P -> chair
			chair F  -> closed finished`)
		p := open(c, coordinator, "client", "chair", "legal", "ops")
		play(c, p, "client T -> chair\n"+strings.Repeat("chair P -> chair\n", 12)+"chair P -> closed max_turns")
		c.Equal(state(p).Facts.Turns, 14)
		c.Equal(state(p).Facts.Expected, id("chair"))
		byCreator := strings.Replace(coordinator, `{"name":"agent","args":{"agent_id":"@chair"}}`, `{"name":"revert_to_initiator","args":{}}`, 1)
		play(c, open(c, strings.Replace(byCreator, "@client", "@chair", 1), "chair", "legal", "ops"), `
			chair T -> chair
			chair H pass legal -> legal
			legal P -> chair
			chair F  -> closed finished`)
	})
	t.Run("escalation", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c, escalation, "caller", "l1", "l2", "l3")
		play(c, p, `
			caller T -> l1
			l1 H up l2 -> l2
			l2 H up l3 -> l3
			l3 C {"answer":"reset it"} -> l3
			l3 S settle -> closed settled`)
		c.Equal(vars(c, p), `{"answer":"reset it"}`)
		play(c, open(c, escalation, "caller", "l1", "l2", "l3"), `
			caller T -> l1
			l1 S settle -> closed settled`)
	})
	t.Run("redundant", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c, sequence(c, "desk", "plain", "witty", "geek", "judge"), "desk", "plain", "witty", "geek", "judge")
		play(c, p, `
			desk T -> plain
			plain P -> witty
			witty P -> geek
			geek P -> judge
			judge P -> closed sequence_complete`)
		c.Equal(state(p).Facts.Turns, 5)
	})
	t.Run("context-aware, by handoff", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		g := graph("asker", end("fell_off"), 0,
			rule(from("invoices"), end("invoices_done")), rule(from("bugs"), end("bugs_done")), rule(from("misc"), end("misc_done")),
			rule(from("asker"), to("sorter")))
		play(c, open(c, g, "asker", "sorter", "invoices", "bugs", "misc"), `
			asker T -> sorter
			sorter H classify_bug bugs -> bugs
			bugs P -> closed bugs_done`)
	})
	t.Run("swarm with revert", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		g := graph("triage", end("x"), 0, rule(called("to_eng"), to("eng")), rule(from("eng"), node("revert_to_initiator", "{}")))
		play(c, open(c, g, "triage", "eng"), `
			triage S to_eng -> eng
			eng T -> triage`)
	})
}
