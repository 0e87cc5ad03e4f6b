package agh_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/bridge"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

const farName = "agh/ws_harbor/far.s9"

// person is an identity of another dialect.
type person struct {
	r    *rig
	id   string
	name string
}

func (r *rig) person(name string) *person {
	r.Helper()
	p, err := r.hub.Register(context.Background(), hub.Registration{Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}, Proved: true})
	r.NoError(err)
	return &person{r, p.ID(), name}
}

// open opens a channel, and returns its id without waiting until it is open.
func (p *person) open(kind, knobs string, names ...string) (id string, opened <-chan error) {
	p.r.Helper()
	o, err := p.r.hub.WithIDs(hub.Opening{Creator: p.id, Type: kind, Participants: names, Knobs: []byte(knobs), Intent: "the tide"})
	p.r.NoError(err)
	done := make(chan error, 1)
	h := p.r.hub
	go func() {
		_, err := h.Open(context.Background(), o)
		done <- err
	}()
	synctest.Wait()
	select {
	case err := <-done:
		p.r.NoError(err)
		done <- nil
	default:
	}
	list, _, err := p.r.hub.Channels(context.Background(), hub.ListOptions{Agent: p.id, Newest: true, Type: kind})
	p.r.NoError(err)
	p.r.True(len(list) > 0, "no channel")
	return list[0].ID, done
}

func (p *person) says(channelID, text string) string { return p.answers(channelID, "", text) }

// answers posts a text that an envelope caused.
func (p *person) answers(channelID, cause, text string) string {
	p.r.Helper()
	data := must(json.Marshal(obj{"text": text}))
	id, err := p.r.hub.Post(context.Background(), &envelope.Envelope{Channel: channelID, Sender: p.id, Type: envelope.TypeText, Data: data, Causation: cause}, nil)
	p.r.NoError(err)
	synctest.Wait()
	return id
}

// log lists a channel's envelopes as "name type text".
func (r *rig) log(channelID string) []string {
	r.Helper()
	lines := []string{}
	for e, err := range r.hub.Log(context.Background(), channelID, 0, 0) {
		r.NoError(err)
		line := r.hub.Name(e.Sender) + " " + e.Type
		if e.Type == envelope.TypeText {
			line += " " + channel.TextMember(e.Data, "text")
		}
		lines = append(lines, line)
	}
	return lines
}

// ids returns the ids of a channel's first envelope and of its last text.
func (r *rig) ids(channelID string) (first, text string) {
	r.Helper()
	for e, err := range r.hub.Log(context.Background(), channelID, 0, 0) {
		r.NoError(err)
		first = cmp.Or(first, e.ID)
		if e.Type == envelope.TypeText {
			text = e.ID
		}
	}
	return first, text
}

// texts returns the texts of a channel.
func (r *rig) texts(channelID string) []string {
	r.Helper()
	lines := []string{}
	for _, line := range r.log(channelID) {
		if name, text, ok := strings.Cut(line, " "+envelope.TypeText+" "); ok {
			lines = append(lines, name+": "+text)
		}
	}
	return lines
}

// told returns the texts and work that the peer received over the broker.
func (f *far) told() []string {
	lines := []string{}
	for _, e := range f.a.published("say") {
		if e["to"] == f.id && e["surface"] == "direct" {
			lines = append(lines, fmt.Sprint(e["body"].(obj)["text"], " ", e["work_id"]))
		}
	}
	return lines
}

// last returns the last say that the peer received.
func (f *far) last() obj {
	f.r.Helper()
	all := f.a.published("say")
	f.r.True(len(all) > 0, "nothing was told")
	return all[len(all)-1]
}

// answer sends a message about what the peer received last.
func (f *far) answer(members obj) string {
	f.r.Helper()
	about := f.last()
	all := obj{"surface": "direct", "thread_id": nil, "direct_id": about["direct_id"], "to": about["from"], "work_id": about["work_id"]}
	for k, v := range members {
		all[k] = v
	}
	return f.send(all)
}

func (r *rig) state(id string) channel.Lifecycle {
	r.Helper()
	m, err := r.hub.Channel(context.Background(), id)
	r.NoError(err)
	return m.State
}

func own(id string) string { return "work_" + id + "-" }

