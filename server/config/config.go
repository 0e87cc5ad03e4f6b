// Package config defines every setting: its name, default and meaning, how it is read
// from file, environment and flags, and where each value came from. It never opens a
// port or a folder.
package config

import "time"

// Config is every setting with its effective value. Keys lists what each one
// means; a new setting is a field here and a row there.
type Config struct {
	Data     Data
	HTTP     HTTP
	TLS      TLS
	Log      Log
	Shutdown Shutdown
	Limits   Limits
	Console  Console
	Agents   Agents
	Hub      Hub
	Bridge   Bridge
	Tracing  Tracing
	Cluster  Cluster

	Sections map[string]any // of dialects that define their own: see Section
	Exposing []string       // settings that admit clients from everywhere without authentication
}

// Data is where and how the hub stores.
type Data struct {
	Dir     string
	MinFree Bytes
	// Snapshots bounds what is kept of folds, in bytes.
	Snapshots Bytes
	// RecentCommits bounds the newest commits in memory, in bytes.
	RecentCommits Bytes
}

// HTTP is the one listener that every dialect shares.
type HTTP struct {
	Listen         string
	Origins        []string
	Hosts          []string
	BehindProxy    bool
	Insecure       bool
	MaxConnections int
	MaxHeader      Bytes
	HeaderTimeout  time.Duration
	BodyTimeout    time.Duration
	IdleTimeout    time.Duration
}

// TLS names the files of the certificate; both empty means plain HTTP.
type TLS struct {
	Cert string
	Key  string
}

// Log says what is logged and how.
type Log struct {
	Level  string
	Format string
}

// Shutdown bounds how long a stopping hub waits for its clients.
type Shutdown struct {
	Timeout time.Duration
}

// Limits bound what clients can make the hub hold.
type Limits struct {
	ConnectionsPeer int
	Answers         Bytes
	Body            Bytes
	Import          Bytes
	Event           Bytes
	Record          Bytes
	Profile         Bytes
	ProfileCache    Bytes
	RecentEvents    Bytes
	Page            int
	PageBytes       Bytes
	View            Bytes
	Search          Bytes
	Followers       int
	FollowerWrite   time.Duration
	KeepAlive       time.Duration
	Agents          int
	Participants    int
	InFlight        int
	LoadedChannels  int
	Endpoints       int
	Transient       int
	Replay          int
	Held            int
	Inbox           int
	Deadlines       int
	OpenRequests    int
	AskedRequests   int
	States          int
	OpenTasks       int
	OpenTasksOwner  int
	Lists           Bytes
	Reads           Bytes
	RuleGlobs       int
	GraphConditions int
	GraphValues     int
	ContextVars     int
	Document        Bytes
	Documents       int
	Content         Bytes
	ContentTotal    Bytes
	ContentHub      Bytes
}

// Console is the page for operators.
type Console struct {
	Enabled  bool
	Session  time.Duration
	Sessions int
}

// Agents is how agent definitions are run in this process.
type Agents struct {
	Hosted      bool
	Runs        int
	Tokens      int
	Money       string // dollars
	Turns       int
	Time        time.Duration
	PriceInput  string // dollars for a million tokens
	PriceOutput string
}

// Bridge is what crosses between dialects.
type Bridge struct {
	MaxHops int
}

// Tracing is where spans are sent, and how many.
type Tracing struct {
	OTLP    string
	Headers string
	Percent int
	Queue   int
	Timeout time.Duration
}

// Hub is the core's own timing.
type Hub struct {
	InviteAckTimeout         time.Duration
	TTLSweepInterval         time.Duration
	ExpectationSweepInterval time.Duration
	RestartGrace             time.Duration
	HoldFor                  time.Duration
	IdempotencyWindow        time.Duration
	EvictAfter               time.Duration
}

// Cluster is what makes the hub one node of several, of which one serves.
type Cluster struct {
	URL        []string // of the NATS servers; none: the hub is alone
	Name       string
	Node       string
	Address    string
	Creds      string
	CA         string
	Cert       string
	Key        string
	Monitor    []string
	AssumeSync bool
	Shards     int
	Replicas   int
	Suspect    time.Duration
	GroupBytes Bytes
}
