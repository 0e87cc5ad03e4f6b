package ag2

import (
	"time"

	"github.com/parley-hub/parley/server/config"
)

// Settings are the dialect's section of the configuration.
type Settings struct {
	AllowNone    string
	TrustClients bool
	MirrorTasks  string
	ReadWAL      string
	Expectations string
	DebugFrames  bool
	Limits       LimitSettings
}

// LimitSettings bound one connection of an AG2 client, and how many there are.
type LimitSettings struct {
	Connections int
	FrameBytes  config.Bytes
	QueueBytes  config.Bytes
	Requests    int
	Openings    int
	Identities  int
	Foreign     int
	Handshake   time.Duration
	Message     time.Duration
	Ping        time.Duration
	Pong        time.Duration
	Write       time.Duration
}

// Values of ag2.expectations: what is enforced in channels.
const (
	ExpectManifest = "manifest"
	ExpectNothing  = "off"
)

// Values of ag2.allow_none: from where the scheme "none" is accepted.
const (
	NoneFromLoopback = "loopback"
	NoneAlways       = "always"
	NoneNever        = "never"
)

type setting = config.SectionKey[Settings]

// Section is the dialect's section of the configuration.
var Section = config.NewSection("ag2",
	setting{Key: config.Key{
		Name: "ag2.allow_none", Default: NoneFromLoopback, Choices: []string{NoneFromLoopback, NoneAlways, NoneNever}, Exposes: NoneAlways,
		Meaning: "from where AG2 clients may identify themselves with the scheme none",
	}, Field: func(s *Settings) any { return &s.AllowNone }},
	setting{Key: config.Key{
		Name: "ag2.trust_clients", Default: "false",
		Meaning: "let any AG2 connection act for any identity",
	}, Field: func(s *Settings) any { return &s.TrustClients }},
	setting{Key: config.Key{
		Name: "ag2.mirror_tasks", Default: "ends", Choices: []string{"ends", "all", "off"},
		Meaning: "which task events are mirrored into the task's channel while its owner's turn runs: start and end, progress too, or none",
	}, Field: func(s *Settings) any { return &s.MirrorTasks }},
	setting{Key: config.Key{
		Name: "ag2.read_wal", Default: "filtered", Choices: []string{"filtered", "whole"},
		Meaning: "what a participant reads of a log that it may not see: filtered shows the envelope without its data, unless folds need it; whole shows all",
	}, Field: func(s *Settings) any { return &s.ReadWAL }},
	setting{Key: config.Key{
		Name: "ag2.expectations", Default: ExpectManifest, Choices: []string{ExpectManifest, ExpectNothing},
		Meaning: "which expectations are enforced, such as turn_within: manifest enforces those of a channel's type, or of its knob expectations instead; off none, in no channel",
	}, Field: func(s *Settings) any { return &s.Expectations }},
	setting{Key: config.Key{
		Name: "ag2.debug_frames", Default: "false",
		Meaning: "log every frame in and out of AG2 connections, with its kind; at log level debug",
	}, Field: func(s *Settings) any { return &s.DebugFrames }},
	setting{Key: config.Key{
		Name: "ag2.limits.connections", Default: "20000",
		Meaning: "AG2 connections open at once",
	}, Field: func(s *Settings) any { return &s.Limits.Connections }},
	setting{Key: config.Key{
		Name: "ag2.limits.frame_bytes", Default: "1MiB",
		Meaning: "size of one message of an AG2 client",
	}, Field: func(s *Settings) any { return &s.Limits.FrameBytes }},
	setting{Key: config.Key{
		Name: "ag2.limits.queue_bytes", Default: "8MiB",
		Meaning: "bytes waiting for one AG2 reader that takes nothing for two seconds, four times as much for one that reads; one that falls further behind is cut off and resumes from its cursor",
	}, Field: func(s *Settings) any { return &s.Limits.QueueBytes }},
	setting{Key: config.Key{
		Name: "ag2.limits.requests", Default: "1024",
		Meaning: "requests of one AG2 connection waiting for their turn",
	}, Field: func(s *Settings) any { return &s.Limits.Requests }},
	setting{Key: config.Key{
		Name: "ag2.limits.openings", Default: "256",
		Meaning: "channels being opened by one AG2 connection",
	}, Field: func(s *Settings) any { return &s.Limits.Openings }},
	setting{Key: config.Key{
		Name: "ag2.limits.identities", Default: "10000",
		Meaning: "identities bound to one AG2 connection",
	}, Field: func(s *Settings) any { return &s.Limits.Identities }},
	setting{Key: config.Key{
		Name: "ag2.limits.foreign", Default: "1000",
		Meaning: "channels of other dialects that one AG2 connection is told of at once, and the newest of an identity that are replayed and searched for turns",
	}, Field: func(s *Settings) any { return &s.Limits.Foreign }},
	setting{Key: config.Key{
		Name: "ag2.limits.handshake", Default: "10s",
		Meaning: "time to upgrade to WebSocket",
	}, Field: func(s *Settings) any { return &s.Limits.Handshake }},
	setting{Key: config.Key{
		Name: "ag2.limits.message", Default: "30s",
		Meaning: "time from a message's first byte to its last",
	}, Field: func(s *Settings) any { return &s.Limits.Message }},
	setting{Key: config.Key{
		Name: "ag2.limits.ping", Default: "20s",
		Meaning: "silence until a ping is sent",
	}, Field: func(s *Settings) any { return &s.Limits.Ping }},
	setting{Key: config.Key{
		Name: "ag2.limits.pong", Default: "20s",
		Meaning: "time to answer a ping",
	}, Field: func(s *Settings) any { return &s.Limits.Pong }},
	setting{Key: config.Key{
		Name: "ag2.limits.write", Default: "30s",
		Meaning: "time in which a reader must take what is written",
	}, Field: func(s *Settings) any { return &s.Limits.Write }},
)
