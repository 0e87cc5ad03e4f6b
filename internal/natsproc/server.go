// Package natsproc runs NATS servers as processes of their own: this program
// again, with an environment that makes it a server. They can be killed, paused,
// cut off from each other and started again. It is for benches and tests.
package natsproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// environment is the variable that says which server a process is.
const environment = "PARLEY_NATS_SERVER"

// config is one server.
type config struct {
	Name    string
	Dir     string
	Port    int // for clients
	Monitor int
	Route   int      // for the other servers
	Routes  []string // where the others are for this one
	Dead    string   // the address that it advertises: a port on which nobody listens
	NoSync  bool     // keep NATS's default sync_interval
}

// ServeIfTold runs a server until its standard input ends, and then ends the process.
// It does nothing unless the environment names a server.
func ServeIfTold() {
	text := os.Getenv(environment)
	if text == "" {
		return
	}
	if err := serve(text); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "NATS server:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(text string) error {
	var c config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	opts := &server.Options{
		ServerName: c.Name, Host: "127.0.0.1", Port: c.Port, HTTPHost: "127.0.0.1", HTTPPort: c.Monitor,
		NoLog: true, NoSigs: true, JetStream: true, StoreDir: c.Dir, SyncAlways: !c.NoSync,
		Cluster: server.ClusterOpts{Name: "natsproc", Host: "127.0.0.1", Port: c.Route, PoolSize: -1, NoAdvertise: true, Advertise: c.Dead},
	}
	for _, r := range c.Routes {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: r})
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return errors.New("it does not start")
	}
	if _, err := fmt.Fprintln(os.Stdout, "ready"); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes it, or ends
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// sleep waits, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