func TestPeerInChannel(t *testing.T) {
	t.Parallel()
	runTrust(t, "a present peer is asked, told and heard", func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(obj{"capabilities": []string{"tides"}})
		ada := r.person("ada")
		id, opened := ada.open("conversation", "", farName)
		r.NoError(<-opened)
		asked := f.last()
		r.Equal([]any{asked["surface"], asked["to"], asked["work_id"], asked["body"].(obj)["intent"]}, []any{"direct", "far.s9", nil, "invitation"})
		r.True(strings.HasPrefix(asked["from"].(string), "ada."), "told by %v", asked["from"])
		r.True(strings.Contains(asked["body"].(obj)["text"].(string), "the tide"), "asked %v", asked["body"])

		trigger := ada.says(id, "how high?")
		told := f.last()
		r.Equal(f.told()[1:], []string{"how high? " + own(id) + "4"})
		ext := told["ext"].(obj)
		r.Equal([]any{told["from"], ext["parley.hops"], ext["parley.speaker"], ext["parley.channel"]},
			[]any{asked["from"], 1.0, obj{"id": ada.id, "name": "ada"}, obj{"id": id, "type": "conversation"}})
		r.Equal(ext["parley.origin"], any(obj{"dialect": "agh", "id": trigger}))

		f.answer(obj{"kind": "receipt", "body": obj{"for_id": told["id"], "status": "accepted"}})
		f.answer(obj{"kind": "trace", "body": obj{"state": "working", "message": "measuring"}})
		said := f.answer(obj{"body": obj{"text": "3 m"}, "trace_id": "t-1"})
		f.answer(obj{"kind": "trace", "body": obj{"state": "completed", "message": "measured"}})
		r.Equal(r.log(id)[4:], []string{
			farName + " ag2.task.started", farName + " ag2.task.progress", farName + " ag2.msg.text 3 m", farName + " ag2.task.completed",
		})
		for e, err := range r.hub.Log(context.Background(), id, 7, 7) {
			r.NoError(err)
			r.Equal(e.Origin, envelope.Origin{Dialect: "agh", ID: "far.s9/" + said, Hops: 1})
			r.Equal([]string{e.Causation, e.Trace, e.Task}, []string{trigger, "t-1", own(id) + "4"})
		}

		// An answer to a message that the peer sent or received names that message;
		// other messages are not named.
		_, answers := r.ids(id)
		ada.answers(id, answers, "and now?")
		r.Equal(f.last()["causation_id"], any(said))
		ada.answers(id, trigger, "how high?")
		r.Equal(f.last()["causation_id"], told["id"])
		opening, _ := r.ids(id)
		ada.answers(id, opening, "hm")
		r.Equal(f.last()["causation_id"], any(nil))

		// Its identity persists, with its card as its resume.
		far, err := r.hub.Agent(farName)
		r.NoError(err)
		r.Equal(far.ID(), wire.RemoteIdentity("ws_harbor", "far.s9"))
		r.False(r.hub.Transient(far.ID()), "it is only adopted")
		details, err := r.hub.Details(context.Background(), far.ID())
		r.NoError(err)
		r.Equal(details.Resume.ClaimedCapabilities, []string{"tides"})
		pass(40 * time.Second)
		f.greet(obj{"capabilities": []string{"tides", "moon"}})
		details, err = r.hub.Details(context.Background(), far.ID())
		r.NoError(err)
		r.Equal(details.Resume.ClaimedCapabilities, []string{"tides", "moon"})
		_, err = r.hub.Register(context.Background(), hub.Registration{Proved: true, Passport: &identity.Passport{Name: "agh/ws_harbor/near.s1", Auth: identity.Auth{Scheme: "none"}}})
		r.Equal(fault.CodeOf(err), fault.Invalid)
		_, err = r.hub.Agent("agh/nowhere/far.s9")
		r.Equal(fault.CodeOf(err), fault.NotFound)
	})
	runTrust(t, "one that is not there is asked when it comes", func(r *rig, a *air, crane, tug *host, f *far) {
		ada := r.person("ada")
		id, opened := ada.open("conversation", "", farName)
		r.Equal(r.state(id), channel.Pending)
		f.greet(nil)
		r.NoError(<-opened)
		r.Equal(len(f.told()), 1)
		ada.says(id, "one")
		pass(2 * time.Minute) // it is no longer present
		ada.says(id, "two")
		r.Equal(f.told()[1:], []string{"one " + own(id) + "4"})
		r.False(r.hub.Online(wire.RemoteIdentity("ws_harbor", "far.s9")), "it reads nothing")
		f.greet(nil)
		r.Equal(f.told()[1:], []string{"one " + own(id) + "4", "two " + own(id) + "5"})
	})
	runTrust(t, "a crash tells nothing twice, and loses no answer", func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		ada := r.person("ada")
		id, opened := ada.open("conversation", "", farName)
		r.NoError(<-opened)
		ada.says(id, "one")
		f.answer(obj{"body": obj{"text": "first"}})
		r.crash() // the cursors are lost
		f.greet(nil)
		pass(5 * time.Second)
		want := []string{"ada: one", farName + ": first"}
		r.Equal(r.texts(id), want)
		ada.says(id, "two")
		f.answer(obj{"body": obj{"text": "second"}})
		r.restart()
		synctest.Wait()
		f.greet(nil)
		pass(5 * time.Second)
		ids := map[any]int{}
		for _, e := range a.published("say") {
			ids[e["id"]]++
		}
		r.Equal(len(ids), 3)
		r.Equal(r.texts(id), append(want, "ada: two", farName+": second"))
	})
	runTrust(t, "in a workflow it is asked in its turn only, and refused out of it", func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		ada, bob := r.person("ada"), r.person("bob")
		far, ok := r.hub.FindAgent(farName)
		r.True(ok, "the peer has no name")
		step := func(from, to string) string {
			return fmt.Sprintf(`{"when":{"name":"from_speaker","args":{"agent_id":%q}},"then":{"name":"agent","args":{"agent_id":%q}}}`, from, to)
		}
		graph := fmt.Sprintf(`{"graph":{"initial_speaker":%q,"transitions":[%s,%s],"default_target":{"name":"terminate","args":{"reason":"done"}}}}`,
			ada.id, step(ada.id, far), step(far, bob.id))
		id, opened := ada.open("workflow", graph, "bob", farName)
		for e, err := range r.hub.Log(context.Background(), id, 0, 0) {
			r.NoError(err)
			if e.Type == envelope.TypeInvite && e.Audience[0] == bob.id {
				_, err := r.hub.Post(context.Background(), &envelope.Envelope{Channel: id, Sender: bob.id, Type: envelope.TypeInviteAck, Causation: e.ID, Data: []byte("{}")}, nil)
				r.NoError(err)
			}
		}
		r.NoError(<-opened)
		ada.says(id, "yours")
		first := f.last()
		f.answer(obj{"body": obj{"text": "mine"}})
		r.Equal(r.texts(id), []string{"ada: yours", farName + ": mine"})
		late := f.answer(obj{"body": obj{"text": "and more"}})
		got := a.published("receipt")
		r.Equal(receiptOf(got[0])[:3], []any{"rejected", "busy", late})
		r.Equal(r.work(first["work_id"].(string)), "failed")
		bob.says(id, "done")
		r.Equal(r.texts(id), []string{"ada: yours", farName + ": mine", "bob: done"})
		r.Equal(r.state(id), channel.Closed)
		for _, told := range f.told()[2:] {
			r.True(strings.HasSuffix(told, " <nil>"), "asked out of turn: %s", told)
		}
	})
	runTrust(t, "the end of a channel cancels what is open", func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		ada := r.person("ada")
		id, opened := ada.open("conversation", "", farName)
		r.NoError(<-opened)
		ada.says(id, "one")
		_, err := r.hub.CloseChannel(context.Background(), id, "enough")
		r.NoError(err)
		synctest.Wait()
		r.Equal(r.work(own(id)+"4"), "canceled")
		late := f.answer(obj{"body": obj{"text": "late"}})
		got := a.published("receipt")
		r.Equal(receiptOf(got[len(got)-1])[:3], []any{"rejected", "work_closed", late})
	})
	runTrust(t, "one that was away when the channel ended is told the rest", func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		ada := r.person("ada")
		id, opened := ada.open("conversation", "", farName)
		r.NoError(<-opened)
		ada.says(id, "one")
		pass(2 * time.Minute)
		ada.says(id, "two")
		_, err := r.hub.CloseChannel(context.Background(), id, "enough")
		r.NoError(err)
		synctest.Wait()
		r.Equal(len(f.told()), 2)
		f.greet(nil)
		r.Equal(f.told()[1:], []string{"one " + own(id) + "4", "two <nil>"})
		r.Equal(r.work(own(id)+"4"), "canceled")
		pass(2 * time.Minute)
		f.greet(nil)
		r.Equal(len(f.told()), 3)
	})
	runTrust(t, "what may not be sent has a placeholder", func(r *rig, a *air, crane, tug *host, f *far) {
		f.greet(nil)
		ada := r.person("ada")
		id, opened := ada.open("conversation", "", farName)
		r.NoError(<-opened)
		ada.says(id, "password: hunter2")
		told := f.last()
		r.Equal(told["work_id"], any(own(id)+"4"))
		text := told["body"].(obj)["text"].(string)
		r.True(strings.Contains(text, "not shown here") && !strings.Contains(text, "hunter2"), "told %q", text)
	})
	runTrust(t, "peers of one workspace have work of their own, and read each other", func(r *rig, a *air, crane, tug *host, f *far) {
		other := &far{r, a, "far.s10"}
		f.greet(nil)
		other.greet(nil)
		ada := r.person("ada")
		id, opened := ada.open("discussion", "", farName, "agh/ws_harbor/far.s10")
		r.NoError(<-opened)
		ada.says(id, "both?")
		r.Equal([]string{f.told()[1], other.told()[1]}, []string{"both? " + own(id) + "6", "both? <nil>"}) // in turns
		direct, _ := wire.DirectID("ws_harbor", "dock", f.last()["from"].(string), "far.s9")
		f.send(obj{"surface": "direct", "thread_id": nil, "direct_id": direct, "to": f.last()["from"], "work_id": own(id) + "6", "body": obj{"text": "I"}})
		r.Equal(r.texts(id), []string{"ada: both?", farName + ": I"})
		r.Equal(other.told()[2], "I "+own(id)+"7_1")
		r.Equal(len(f.told()), 2)
	})
	runTrust(t, "a hosted peer is one too", func(r *rig, a *air, crane, tug *host, f *far) {
		ada := r.person("ada")
		id, opened := ada.open("conversation", "", "agh/ws_harbor/tug.s02")
		r.NoError(<-opened)
		ada.says(id, "pull")
		waiting := tug.waiting()
		r.Equal(len(waiting), 2)
		e := waiting[1]
		tug.send(200, obj{"surface": "direct", "thread_id": nil, "to": e["from"], "work_id": own(id) + "4", "body": obj{"text": "pulled"}})
		synctest.Wait()
		r.Equal(r.texts(id), []string{"ada: pull", "agh/ws_harbor/tug.s02: pulled"})
	})
}

