package siegebench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// attack is one kind of hostile client.
type attack struct {
	name    string
	short   string // part of the names that it registers
	clients int
	// reaches is a part of what the hub answers where the attack meets its bound.
	// An attack that never gets this answer did not reach its bound and fails the
	// bench. A client that does not read also reaches its bound by being cut off.
	reaches string
	run     func(ctx context.Context, s *siege, by *attacker)
}

// attacker is one client of an attack.
type attacker struct {
	name    string
	reaches string
	reached func()
	told    func(text []byte)
	broke   func(err error) // a bound that did not hold
	judge   judge           // of a socket's messages; nil: they are only searched for reaches
}

func attackNames() []string {
	var names []string
	for _, a := range attacks {
		names = append(names, fmt.Sprintf("%d × %s", a.clients, a.name))
	}
	return names
}

// messages sends so many messages on one connection, as an agent of its own.
func messages(times int, message func(s *siege, k *socket, n int) string) func(context.Context, *siege, *attacker) {
	return func(ctx context.Context, s *siege, by *attacker) {
		k := s.socket(by, register(by.name, "none", nil))
		s.each(ctx, times, func(n int) {
			k.connect(ctx) // what it says may name itself
			k.say(ctx, message(s, k, n))
		})
	}
}

// requests sends so many HTTP requests, each on a connection of its own.
func requests(times int, request func(s *siege) string) func(context.Context, *siege, *attacker) {
	return func(ctx context.Context, s *siege, by *attacker) {
		s.each(ctx, times, func(int) { s.ask(ctx, by, request(s)) })
	}
}

// stuck asks once and never reads.
func stuck(request func(s *siege, by *attacker) string) func(context.Context, *siege, *attacker) {
	return func(ctx context.Context, s *siege, by *attacker) {
		s.each(ctx, 1, func(int) { s.send(ctx, by, request(s, by)) })
	}
}

// asks returns a request of the hostile agent for a path.
func asks(path func(s *siege) string, header string) func(*siege, *attacker) string {
	return func(s *siege, _ *attacker) string { return s.get(path(s), s.bearer()+header) }
}

