package ag2_test

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
)

type object = map[string]any

// register registers an identity on this connection and returns its id.
func (p *peer) register(name string) string {
	p.t.Helper()
	var passport struct {
		ID string `json:"agent_id"`
	}
	p.call("register", object{"passport": object{"name": name}, "resume": object{}}, &passport)
	return passport.ID
}

// hello attaches to an identity and requires a welcome.
func (p *peer) hello(name string, since any) string {
	p.t.Helper()
	raw, err := json.Marshal(object{"kind": "hello", "name": name, "since_envelope_id": since})
	if err != nil {
		p.t.Fatal(err)
	}
	p.send(string(raw))
	var f struct {
		Kind     string `json:"kind"`
		Endpoint string `json:"endpoint_id"`
	}
	got := p.recv()
	if err := json.Unmarshal([]byte(got), &f); err != nil || f.Kind != "welcome" || f.Endpoint == "" {
		p.t.Fatalf("hello got %s", got)
	}
	return f.Endpoint
}

// post posts an envelope and returns its id.
func (p *peer) post(channel, sender, eventType string, data object, more ...object) string {
	p.t.Helper()
	var id string
	p.call("post_envelope", object{"envelope": env(channel, sender, eventType, data, more...)}, &id)
	return id
}

func (p *peer) say(channel, sender, text string) string {
	p.t.Helper()
	return p.post(channel, sender, "ag2.msg.text", object{"text": text})
}

func env(channel, sender, eventType string, data object, more ...object) object {
	e := object{"channel_id": channel, "sender_id": sender, "audience": nil, "event_type": eventType, "event_data": data}
	for _, m := range more {
		maps.Copy(e, m)
	}
	return e
}

// ack answers an invite.
func (p *peer) ack(n notice) {
	p.t.Helper()
	p.post(n.Envelope["channel_id"].(string), n.Recipient, "ag2.channel.invite.ack", object{"channel_id": n.Envelope["channel_id"]})
}

func (p *peer) receipt(n notice, status string) {
	p.t.Helper()
	raw, err := json.Marshal(object{
		"kind": "receipt", "envelope_id": n.Envelope["envelope_id"], "status": status,
		"recipient_id": n.Recipient, "channel_id": n.Envelope["channel_id"], "reason": "",
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.send(string(raw))
}

// open opens a channel between a creator and invitees, each with the peer that
// hosts it, and takes the notices of the handshake.
func (p *peer) open(channelType, creator string, invitees map[string]*peer, more ...object) string {
	p.t.Helper()
	ids := slices.Sorted(maps.Keys(invitees)) // in the order they registered
	params := object{"creator_id": creator, "manifest_type": channelType, "participants": ids}
	for _, m := range more {
		maps.Copy(params, m)
	}
	request := p.request("create_channel", params)
	for _, q := range invitees {
		q.ack(q.notifiedOf("ag2.channel.invite"))
	}
	raw, err := p.response(request)
	if err != nil {
		p.t.Fatal(err)
	}
	var m struct {
		ID    string `json:"channel_id"`
		State string `json:"state"`
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.State != "active" {
		p.t.Fatalf("opened %s: %v", raw, err)
	}
	p.notifiedOf("ag2.channel.opened")
	for _, q := range invitees {
		if q != p {
			q.notifiedOf("ag2.channel.opened")
		}
	}
	return m.ID
}