// A peer that must send a receipt accepts an invitation with it.
func TestPeerAccepts(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]channel.Lifecycle{"accepted": channel.Active, "rejected": channel.Closed} {
		a := newAir()
		runs(t, status, agh.Config{Broker: a, BridgeAccept: bridge.AcceptReceipt}, func(r *rig) {
			r.join("dock", "crane", "crane.s01")
			f := &far{r, a, "far.s9"}
			f.greet(nil)
			ada := r.person("ada")
			id, opened := ada.open("conversation", "", farName)
			r.Equal(r.state(id), channel.Pending)
			asked := f.last()
			r.Equal(asked["work_id"], any(own(id)+"1"))
			body := obj{"for_id": asked["id"], "status": status}
			if status != "accepted" {
				body["reason_code"] = "busy"
			}
			f.answer(obj{"kind": "receipt", "body": body})
			r.Equal(r.state(id), want)
			r.Equal(<-opened == nil, status == "accepted")
		})
	}
}

// A message with too many hops is refused on entry, from elsewhere and from here.
func TestHopsAtTheDoor(t *testing.T) {
	t.Parallel()
	runTrust(t, "hops", func(r *rig, a *air, crane, tug *host, f *far) {
		f.send(obj{"ext": obj{"parley.hops": 8}})
		r.Equal(len(tug.inbox()), 1)
		f.send(obj{"ext": obj{"parley.hops": 9}})
		r.Equal(len(tug.inbox()), 1)
		r.Equal(r.reasons(), []string{"too_many_hops"})
		crane.say("on", obj{"ext": obj{"parley.hops": 7, "acme.x": 1}})
		synctest.Wait()
		sent := a.published("say")
		r.Equal(sent[len(sent)-1]["ext"], any(obj{"parley.hops": 8.0, "acme.x": 1.0}))
		crane.send(409, obj{"ext": obj{"parley.hops": 8}})
	})
}

