package hpd

import (
	"time"

	"github.com/parley-hub/parley/server/config"
)

// Settings are the dialect's section of the configuration.
type Settings struct {
	DefaultAgent    string
	User            string
	RecursiveDelete bool
	HasChildren     string
	InterruptGrace  time.Duration
	ProducerGrace   time.Duration
	Persist         PersistSettings
	Limits          LimitSettings
}

// PersistSettings selects which live events are also stored.
type PersistSettings struct {
	Requests         bool
	Workflow         bool
	Content          bool
	AudioTranscripts string
}

// LimitSettings bound what HPD's clients can make the hub hold.
type LimitSettings struct {
	Sessions    int
	Streams     int
	Behind      int
	BehindBytes config.Bytes
	Upload      time.Duration
	Connections int
	FrameBytes  config.Bytes
	QueueBytes  config.Bytes
	Runs        int
	Work        int
	Keys        int
	Recent      int
	Remembered  int
	Requests    int
}

type setting = config.SectionKey[Settings]

// Section is the dialect's section of the configuration.
var Section = config.NewSection("hpd",
	setting{Key: config.Key{
		Name: "hpd.default_agent", Default: "",
		Meaning: "agent that takes HPD inputs for agents that nobody knows; empty answers them with 404",
	}, Field: func(s *Settings) any { return &s.DefaultAgent }},
	setting{Key: config.Key{
		Name: "hpd.user", Default: "user",
		Meaning: "name of the human as whom an operator's HPD inputs are posted; registered at first use",
	}, Field: func(s *Settings) any { return &s.User }},
	setting{Key: config.Key{
		Name: "hpd.recursive_delete", Default: "false",
		Meaning: "let HPD clients delete a branch together with its forks",
	}, Field: func(s *Settings) any { return &s.RecursiveDelete }},
	setting{Key: config.Key{
		Name: "hpd.has_children", Default: "400", Choices: []string{"400", "409"},
		Meaning: "status of the refusal to delete a branch that has forks",
	}, Field: func(s *Settings) any { return &s.HasChildren }},
	setting{Key: config.Key{
		Name: "hpd.interrupt_grace", Default: "10s",
		Meaning: "how long an interrupted producer has to end its run; then it is cut off",
	}, Field: func(s *Settings) any { return &s.InterruptGrace }},
	setting{Key: config.Key{
		Name: "hpd.producer_grace", Default: "1m",
		Meaning: "how long a remote producer may be away: its runs wait for it, and inputs for it are accepted",
	}, Field: func(s *Settings) any { return &s.ProducerGrace }},
	setting{Key: config.Key{
		Name: "hpd.persist.requests", Default: "false",
		Meaning: "store AGENT_REQUEST_* and AGENT_RESPONSE_REJECTED in the history",
	}, Field: func(s *Settings) any { return &s.Persist.Requests }},
	setting{Key: config.Key{
		Name: "hpd.persist.workflow", Default: "false",
		Meaning: "store workflow events in the history",
	}, Field: func(s *Settings) any { return &s.Persist.Workflow }},
	setting{Key: config.Key{
		Name: "hpd.persist.content", Default: "false",
		Meaning: "store content and reference events in the history",
	}, Field: func(s *Settings) any { return &s.Persist.Content }},
	setting{Key: config.Key{
		Name: "hpd.persist.audio_transcripts", Default: "off", Choices: []string{"off", "final", "all"},
		Meaning: "how much of a user's audio transcripts is stored; raw audio never is",
	}, Field: func(s *Settings) any { return &s.Persist.AudioTranscripts }},
	setting{Key: config.Key{
		Name: "hpd.limits.sessions", Default: "10000",
		Meaning: "sessions in one answer; pages reach the rest",
	}, Field: func(s *Settings) any { return &s.Limits.Sessions }},
	setting{Key: config.Key{
		Name: "hpd.limits.streams", Default: "10000",
		Meaning: "HPD event streams open at once",
	}, Field: func(s *Settings) any { return &s.Limits.Streams }},
	setting{Key: config.Key{
		Name: "hpd.limits.behind", Default: "1024",
		Meaning: "events that a reader of a stream may fall behind; then it is cut off and resumes by its position",
	}, Field: func(s *Settings) any { return &s.Limits.Behind }},
	setting{Key: config.Key{
		Name: "hpd.limits.behind_bytes", Default: "8MiB",
		Meaning: "bytes of the events that a reader may fall behind",
	}, Field: func(s *Settings) any { return &s.Limits.BehindBytes }},
	setting{Key: config.Key{
		Name: "hpd.limits.upload", Default: "10m",
		Meaning: "time for one upload of a content",
	}, Field: func(s *Settings) any { return &s.Limits.Upload }},
	setting{Key: config.Key{
		Name: "hpd.limits.connections", Default: "10000",
		Meaning: "HPD WebSockets open at once",
	}, Field: func(s *Settings) any { return &s.Limits.Connections }},
	setting{Key: config.Key{
		Name: "hpd.limits.frame_bytes", Default: "2MiB",
		Meaning: "size of one message of an HPD WebSocket",
	}, Field: func(s *Settings) any { return &s.Limits.FrameBytes }},
	setting{Key: config.Key{
		Name: "hpd.limits.queue_bytes", Default: "8MiB",
		Meaning: "bytes waiting for one HPD WebSocket",
	}, Field: func(s *Settings) any { return &s.Limits.QueueBytes }},
	setting{Key: config.Key{
		Name: "hpd.limits.runs", Default: "10000",
		Meaning: "runs of a branch in one answer; pages reach the rest",
	}, Field: func(s *Settings) any { return &s.Limits.Runs }},
	setting{Key: config.Key{
		Name: "hpd.limits.work", Default: "1024",
		Meaning: "frames that wait for a remote producer that does not read; then it is cut off, and is told again when it is back",
	}, Field: func(s *Settings) any { return &s.Limits.Work }},
	setting{Key: config.Key{
		Name: "hpd.limits.keys", Default: "4096",
		Meaning: "idempotency keys of one run that are remembered besides those of stored events",
	}, Field: func(s *Settings) any { return &s.Limits.Keys }},
	setting{Key: config.Key{
		Name: "hpd.limits.recent", Default: "8192",
		Meaning: "events, and turns, whose fields that are shown live and never stored are remembered for readers",
	}, Field: func(s *Settings) any { return &s.Limits.Recent }},
	setting{Key: config.Key{
		Name: "hpd.limits.remembered", Default: "100000",
		Meaning: "sessions, producers and ends of runs that are remembered as looked at; forgotten ones are looked at again",
	}, Field: func(s *Settings) any { return &s.Limits.Remembered }},
	setting{Key: config.Key{
		Name: "hpd.limits.requests", Default: "1000", Most: 1000,
		Meaning: "requests of a branch that are listed, or looked through for one that has ended; at most 1,000",
	}, Field: func(s *Settings) any { return &s.Limits.Requests }},
)
