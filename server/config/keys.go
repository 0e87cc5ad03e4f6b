package config

import (
	"strings"
)

// Key is one setting. Its type is the type of the field it fills.
type Key struct {
	Name    string
	Default string   // as written in the file; lists separated by commas
	Flag    string   // of `parley serve`, without dashes; most have none
	Choices []string // the only values; nil: all
	Zero    bool     // whether a number may be 0
	Most    int      // the largest number or size; 0: no limit
	Meaning string
	// Exposes is the value that admits clients from everywhere without
	// authentication; empty: none does.
	Exposes string

	field func(*Config) any
	check func(value string) error  // of a text, or of each item of a list; nil: all are valid
	mask  func(value string) string // hides secrets when the value is shown; nil: it has none
}

// Core is the table of settings that no dialect defines itself.
var Core = Table{
	{
		Name: "data.dir", Default: "./parley-data", Flag: "data",
		Meaning: "folder of the embedded journal and the access keys; made when it does not exist",
		field:   func(c *Config) any { return &c.Data.Dir }, check: checkFolder,
	},
	{
		Name: "data.min_free", Default: "512MiB", Zero: true,
		Meaning: "below this much free disk space posts are refused with a retryable error",
		field:   func(c *Config) any { return &c.Data.MinFree },
	},
	{
		Name: "data.snapshots", Default: "1GiB",
		Meaning: "room for snapshots of long channels, all together; the oldest go first, and losing one costs only time",
		field:   func(c *Config) any { return &c.Data.Snapshots },
	},
	{
		Name: "data.recent_commits", Default: "4MiB",
		Meaning: "memory for the newest commits while the hub follows its journal; what it is further behind with comes from disk",
		field:   func(c *Config) any { return &c.Data.RecentCommits },
	},
	{
		Name: "http.listen", Default: "127.0.0.1:7440", Flag: "listen",
		Meaning: "address to listen on; port 0 takes a free one and prints it. Anything but loopback needs TLS or a proxy, and a key",
		field:   func(c *Config) any { return &c.HTTP.Listen }, check: CheckListen,
	},
	{
		Name: "http.origins", Default: "",
		Meaning: "web origins, such as https://desk.example, whose pages may connect besides the hub's own",
		field:   func(c *Config) any { return &c.HTTP.Origins }, check: checkOrigin,
	},
	{
		Name: "http.hosts", Default: "",
		Meaning: "host names under which the hub is reached besides loopback names and the listen address; with a port, only that port. Unless told, those of the certificate",
		field:   func(c *Config) any { return &c.HTTP.Hosts }, check: checkHost,
	},
	{
		Name: "http.behind_proxy", Default: "false", Flag: "behind-proxy",
		Meaning: "a proxy ends TLS in front of the hub; then no peer counts as loopback, so everyone needs a key",
		field:   func(c *Config) any { return &c.HTTP.BehindProxy },
	},
	{
		Name: "http.insecure", Default: "false", Flag: "insecure",
		Meaning: "listen beyond loopback although authentication is not configured; for closed networks only",
		field:   func(c *Config) any { return &c.HTTP.Insecure },
	},
	{
		Name: "http.max_connections", Default: "20480",
		Meaning: "connections open at once, of every dialect together; one more is closed at once. Where fewer files may be open, fewer. " +
			"This machine's operator has 16 besides",
		field: func(c *Config) any { return &c.HTTP.MaxConnections },
	},
	{
		Name: "http.max_header", Default: "64KiB",
		Meaning: "size of a request's headers",
		field:   func(c *Config) any { return &c.HTTP.MaxHeader },
	},
	{
		Name: "http.header_timeout", Default: "10s",
		Meaning: "time in which a request's headers must arrive",
		field:   func(c *Config) any { return &c.HTTP.HeaderTimeout },
	},
	{
		Name: "http.body_timeout", Default: "30s",
		Meaning: "time in which a request's body must arrive; WebSockets have their own",
		field:   func(c *Config) any { return &c.HTTP.BodyTimeout },
	},
	{
		Name: "http.idle_timeout", Default: "2m",
		Meaning: "time an idle keep-alive connection is kept",
		field:   func(c *Config) any { return &c.HTTP.IdleTimeout },
	},
	{
		Name: "tls.cert", Default: "", Flag: "tls-cert",
		Meaning: "file with the certificate chain (PEM); read again when it changes",
		field:   func(c *Config) any { return &c.TLS.Cert },
	},
	{
		Name: "tls.key", Default: "", Flag: "tls-key",
		Meaning: "file with the certificate's private key (PEM); read again when it changes",
		field:   func(c *Config) any { return &c.TLS.Key },
	},
	{
		Name: "log.level", Default: "info", Flag: "log-level", Choices: []string{"debug", "info", "warn", "error"},
		Meaning: "least important level that is logged",
		field:   func(c *Config) any { return &c.Log.Level },
	},
	{
		Name: "log.format", Default: "auto", Flag: "log-format", Choices: []string{"auto", "text", "json"},
		Meaning: "form of log lines; auto is text on a terminal and JSON otherwise",
		field:   func(c *Config) any { return &c.Log.Format },
	},
	{
		Name: "shutdown.timeout", Default: "10s", Flag: "shutdown-timeout",
		Meaning: "time in which a stopping hub ends: it waits for its clients, then cuts them off",
		field:   func(c *Config) any { return &c.Shutdown.Timeout },
	},
	{
		Name: "limits.connections_peer", Default: "0", Zero: true,
		Meaning: "connections of one peer address; behind a proxy, of one key, and of all without a key together. 0 is a quarter of all",
		field:   func(c *Config) any { return &c.Limits.ConnectionsPeer },
	},
	{
		Name: "limits.answers", Default: "256MiB",
		Meaning: "bytes of answers over HTTP, of /v1 and of every dialect, that are being made or wait for their readers; one key, or this machine without one, has a quarter",
		field:   func(c *Config) any { return &c.Limits.Answers },
	},
	{
		Name: "limits.body", Default: "2MiB",
		Meaning: "size of one request body",
		field:   func(c *Config) any { return &c.Limits.Body },
	},
	{
		Name: "limits.import", Default: "1GiB",
		Meaning: "size of one bundle that is imported",
		field:   func(c *Config) any { return &c.Limits.Import },
	},
	{
		Name: "limits.event", Default: "1MiB", Most: 1 << 20,
		Meaning: "size of one envelope's event data; at most 1MiB, because AG2's clients take no larger frame",
		field:   func(c *Config) any { return &c.Limits.Event },
	},
	{
		Name: "limits.record", Default: "16KiB",
		Meaning: "size of a passport, of a channel's labels, of a reason for closing: lists show many of them",
		field:   func(c *Config) any { return &c.Limits.Record },
	},
	{
		Name: "limits.profile", Default: "64KiB", Most: 512 << 10,
		Meaning: "size of an agent's skill, resume and rule together; at most 512KiB. What is stored already is still read",
		field:   func(c *Config) any { return &c.Limits.Profile },
	},
	{
		Name: "limits.recent_events", Default: "16MiB",
		Meaning: "memory for the newest events while somebody follows all channels; who is further behind reads them from disk",
		field:   func(c *Config) any { return &c.Limits.RecentEvents },
	},
	{
		Name: "limits.profile_cache", Default: "16MiB",
		Meaning: "memory for resumes and skills that were used last; others are read from disk",
		field:   func(c *Config) any { return &c.Limits.ProfileCache },
	},
	{
		Name: "limits.page", Default: "1000",
		Meaning: "entries of one answer of a list under /v1",
		field:   func(c *Config) any { return &c.Limits.Page },
	},
	{
		Name: "limits.page_bytes", Default: "4MiB",
		Meaning: "size at which an answer of a list under /v1 ends; a larger entry stands alone",
		field:   func(c *Config) any { return &c.Limits.PageBytes },
	},
	{
		Name: "limits.view", Default: "64MiB",
		Meaning: "size of a log that one view is made of; four times as much for all at once",
		field:   func(c *Config) any { return &c.Limits.View },
	},
	{
		Name: "limits.search", Default: "8MiB",
		Meaning: "how much of a channel one search for events under /v1 reads; the answer says where to go on",
		field:   func(c *Config) any { return &c.Limits.Search },
	},
	{
		Name: "limits.followers", Default: "10000",
		Meaning: "streams of /v1 open at once",
		field:   func(c *Config) any { return &c.Limits.Followers },
	},
	{
		Name: "limits.follower_write", Default: "10s",
		Meaning: "time in which the reader of an answer must take each 64 KiB of it",
		field:   func(c *Config) any { return &c.Limits.FollowerWrite },
	},
	{
		Name: "limits.keep_alive", Default: "15s",
		Meaning: "silence on a stream of /v1 until a comment is sent",
		field:   func(c *Config) any { return &c.Limits.KeepAlive },
	},
	{
		Name: "limits.agents", Default: "100000",
		Meaning: "registered identities",
		field:   func(c *Config) any { return &c.Limits.Agents },
	},
	{
		Name: "limits.participants", Default: "1000",
		Meaning: "participants of one channel",
		field:   func(c *Config) any { return &c.Limits.Participants },
	},
	{
		Name: "limits.in_flight", Default: "65536",
		Meaning: "posts ordered but not yet answered",
		field:   func(c *Config) any { return &c.Limits.InFlight },
	},
	{
		Name: "limits.loaded_channels", Default: "200000",
		Meaning: "channels folded in memory at once; the longest untouched go first",
		field:   func(c *Config) any { return &c.Limits.LoadedChannels },
	},
	{
		Name: "limits.endpoints", Default: "16",
		Meaning: "readers of one identity at once, each with cursors of its own; AG2's connections are one of them",
		field:   func(c *Config) any { return &c.Limits.Endpoints },
	},
	{
		Name: "limits.transient", Default: "100000",
		Meaning: "identities that a dialect has adopted and nobody has registered",
		field:   func(c *Config) any { return &c.Limits.Transient },
	},
	{
		Name: "limits.replay", Default: "4096",
		Meaning: "live deliveries kept for a reader while it is replayed to",
		field:   func(c *Config) any { return &c.Limits.Replay },
	},
	{
		Name: "limits.held", Default: "16",
		Meaning: "supervisors' words waiting in one channel for the round in flight",
		field:   func(c *Config) any { return &c.Limits.Held },
	},
	{
		Name: "limits.inbox", Default: "4096",
		Meaning: "envelopes that one agent has not answered; a rule's limits.inbox.max_pending may be lower, and 0 there means this",
		field:   func(c *Config) any { return &c.Limits.Inbox },
	},
	{
		Name: "limits.deadlines", Default: "64", Most: 4096,
		Meaning: "deadlines that the adapter of one channel has set; at most 4096",
		field:   func(c *Config) any { return &c.Limits.Deadlines },
	},
	{
		Name: "limits.open_requests", Default: "64", Most: 128,
		Meaning: "requests of one channel that nobody has answered; at most 128, because they end with it, in one batch",
		field:   func(c *Config) any { return &c.Limits.OpenRequests },
	},
	{
		Name: "limits.asked_requests", Default: "1000", Most: 100_000,
		Meaning: "requests of one asker that nobody has answered; at most 100000",
		field:   func(c *Config) any { return &c.Limits.AskedRequests },
	},
	{
		Name: "limits.open_tasks", Default: "256", Most: 440,
		Meaning: "tasks of one channel that have not ended; at most 440, because they end with it, in one batch",
		field:   func(c *Config) any { return &c.Limits.OpenTasks },
	},
	{
		Name: "limits.open_tasks_owner", Default: "64", Most: 440,
		Meaning: "tasks of one owner in one channel that have not ended; at most 440",
		field:   func(c *Config) any { return &c.Limits.OpenTasksOwner },
	},
	{
		Name: "limits.lists", Default: "32MiB",
		Meaning: "bytes of lists of agents, channels and tasks that are made in a second, of AG2 and /v1 together; one key or AG2 connection has a quarter, operators as much as they like",
		field:   func(c *Config) any { return &c.Limits.Lists },
	},
	{
		Name: "limits.reads", Default: "64MiB",
		Meaning: "bytes of logs that are read for pages, streams, views and downloads in a second, of /v1 and every dialect together; one key or AG2 connection has a quarter and then waits its turn, at most limits.follower_write for what has not begun, ag2.limits.write for read_wal; operators as much as they like",
		field:   func(c *Config) any { return &c.Limits.Reads },
	},
	{
		Name: "limits.rule_globs", Default: "4096", Most: 4096,
		Meaning: "globs in one list of an agent's rule; at most 4096, because matching has a fixed number of steps. What is stored already still counts",
		field:   func(c *Config) any { return &c.Limits.RuleGlobs },
	},
	{
		Name: "limits.graph_conditions", Default: "16384", Most: 16384,
		Meaning: "conditions of a new transition graph, nested ones included; at most 16384. What is stored already still loads",
		field:   func(c *Config) any { return &c.Limits.GraphConditions },
	},
	{
		Name: "limits.graph_values", Default: "1024", Most: 1024,
		Meaning: "values of one context_in of a new transition graph; at most 1024",
		field:   func(c *Config) any { return &c.Limits.GraphValues },
	},
	{
		Name: "limits.context_vars", Default: "16384", Most: 16384,
		Meaning: "context variables of one workflow; at most 16384",
		field:   func(c *Config) any { return &c.Limits.ContextVars },
	},
	{
		Name: "limits.document", Default: "64KiB", Most: 1 << 20,
		Meaning: "size of one document; at most 1MiB",
		field:   func(c *Config) any { return &c.Limits.Document },
	},
	{
		Name: "limits.documents", Default: "100000",
		Meaning: "documents of one kind, access keys among them",
		field:   func(c *Config) any { return &c.Limits.Documents },
	},
	{
		Name: "limits.content", Default: "64MiB",
		Meaning: "size of one content: a file of a home",
		field:   func(c *Config) any { return &c.Limits.Content },
	},
	{
		Name: "limits.content_total", Default: "1GiB",
		Meaning: "all content of one home; each counts 1 KiB more than its size",
		field:   func(c *Config) any { return &c.Limits.ContentTotal },
	},
	{
		Name: "limits.states", Default: "64", Most: 10_000,
		Meaning: "channels whose past states are kept for looking back, at most 1 MiB of context variables for each",
		field:   func(c *Config) any { return &c.Limits.States },
	},
	{
		Name: "limits.content_hub", Default: "10GiB",
		Meaning: "all content of the hub",
		field:   func(c *Config) any { return &c.Limits.ContentHub },
	},
	{
		Name: "console.enabled", Default: "true",
		Meaning: "serve the console under /console/",
		field:   func(c *Config) any { return &c.Console.Enabled },
	},
	{
		Name: "console.session", Default: "12h",
		Meaning: "how long a browser stays signed in",
		field:   func(c *Config) any { return &c.Console.Session },
	},
	{
		Name: "console.sessions", Default: "1000", Most: 100_000,
		Meaning: "browsers signed in at once; one more ends the oldest session of its key, and is refused if that has none",
		field:   func(c *Config) any { return &c.Console.Sessions },
	},
	{
		Name: "hub.invite_ack_timeout", Default: "25s",
		Meaning: "time in which invited participants must acknowledge before a new channel is given up",
		field:   func(c *Config) any { return &c.Hub.InviteAckTimeout },
	},
	{
		Name: "hub.ttl_sweep_interval", Default: "30s", Zero: true,
		Meaning: "how often channels and tasks past their time to live are ended; 0 is never",
		field:   func(c *Config) any { return &c.Hub.TTLSweepInterval },
	},
	{
		Name: "hub.expectation_sweep_interval", Default: "10s", Zero: true,
		Meaning: "how often expectations that are due are looked at; 0 is never",
		field:   func(c *Config) any { return &c.Hub.ExpectationSweepInterval },
	},
	{
		Name: "hub.restart_grace", Default: "1m", Zero: true,
		Meaning: "how long whoever became overdue while no hub ran has to come back and answer, or what its expectation waits, if that is less",
		field:   func(c *Config) any { return &c.Hub.RestartGrace },
	},
	{
		Name: "hub.hold_for", Default: "30s",
		Meaning: "how long a supervisor's word waits for the round in flight",
		field:   func(c *Config) any { return &c.Hub.HoldFor },
	},
	{
		Name: "hub.idempotency_window", Default: "24h",
		Meaning: "how long an idempotency key is remembered",
		field:   func(c *Config) any { return &c.Hub.IdempotencyWindow },
	},
	{
		Name: "hub.evict_after", Default: "10m",
		Meaning: "how long a channel stays folded in memory untouched",
		field:   func(c *Config) any { return &c.Hub.EvictAfter },
	},
	{
		Name: "bridge.max_hops", Default: "8", Most: 1000,
		Meaning: "how often something that is said may cross between dialects; over it, it is refused",
		field:   func(c *Config) any { return &c.Bridge.MaxHops },
	},
	{
		Name: "tracing.otlp", Default: "",
		Meaning: "collector that spans are sent to by OTLP over HTTP, such as http://127.0.0.1:4318; empty: nothing is recorded",
		field:   func(c *Config) any { return &c.Tracing.OTLP }, check: checkCollector,
	},
	{
		Name: "tracing.headers", Default: "",
		Meaning: "file with headers for the collector, such as authorization: Bearer TOKEN, one on a line; OTEL_EXPORTER_OTLP_HEADERS counts too",
		field:   func(c *Config) any { return &c.Tracing.Headers },
	},
	{
		Name: "tracing.percent", Default: "100", Most: 100,
		Meaning: "how many of a hundred envelopes, channels and agents have spans, chosen by chance",
		field:   func(c *Config) any { return &c.Tracing.Percent },
	},
	{
		Name: "tracing.queue", Default: "8192", Most: 1 << 20,
		Meaning: "spans that wait for the collector; more are dropped and counted (parley_spans_total)",
		field:   func(c *Config) any { return &c.Tracing.Queue },
	},
	{
		Name: "tracing.timeout", Default: "10s",
		Meaning: "time in which the collector must take a batch of spans, and the rest of them when the hub ends",
		field:   func(c *Config) any { return &c.Tracing.Timeout },
	},
}.With(agentKeys, clusterKeys)

// Env is the environment variable that sets the key.
func (k Key) Env() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}
