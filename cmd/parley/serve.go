package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/console"
	"github.com/parley-hub/parley/internal/gcpace"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/folder"
)

func (a *app) serve() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run a hub",
		Long: `Run a hub on a data folder until it is stopped with Ctrl+C or SIGTERM.

With --cluster the hub is one node of several: one of them serves, the others
stand by with copies of everything, and one takes over when it dies.

Settings come from a file, the environment and flags; see parley config reference.`,
		Example: `  parley serve
  parley serve --data ./elsewhere --listen 127.0.0.1:0
  parley serve --set limits.body=4MiB
  parley serve --cluster nats://a:4222,b:4222,c:4222 --node-name n1`,
		Args: cobra.NoArgs,
	}
	flags := addSettings(c, everyKey)
	forceInit := c.Flags().Bool("force-init", false, "make a data folder of a folder that holds other files")
	c.RunE = func(c *cobra.Command, _ []string) error {
		settings, err := flags.load(a.environ)
		if err != nil {
			return err
		}
		log, err := newLog(a.err, settings.Log)
		if err != nil {
			return err
		}
		if !*forceInit {
			if err := checkOurs(settings.Data.Dir); err != nil {
				return err
			}
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		// A second Ctrl+C must end the process at once, so the first signal restores
		// the default effect. SIGTERM does not: where it reports the parent's death,
		// Linux sends it once for each thread of the parent.
		defer context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })()
		gcpace.Floor(heapFloor)
		if len(settings.Cluster.URL) > 0 {
			return a.runNode(ctx, settings.Config, log)
		}
		return a.runHub(ctx, settings.Config, log)
	}
	return c
}

// heapFloor is the heap size below which garbage is not collected.
const heapFloor = 64 << 20

// runHub opens the parts of a hub in order, serves until ctx ends or the storage
// fails, and closes them in reverse order.
func (a *app) runHub(ctx context.Context, cfg config.Config, log *slog.Logger) (err error) {
	if err := checkBefore(cfg); err != nil {
		return err
	}
	held, err := folder.Hold(cfg.Data.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	engine, err := a.openJournal(cfg.Data, log)
	if err != nil {
		return err
	}
	end := &ending{engine: engine, timeout: cfg.Shutdown.Timeout}
	defer end.watch(ctx)()
	defer func() { err = errors.Join(err, end.closing("the journal", engine.Close)) }()

	deps, closeHub, err := compose(ctx, cfg, engine, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end.closing("the hub", closeHub)) }()
	s, err := server.New(ctx, cfg, deps)
	if err != nil {
		return err
	}
	if err := errors.Join(held.Announce(s.URL()), a.screen(cfg, s, deps.Keys, deps.Dialects)); err != nil {
		return errors.Join(err, s.Close())
	}
	gcpace.ForgetProgram()
	log.Info("listening", "address", s.Addr().String(), "data", cfg.Data.Dir, "pid", os.Getpid())
	if err := serveUntilFailure(ctx, s, engine); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// checkBefore refuses settings that cannot be served before a folder is created. An
// existing folder may have keys: then the server checks once they are read.
func checkBefore(cfg config.Config) error {
	if found, err := os.ReadDir(cfg.Data.Dir); err == nil && len(found) > 0 {
		return nil
	}
	return server.CanListen(cfg, 0)
}

// serveUntilFailure serves until ctx ends or the engine fails. After a failure the
// process has nothing left to do, and ends soon.
func serveUntilFailure(ctx context.Context, s *server.Server, engine journal.Engine) error {
	serving, fail := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-engine.Failed():
			s.Hurry(failedTimeout)
			fail(fmt.Errorf("the journal failed and admits nothing more: %w", engine.Health().Err))
		case <-serving.Done():
		}
	}()
	err := s.Run(serving)
	fail(nil)
	<-watched
	if cause := context.Cause(serving); ctx.Err() == nil && !errors.Is(cause, context.Canceled) {
		return errors.Join(err, cause)
	}
	return err
}

func (a *app) screen(cfg config.Config, s *server.Server, keys *access.Keys, dialects []server.Dialect) error {
	who := "this machine only, with a key"
	switch {
	case cfg.HTTP.BehindProxy:
		who = "everyone through the proxy, with a key"
	case !keys.Claimed():
		who = "this machine only; until the first key exists, everyone on it is operator"
	case cfg.TLS.Cert != "":
		who = "with a key, over TLS"
	}
	if cfg.HTTP.Insecure {
		who += " (--insecure: reachable from outside)"
	}
	data := started{
		Version: thisBuild().Version, PID: os.Getpid(), URL: s.URL(), Listen: s.Addr().String(),
		Data: cfg.Data.Dir, Keys: keys.Len(), Access: who, Also: s.Addresses(), terminal: isTerminal(a.out),
	}
	if keys.Claimed() && !cfg.HTTP.BehindProxy {
		data.Access += accessNote(cfg)
	}
	if console.Built && cfg.Console.Enabled {
		data.Console = s.URL() + console.Path
	}
	for _, d := range dialects {
		data.add(d.Banner(s.URL()))
	}
	return a.print(data, data.write)
}
