// Package adapter lists the adapters that Parley ships. Each lives in a
// package of its own and is pure: no clock, no I/O, no goroutine.
package adapter

import (
	"github.com/parley-hub/parley/adapter/consulting"
	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/adapter/discussion"
	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
)

// All returns AG2's adapters, each under its manifest's type at version 1.
// Workflow graphs are loaded with the default registry.
func All() []channel.Adapter { return AllWith(workflow.Options{}) }

// AllWith is All with options for workflows.
func AllWith(workflows workflow.Options) []channel.Adapter {
	return []channel.Adapter{
		consulting.Adapter{},
		conversation.Adapter{},
		discussion.Adapter{},
		workflow.New(workflows),
	}
}
