package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/embedded"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

// serve runs a hub in this process until ctx ends: its journal in dir, an agent
// without a connection, and /v1 for everyone else.
func serve(ctx context.Context, dir string, l net.Listener) error {
	engine, err := disk.Open(dir, disk.Options{})
	if err != nil {
		return err
	}
	h, err := hub.Open(ctx, engine, hub.Options{Adapters: adapter.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return errors.Join(err, engine.Close())
	}

	ctx, stop := context.WithCancel(ctx)
	link, err := embedded.Attach(ctx, h, "shouter")
	if err != nil {
		stop()
		h.Close()
		return errors.Join(err, engine.Close())
	}
	shout := agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
		return &agent.Response{Text: strings.ToUpper(p.Input())}, nil
	})
	var running sync.WaitGroup
	running.Go(func() { _ = agent.New(link, shout, agent.Options{}).Run(ctx) })

	web := &http.Server{Handler: mounted(ctx, h)}
	running.Go(func() {
		<-ctx.Done()
		_ = web.Shutdown(context.WithoutCancel(ctx))
	})
	err = web.Serve(l)
	stop()                                                // first streams and agents end,
	running.Wait()                                        // and requests that are being answered;
	h.Close()                                             // then the hub,
	return errors.Join(ignoreClosed(err), engine.Close()) // and its journal last
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// mounted is /v1 behind the application's own sign-in, which decides who asks.
func mounted(ctx context.Context, h *hub.Hub) http.Handler {
	handler := api.New(api.Config{
		Hub:      h,
		Stopping: func(context.Context) <-chan struct{} { return ctx.Done() }, // streams end then
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		who := access.Principal{Role: access.Anonymous}
		if r.Header.Get("Authorization") == "Bearer open-sesame" {
			who.Role = access.Operator
		}
		handler.ServeHTTP(w, r.WithContext(access.With(r.Context(), who)))
	})
	return mux
}

// A hub in this process, with its journal on disk: an agent takes part without a
// connection, and a person asks it over /v1.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir, err := os.MkdirTemp("", "hub")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, dir, l) }()

	if err := talk(ctx, "http://"+l.Addr().String()); err != nil {
		fmt.Println(err)
	}
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// {"text":"HELLO OVER THERE"}
	// ended: <nil>
}

// talk asks the agent something over /v1.
func talk(ctx context.Context, url string) error {
	c, err := v1.New(url, v1.Options{Token: "open-sesame"})
	if err != nil {
		return err
	}
	if _, err := c.AddAgent(ctx, v1.Registration{Name: "ines", Kind: "human"}); err != nil {
		return err
	}
	ch, err := c.OpenChannel(ctx, v1.Opening{Type: "consulting", Creator: "ines", Participants: []string{"shouter"}})
	if err != nil {
		return err
	}
	text := "hello over there"
	if _, err := c.Send(ctx, ch.ID, v1.Posting{Sender: "ines", Text: &text}); err != nil {
		return err
	}
	return c.FollowEvents(ctx, ch.ID, v1.EventQuery{}, func(f v1.Frame) error {
		var e v1.Event
		if err := json.Unmarshal(f.Data, &e); err != nil {
			return err
		}
		if e.Type != envelope.TypeText || e.Sender == ch.Creator {
			return nil
		}
		fmt.Println(string(e.Data))
		return v1.ErrStop
	})
}
