package agh

import (
	"time"

	"github.com/parley-hub/parley/server/config"
)

// Settings are the dialect's section of the configuration.
type Settings struct {
	Enabled        bool
	GreetInterval  time.Duration
	ReplayAge      time.Duration
	QueueDepth     int
	DefaultChannel string
	Strict         bool
	LenientWorkIDs bool
	SecretScan     string
	V1             bool
	NATS           NATSSettings
	Bridge         BridgeSettings
	Audit          AuditSettings
	Hooks          HookSettings
	Limits         LimitSettings
}

// NATSSettings say how external peers are reached: through a NATS server in this
// process, or an external one.
type NATSSettings struct {
	Listen string
	URL    string
}

// BridgeSettings are how peers take part in the channels of other dialects.
type BridgeSettings struct {
	Accept string
}

// AuditSettings bound what AGH's peers cause to be written to the audit.
type AuditSettings struct {
	Rejects int
}

// HookSettings configure the command that receives AGH's events.
type HookSettings struct {
	Command []string
	Events  []string
	Timeout time.Duration
	Queue   int
}

// LimitSettings bound what AGH's peers can make the hub hold.
type LimitSettings struct {
	Peers            int
	Work             int
	Remotes          int
	Outbox           int
	SubscriptionRate int
	SenderRate       int
	Streams          int
}

type setting = config.SectionKey[Settings]

