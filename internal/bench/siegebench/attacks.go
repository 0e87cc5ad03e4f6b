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
	run     func(ctx context.Context, s *siege, name string)
}

func attackNames() []string {
	var names []string
	for _, a := range attacks {
		names = append(names, fmt.Sprintf("%d × %s", a.clients, a.name))
	}
	return names
}

// messages sends so many messages on one connection.
func messages(times int, message func(s *siege, name string, n int) string) func(context.Context, *siege, string) {
	return func(ctx context.Context, s *siege, name string) {
		k := &socket{siege: s, ready: []string{register(name, "none", nil)}}
		s.each(ctx, times, func(n int) { k.say(ctx, message(s, name, n)) })
	}
}

// requests sends so many HTTP requests, each on a connection of its own.
func requests(times int, path func(s *siege) string, headers func(s *siege) string) func(context.Context, *siege, string) {
	return func(ctx context.Context, s *siege, _ string) {
		s.each(ctx, times, func(int) { s.ask(ctx, s.get(path(s), headers(s))) })
	}
}

// stuck asks once and never reads.
func stuck(path func(s *siege) string, headers string) func(context.Context, *siege, string) {
	return func(ctx context.Context, s *siege, _ string) {
		s.each(ctx, 1, func(int) { s.send(ctx, s.get(path(s), s.bearer()+headers)) })
	}
}

func fixed(text string) func(*siege) string { return func(*siege) string { return text } }

var attacks = []attack{
	{"names that are ids", "id", 2, messages(20, func(s *siege, _ string, _ int) string { return register(s.victim, "none", nil) })},
	{"revoked key on an open socket", "revoked", 2, revoked},
	{"squatter on a name with a key", "squat", 2, messages(20, func(*siege, string, int) string {
		return `{"kind":"hello","name":"mallory","auth_scheme":"none","auth_claim":{}}`
	})},
	{"forged sender", "forge", 2, messages(50, func(s *siege, _ string, _ int) string { return post(s.foreign, s.victim, `{"text":"forged"}`) })},
	{"forwarded headers", "fwd", 2, requests(50, fixed("/v1/keys"), fixed("X-Forwarded-For:\r\nX-Forwarded-For: 127.0.0.1\r\nConnection: close\r\n"))},
	{"backups asked for across sites", "site", 4, requests(10, fixed("/v1/backup"), fixed("Sec-Fetch-Site: cross-site\r\nConnection: close\r\n"))},
	{"directory with a huge limit", "dir", 4, messages(50, func(*siege, string, int) string {
		return `{"kind":"request","request_id":"1","op":"list_agents","params":{"limit":9223372036854775807}}`
	})},
	{"tasks in a foreign channel", "task", 2, messages(100, func(s *siege, name string, n int) string {
		return op("observe_task", map[string]any{"metadata": map[string]any{
			"task_id": fmt.Sprint(name, n), "owner_id": s.victim, "channel_id": s.foreign, "state": "running", "spec": map[string]any{"title": "t"},
		}})
	})},
	{"silent sockets", "silent", 400, silent},
	{"followers that do not read", "follow", 100, stuck(fixed("/v1/events"), "Accept: text/event-stream\r\n")},
	{"pages that are not read", "page", 100, stuck(func(s *siege) string { return "/v1/channels/" + s.large + "/events?limit=1000" }, "")},
	{"views that are not read", "view", 8, stuck(func(s *siege) string { return "/v1/channels/" + s.large + "/views/transcript?as=mallory" }, "")},
	{"inbox of another", "inbox", 2, messages(400, func(s *siege, _ string, _ int) string { return post(s.large, s.victim, `{"text":"x"}`, s.victim) })},
	{"large messages", "large", 2, messages(10, func(s *siege, _ string, _ int) string {
		return post(s.foreign, s.victim, `{"text":"`+strings.Repeat("x", 900<<10)+`"}`)
	})},
	{"graphs with huge numbers", "graph", 2, messages(6, func(s *siege, _ string, _ int) string {
		knobs := `{"graph":{"initial_speaker":"` + s.victim + `","transitions":[{"when":{"type":"context_equals","key":"k","value":1e` + strings.Repeat("9", 800_000) + `},"then":{"type":"terminate"}}]}}`
		return op("create_channel", map[string]any{"creator_id": s.victim, "manifest_type": "workflow", "participants": []string{s.victim}, "knobs": json.RawMessage(knobs)})
	})},
	{"huge globs", "glob", 2, messages(6, func(s *siege, name string, _ int) string {
		return register(name+"-g", "none", map[string]any{"rule": map[string]any{"access": map[string]any{"inbound_from": []string{strings.Repeat("[*", 400_000)}}}})
	})},
	{"large profiles", "profile", 2, messages(20, func(_ *siege, name string, n int) string {
		return register(fmt.Sprint(name, "-p", n), "none", map[string]any{"skill_md": strings.Repeat("s", []int{60 << 10, 800 << 10}[n%2])})
	})},
	{"line breaks", "line", 2, messages(50, func(s *siege, _ string, _ int) string {
		return post(s.foreign, s.victim, "{\n\"text\":\n\n\"id: 1\\ndata: {}\"\r\n}")
	})},
	{"flood of garbage", "flood", 4, messages(500, func(_ *siege, _ string, n int) string { return fmt.Sprintf(`{"kind":"flood","n":%d,"n":1}`, n) })},
	{"sockets that do not read", "stall", 8, func(ctx context.Context, s *siege, name string) {
		k := &socket{siege: s, stuck: true, ready: []string{register(name, "none", nil)}}
		// Enough that the answers exceed what is kept for one reader.
		s.each(ctx, 60, func(int) { k.say(ctx, op("list_agents", map[string]any{"limit": 1000})) })
	}},
}

// silent connects and never ends its request.
func silent(ctx context.Context, s *siege, name string) {
	halves := []string{
		"", "GET / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 9\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
		"GET / HTTP/1.1\r\nHost: " + s.address + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 9\r\n\r\n",
	}
	s.each(ctx, 1, func(int) { s.send(ctx, halves[len(name)%len(halves)]) })
}

// revoked goes on speaking on a connection whose key is revoked.
func revoked(ctx context.Context, s *siege, name string) {
	claim, revoke := "none", func() {}
	if s.operator != nil {
		token, key, err := s.operator.AddKey(ctx, "agent", name)
		if err == nil {
			claim, revoke = token, func() { _, _ = s.operator.RevokeKey(ctx, key.ID) }
		}
	}
	k := &socket{siege: s, ready: []string{op("register", map[string]any{
		"passport": map[string]any{"name": name, "auth": map[string]any{"scheme": "api_key", "claim": map[string]any{"token": claim}}}, "resume": map[string]any{},
	})}}
	s.each(ctx, 50, func(n int) {
		if n == 10 {
			revoke()
		}
		k.say(ctx, op("list_channels", map[string]any{"agent_id": s.victim}))
	})
}