// The runtime greets for an identity of another dialect that is joined to a room,
// and its resume serves as its catalog.
func TestResumeIsCatalog(t *testing.T) {
	t.Parallel()
	runTrust(t, "resume", func(r *rig, a *air, crane, tug *host, f *far) {
		ada := r.person("ada")
		r.join("dock", "ada", "ada.s03")
		r.NoError(r.hub.SetResume(context.Background(), ada.id, &identity.Resume{
			ClaimedCapabilities: []string{"tides", "task.write", "tides"}, Summary: "Knows the sea", Examples: []identity.Example{{Title: "spring tide", Outcome: "A table"}},
		}))
		pass(31 * time.Second)
		greets := a.published("greet")
		card := greets[len(greets)-1]
		for _, g := range greets {
			if g["from"] == "ada.s03" {
				card = g
			}
		}
		r.Equal(card["body"].(obj)["peer_card"].(obj)["capabilities"], any([]any{"tides"}))
		found := f.whois(obj{"agh.include": []string{"capability_catalog"}}, obj{"body": obj{"type": "request", "query": "tides"}})
		r.Equal(each(found, "from"), []string{"ada.s03"})
		catalog := found[0]["ext"].(obj)["agh.capability_catalog"].(obj)["capabilities"].([]any)
		doc := catalog[0].(obj)
		r.Equal([]any{len(catalog), doc["id"], doc["summary"], doc["outcome"], doc["examples"]}, []any{1, "tides", "Knows the sea", "A table", []any{"spring tide"}})
		r.ask(200, "PUT", "/agh/agents/ada/capabilities", lifting) // its own catalog comes first
		found = f.whois(nil, obj{"to": "ada.s03"})
		r.Equal(found[0]["body"].(obj)["peer_card"].(obj)["capabilities"], any([]any{"lift-load", "chart"}))
	})
}