// Section is the dialect's section of the configuration.
var Section = config.NewSection("agh",
	setting{Key: config.Key{
		Name: "agh.enabled", Default: "true",
		Meaning: "serve AGH's network under /agh; off, only its status is served, which says so",
	}, Field: func(s *Settings) any { return &s.Enabled }},
	setting{Key: config.Key{
		Name: "agh.greet_interval", Default: "30s",
		Meaning: "how often hosted AGH peers greet; a remote one that is silent for twice as long is gone",
	}, Field: func(s *Settings) any { return &s.GreetInterval }},
	setting{Key: config.Key{
		Name: "agh.replay_age", Default: "300s",
		Meaning: "how old an AGH envelope without expires_at may be, and how far ahead its sender's clock",
	}, Field: func(s *Settings) any { return &s.ReplayAge }},
	setting{Key: config.Key{
		Name: "agh.queue_depth", Default: "100", Most: 10_000,
		Meaning: "messages waiting for one hosted AGH peer; one more drops the oldest, which stays in its conversation",
	}, Field: func(s *Settings) any { return &s.QueueDepth }},
	setting{Key: config.Key{
		Name: "agh.default_channel", Default: "default",
		Meaning: "the AGH channel that the status names as default",
	}, Field: func(s *Settings) any { return &s.DefaultChannel }},
	setting{Key: config.Key{
		Name: "agh.strict", Default: "false",
		Meaning: "judge AGH envelopes by the letter of their JSON schema",
	}, Field: func(s *Settings) any { return &s.Strict }},
	setting{Key: config.Key{
		Name: "agh.lenient_work_ids", Default: "false",
		Meaning: "take work ids as AGH's own runtime takes them: 1 to 128 bytes without slashes, backslashes and control characters",
	}, Field: func(s *Settings) any { return &s.LenientWorkIDs }},
	setting{Key: config.Key{
		Name: "agh.secret_scan", Default: "outbound", Choices: []string{"off", "outbound", "both"},
		Meaning: "which AGH envelopes are refused if they hold what looks like a secret",
	}, Field: func(s *Settings) any { return &s.SecretScan }},
	setting{Key: config.Key{
		Name: "agh.v1", Default: "false",
		Meaning: "also speak agh-network/v1, on NATS subjects of its own",
	}, Field: func(s *Settings) any { return &s.V1 }},
	setting{Key: config.Key{
		Name: "agh.nats.listen", Default: "", Flag: "nats",
		Meaning: "address of a NATS server of this process, such as 127.0.0.1:4222, over which AGH peers elsewhere connect with the token in nats-token of the data folder; empty starts none. " +
			"Beyond loopback it needs tls.cert and tls.key",
	}, Field: func(s *Settings) any { return &s.NATS.Listen }, Check: checkListen},
	setting{Key: config.Key{
		Name: "agh.nats.url", Default: "", Flag: "nats-url",
		Meaning: "URL of a NATS server elsewhere, such as nats://TOKEN@host:4222; the token may come from PARLEY_NATS_TOKEN instead",
	}, Field: func(s *Settings) any { return &s.NATS.URL }, Check: checkNATS, Mask: maskURL},
	setting{Key: config.Key{
		Name: "agh.bridge.accept", Default: "present", Choices: []string{"present", "receipt"},
		Meaning: "when an AGH peer that a channel of another dialect names, as agh/WORKSPACE/PEER, has taken its invitation: once it is present and was told, or with its receipt",
	}, Field: func(s *Settings) any { return &s.Bridge.Accept }},
	setting{Key: config.Key{
		Name: "agh.audit.rejects", Default: "10",
		Meaning: "rejected AGH envelopes of one peer that are audited in a second; the next record says how many more there were",
	}, Field: func(s *Settings) any { return &s.Audit.Rejects }},
	setting{Key: config.Key{
		Name: "agh.hooks.command", Default: "",
		Meaning: "a program and its arguments, run without a shell for each event of the AGH network, one at a time and in order, with the event as JSON on its standard input; empty runs none",
	}, Field: func(s *Settings) any { return &s.Hooks.Command }},
	setting{Key: config.Key{
		Name: "agh.hooks.events", Default: "",
		Meaning: "the events that agh.hooks.command is run for, such as network.work.closed; empty is all",
	}, Field: func(s *Settings) any { return &s.Hooks.Events }, Check: checkEvent},
	setting{Key: config.Key{
		Name: "agh.hooks.timeout", Default: "10s",
		Meaning: "how long agh.hooks.command may take for one event before it is ended",
	}, Field: func(s *Settings) any { return &s.Hooks.Timeout }},
	setting{Key: config.Key{
		Name: "agh.hooks.queue", Default: "1000", Most: 100_000,
		Meaning: "events that wait for agh.hooks.command; more are dropped and counted",
	}, Field: func(s *Settings) any { return &s.Hooks.Queue }},
	setting{Key: config.Key{
		Name: "agh.limits.remotes", Default: "10000",
		Meaning: "remote AGH peers present in one channel, of which more are ignored when they greet; and remote peers that spoke, in all, of which the hub forgets whoever was silent for longest",
	}, Field: func(s *Settings) any { return &s.Limits.Remotes }},
	setting{Key: config.Key{
		Name: "agh.limits.outbox", Default: "10000",
		Meaning: "stored AGH messages waiting for NATS; more are audited as publish_failed",
	}, Field: func(s *Settings) any { return &s.Limits.Outbox }},
	setting{Key: config.Key{
		Name: "agh.limits.subscription", Default: "5000",
		Meaning: "AGH messages a second that are read from one NATS subscription; more are dropped",
	}, Field: func(s *Settings) any { return &s.Limits.SubscriptionRate }},
	setting{Key: config.Key{
		Name: "agh.limits.sender", Default: "1000",
		Meaning: "messages a second that are taken from one remote AGH peer; more are dropped",
	}, Field: func(s *Settings) any { return &s.Limits.SenderRate }},
	setting{Key: config.Key{
		Name: "agh.limits.streams", Default: "1000",
		Meaning: "live streams of AGH messages open at once",
	}, Field: func(s *Settings) any { return &s.Limits.Streams }},
	setting{Key: config.Key{
		Name: "agh.limits.peers", Default: "1000",
		Meaning: "peers joined to one AGH channel",
	}, Field: func(s *Settings) any { return &s.Limits.Peers }},
	setting{Key: config.Key{
		Name: "agh.limits.work", Default: "10000",
		Meaning: "pieces of work in one AGH thread or direct room",
	}, Field: func(s *Settings) any { return &s.Limits.Work }},
)
