package agh_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/agh"
)

func TestLimitOfAuditedRejects(t *testing.T) {
	t.Parallel()
	a := newAir()
	runs(t, "so many rejections of one peer are audited in a second, and the next says how many more there were", agh.Config{Broker: a, Limits: agh.Limits{AuditRejects: 3}}, func(r *rig) {
		r.join("dock", "tug", "tug.s02")
		f, other := &far{r, a, "far.s9"}, &far{r, a, "far.s8"}
		records := func() (from []string, more []any) {
			for _, text := range r.audited("rejected") {
				var record obj
				r.NoError(json.Unmarshal([]byte(text), &record))
				from = append(from, record["peer_from"].(string))
				more = append(more, record["unaudited"])
			}
			return from, more
		}
		for range 20 {
			f.send(obj{"body": obj{"text": ""}})
		}
		other.send(obj{"body": obj{"text": ""}}) // has a share of its own
		from, more := records()
		r.Equal(from, []string{"far.s9", "far.s9", "far.s9", "far.s8"})
		r.Equal(more, []any{nil, nil, nil, nil})
		pass(time.Second)
		f.send(obj{"body": obj{"text": ""}})
		from, more = records()
		r.Equal([]any{len(from), more[4]}, []any{5, 17.0})
		r.Equal(r.get("/agh/network/status")["network"].(obj)["messages_rejected"], any(22.0)) // all are counted
	})
}

func TestLimitOfAuditedOverflows(t *testing.T) {
	t.Parallel()
	runs(t, "a full queue drops as many as come, and audits so many of one sender in a second", agh.Config{QueueDepth: 1, Limits: agh.Limits{AuditRejects: 3}}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		for range 21 {
			crane.say("x", nil)
		}
		r.Equal(r.reasons(), []string{"queue_overflow", "queue_overflow", "queue_overflow"})
		last := crane.say("x", nil)
		records := r.audited("rejected")
		r.Equal(len(records), 4)
		r.Contains(records[3], `"unaudited":17`)
		r.Equal(tug.inbox(), []string{last})
		r.Equal(r.get("/agh/network/status")["network"].(obj)["messages_rejected"], any(21.0)) // all are counted
	})
}

func TestLimitOfTheOutbox(t *testing.T) {
	t.Parallel()
	a := newAir()
	runs(t, "what waits for the broker is bounded, and more is audited as publish_failed and stays stored", agh.Config{Broker: a, GreetInterval: time.Hour, Limits: agh.Limits{Outbox: 3}}, func(r *rig) {
		crane, tug := r.join("dock", "crane", "crane.s01"), r.join("dock", "tug", "tug.s02")
		pass(time.Second)
		a.set(true)
		var sent []string
		for i := range 5 {
			sent = append(sent, crane.say(fmt.Sprint(i), nil))
		}
		r.Equal(tug.inbox(), sent) // delivery does not wait for the broker
		r.Equal(r.reasons(), []string{"publish_failed", "publish_failed"})
		a.set(false)
		pass(10 * time.Second)
		r.Equal(each(a.published("say"), "id"), sent[:3])
		r.Equal(len(list(r.get("/channels/dock/threads/thread_tide/messages"), "messages")), 5)
	})
}
