package chat

import (
	"time"

	"github.com/parley-hub/parley/server/config"
)

// Settings are the section of chats in the configuration.
type Settings struct {
	User     string
	Sessions int
	Messages int
	Runs     int
	Timeout  time.Duration
}

type setting = config.SectionKey[Settings]

// Section is the section of chats in the configuration.
var Section = config.NewSection("chat",
	setting{Key: config.Key{
		Name: "chat.user", Default: "user",
		Meaning: "name of the human whose chat sessions an operator's are, unless it says otherwise; registered at first use",
	}, Field: func(s *Settings) any { return &s.User }},
	setting{Key: config.Key{
		Name: "chat.sessions", Default: "1000",
		Meaning: "chat sessions of one owner; more are refused until some are deleted",
	}, Field: func(s *Settings) any { return &s.Sessions }},
	setting{Key: config.Key{
		Name: "chat.messages", Default: "10000",
		Meaning: "messages of one chat session",
	}, Field: func(s *Settings) any { return &s.Messages }},
	setting{Key: config.Key{
		Name: "chat.runs", Default: "256",
		Meaning: "chat runs under way at once; one owner has at most a quarter of them",
	}, Field: func(s *Settings) any { return &s.Runs }},
	setting{Key: config.Key{
		Name: "chat.timeout", Default: "10m",
		Meaning: "time in which a chat run must be answered",
	}, Field: func(s *Settings) any { return &s.Timeout }},
)
