package runner_test

import "github.com/parley-hub/parley/adapter/turn"

type agentCall = turn.Call
