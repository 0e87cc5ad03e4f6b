package aghbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/natsbroker"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/disk"
)

const (
	workspace = "ws_bench"
	dock      = "dock"
	base      = "/agh/workspaces/" + workspace + "/network"
	token     = "bench"
)

// site is a hub on a disk with AGH's runtime, behind HTTP on a loopback port.
type site struct {
	engine *disk.Engine
	hub    *hub.Hub
	agh    *agh.Server
	http   *http.Server
	done   chan struct{}
	url    string
	nats   string // empty: there is no broker
}

// open opens a site on a folder; the broker is the hub's own NATS server.
func open(ctx context.Context, dir string, broker bool) (_ *site, err error) {
	quiet := slog.New(slog.DiscardHandler)
	s := &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.engine, err = disk.Open(dir, disk.Options{Logger: quiet}); err != nil {
		return s, err
	}
	s.hub, err = hub.Open(ctx, s.engine, hub.Options{
		Adapters: []channel.Adapter{conversation.Adapter{}, room.New(room.Options{}), thread.New(thread.Options{}), direct.New(direct.Options{})},
		Log:      quiet, TTLSweep: -1, ExpectationSweep: -1, Limits: hub.Limits{Inbox: 1 << 30}, // nobody acks
	})
	if err != nil {
		return s, err
	}
	// Rate limits protect against floods; here they would be what is measured.
	cfg := agh.Config{Hub: s.hub, Log: quiet, Limits: agh.Limits{SubscriptionRate: 1 << 30, SenderRate: 1 << 30}}
	if broker {
		b, err := natsbroker.Open(natsbroker.Options{Listen: "127.0.0.1:0", Token: token, Log: quiet})
		if err != nil {
			return s, err
		}
		host, port := b.Address()
		cfg.Broker, s.nats = b, fmt.Sprintf("nats://%s:%d", host, port)
	}
	if s.agh, err = agh.New(cfg); err != nil {
		return s, err
	}
	if err := s.agh.Start(ctx); err != nil {
		return s, err
	}
	return s, s.listen(ctx)
}

func (s *site) listen(ctx context.Context) error {
	at, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.url, s.done = "http://"+at.Addr().String(), make(chan struct{})
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(at) // it ends when it is closed
	}()
	return nil
}

func (s *site) handler() http.Handler { return s.agh.Mount().Routes[0].Handler }

func (s *site) close() error {
	var errs []error
	if s.http != nil {
		_ = s.http.Close()
		<-s.done
	}
	if s.agh != nil {
		errs = append(errs, s.agh.Close())
	}
	if s.hub != nil {
		s.hub.Close()
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	return errors.Join(errs...)
}

// call makes a request without a network and returns the answer.
func (s *site) call(ctx context.Context, method, path string, body any, into any) error {
	var payload io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(text)
	}
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, base+path, payload))
	if w.Code >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(w.Body.Bytes(), into)
}

// join makes a hosted peer and returns its session.
func (s *site) join(ctx context.Context, peer string) (session string, err error) {
	var joined struct {
		Session string `json:"session_id"`
	}
	err = s.call(ctx, http.MethodPost, "/channels/"+dock+"/peers", map[string]string{"agent": peer, "peer_id": peer}, &joined)
	return joined.Session, err
}