// posts returns a post of the hostile agent to its own channel.
func posts(s *siege, body string) string {
	return fmt.Sprintf("POST /v1/channels/%s/events HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		s.large, s.address, s.bearer(), len(body), body)
}

const (
	accepted = "HTTP/1.1 201"
	noAccess = "HTTP/1.1 401"
	refused  = "HTTP/1.1 403"
	// streaming is the answer to a follower. Its bound is that it then waits
	// for its turn to read and for its share of answers; no answer says so.
	streaming = "text/event-stream"
)

var attacks = []attack{
	{"names that are ids", "id", 2, "looks like an id", messages(20, func(s *siege, _ *socket, _ int) string { return register(s.victim, "none", nil) })},
	{"revoked key on an open socket", "revoked", 2, "was revoked", revoked},
	{"squatter on a name with a key", "squat", 2, "auth_failed", messages(20, func(*siege, *socket, int) string {
		return `{"kind":"hello","name":"mallory","auth_scheme":"none","auth_claim":{}}`
	})},
	{"forged sender", "forge", 2, "access_denied", messages(50, func(s *siege, _ *socket, _ int) string { return post(s.foreign, s.victim, `{"text":"forged"}`) })},
	{"forwarded headers", "fwd", 2, noAccess, requests(50, func(s *siege) string {
		return s.get("/v1/keys", "X-Forwarded-For:\r\nX-Forwarded-For: 127.0.0.1\r\nConnection: close\r\n")
	})},
	{"backups asked for across sites", "site", 4, refused, requests(10, func(s *siege) string {
		return s.get("/v1/backup", "Sec-Fetch-Site: cross-site\r\nConnection: close\r\n")
	})},
	{"directory with a huge limit", "dir", 4, "a list that is cut", func(ctx context.Context, s *siege, by *attacker) {
		by.judge = directoryIsCut
		messages(50, func(*siege, *socket, int) string {
			return `{"kind":"request","request_id":"` + directoryRequest + `","op":"list_agents","params":{"limit":9223372036854775807}}`
		})(ctx, s, by)
	}},
	{"tasks in a foreign channel", "task", 2, "access_denied", messages(100, func(s *siege, k *socket, n int) string {
		return op("observe_task", map[string]any{"metadata": map[string]any{
			"task_id": fmt.Sprint(k.by.name, n), "owner_id": k.me(), "channel_id": s.foreign, "state": "running", "spec": map[string]any{"title": "t"},
		}})
	})},
	{"silent sockets", "silent", 400, "", stuck(silent)},
	{"followers that do not read", "follow", 100, streaming, stuck(asks(func(*siege) string { return "/v1/events" }, "Accept: text/event-stream\r\n"))},
	{"pages that are not read", "page", 300, "limits.", stuck(asks(func(s *siege) string { return "/v1/channels/" + s.large + "/events?limit=1000" }, ""))},
	{"views that are not read", "view", 8, "limits.", stuck(asks(func(s *siege) string { return "/v1/channels/" + s.large + "/views/full_transcript?as=mallory" }, ""))},
	{"inbox of another", "inbox", 2, accepted, requests(600, func(s *siege) string { return posts(s, fmt.Sprintf(`{"text":"x","audience":[%q]}`, s.victim)) })},
	{"large messages", "large", 2, accepted, requests(10, func(s *siege) string { return posts(s, `{"text":"`+strings.Repeat("x", 900<<10)+`"}`) })},
	{"graphs with huge numbers", "graph", 2, "at most 1024", messages(6, func(s *siege, k *socket, _ int) string {
		knobs := `{"graph":{"initial_speaker":"` + k.me() + `","transitions":[{"when":{"name":"context_equals","args":{"key":"k","value":1e` +
			strings.Repeat("9", 800_000) + `}},"then":{"name":"terminate","args":{}}}]}}`
		return op("create_channel", map[string]any{"creator_id": k.me(), "manifest_type": "workflow", "participants": []string{s.victim}, "knobs": json.RawMessage(knobs)})
	})},
	{"huge globs", "glob", 2, "at most", messages(6, func(_ *siege, k *socket, _ int) string {
		return register(k.by.name+"-g", "none", map[string]any{"rule": map[string]any{"access": map[string]any{"inbound_from": []string{strings.Repeat("[*", 400_000)}}}})
	})},
	{"large profiles", "profile", 2, "limits.profile", messages(20, func(_ *siege, k *socket, n int) string {
		return register(fmt.Sprint(k.by.name, "-p", n), "none", map[string]any{"skill_md": strings.Repeat("s", []int{800 << 10, 60 << 10}[n%2])})
	})},
	{"line breaks", "line", 2, accepted, requests(50, func(s *siege) string {
		return posts(s, "{\"event_type\":\"ag2.msg.text\",\"event_data\":{\n\"text\":\n\n\"id: 1\\ndata: {}\"\r\n}}")
	})},
	{"flood of garbage", "flood", 4, `"ok":false`, messages(500, func(_ *siege, _ *socket, n int) string {
		return []string{`{"kind":"request","request_id":"1","op":"no such","params":{}}`, `{"kind":"flood","n":1,"n":2}`}[n%2]
	})},
	{"listings, half of them not read", "stall", 8, "limits.lists", func(ctx context.Context, s *siege, by *attacker) {
		k := s.socket(by, register(by.name, "none", nil))
		k.stuck = by.name[len(by.name)-1]%2 == 1 // the other attacks check what they are answered
		s.each(ctx, 400, func(int) { k.say(ctx, op("list_agents", map[string]any{"limit": smallAgents})) })
	}},
}

// silent returns a request that never ends.
func silent(s *siege, by *attacker) string {
	halves := []string{
		"", "GET / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 9\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
		"GET / HTTP/1.1\r\nHost: " + s.address + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 9\r\n\r\n",
	}
	return halves[int(by.name[len(by.name)-1])%len(halves)]
}

// revoked continues to post on a connection whose key is revoked.
func revoked(ctx context.Context, s *siege, by *attacker) {
	claim, revoke := "none", func() {}
	if s.operator != nil {
		token, key, err := s.operator.AddKey(ctx, "agent", by.name)
		if err == nil {
			claim, revoke = token, func() { _, _ = s.operator.RevokeKey(ctx, key.ID) }
		}
	}
	k := s.socket(by, op("register", map[string]any{
		"passport": map[string]any{"name": by.name, "auth": map[string]any{"scheme": "api_key", "claim": map[string]any{"token": claim}}}, "resume": map[string]any{},
	}))
	s.each(ctx, 50, func(n int) {
		if n == 1 {
			revoke()
		}
		k.say(ctx, op("list_channels", map[string]any{"agent_id": s.victim}))
	})
}
