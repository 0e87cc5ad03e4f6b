package main

import (
	"context"
	"errors"
	"os"
	"os/exec"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/ag2bench"
	"github.com/parley-hub/parley/internal/bench/siegebench"
)

// benchAG2 measures a hub in a separate process and, if a URL is given, another hub
// for comparison.
func benchAG2(against string) benchmark {
	return func(ctx context.Context, plan bench.Plan) (bench.Report, error) {
		self, err := os.Executable()
		if err != nil {
			return bench.Report{}, errors.New("this program, which is also the hub, cannot be found: " + err.Error())
		}
		return ag2bench.Run(ctx, ag2bench.Options{
			Plan: plan, Against: against,
			Hub:   benchHub(self),
			Floor: benchFloor(self),
		})
	}
}

// benchHub starts a hub to measure. Its readers never answer and all connect from one
// address, so its inboxes and its limit for one peer are large.
func benchHub(program string) func(ctx context.Context, dir string) *exec.Cmd {
	return func(ctx context.Context, dir string) *exec.Cmd {
		hub := exec.CommandContext(ctx, program, "serve", "--data", dir, "--listen", "127.0.0.1:0", "--log-level", "error", "-o", "json")
		hub.Env = append(hub.Environ(), "PARLEY_LIMITS_INBOX=1000000000", "PARLEY_LIMITS_CONNECTIONS_PEER=20000")
		return hub
	}
}

// benchSiege attacks a hub in a separate process.
func benchSiege(ctx context.Context, plan bench.Plan) (bench.Report, error) {
	self, err := os.Executable()
	if err != nil {
		return bench.Report{}, errors.New("this program, which is also the hub, cannot be found: " + err.Error())
	}
	return siegebench.Run(ctx, siegebench.Options{Plan: plan, Hub: siegeHub(self), Floor: benchFloor(self)})
}

// siegeHub starts a hub with settings in its environment.
func siegeHub(program string) func(ctx context.Context, dir string, env []string) *exec.Cmd {
	return func(ctx context.Context, dir string, env []string) *exec.Cmd {
		hub := exec.CommandContext(ctx, program, "serve", "--data", dir, "--listen", "127.0.0.1:0", "--log-level", "error", "-o", "json")
		hub.Env = append(hub.Environ(), env...)
		return hub
	}
}

func benchFloor(program string) func(ctx context.Context) *exec.Cmd {
	return func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, program, "bench", "--"+floorFlag) }
}

// floorFlag makes this process the server that a hub is compared with.
const floorFlag = "floor-server"
