package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/parley-hub/parley/client/v1"
)

// storm sends notes to a running hub, rate of them a second, or as many as the
// hub takes if rate is 0. A note to oneself fills nobody's inbox.
type storm struct {
	hub, channel, sender string
	rate, count          int
}

func (s storm) run(ctx context.Context) error {
	c, err := client.New(s.hub, client.Options{})
	if err != nil {
		return err
	}
	const atOnce = 64
	errs := make([]error, atOnce)
	var next atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for worker := range atOnce {
		all.Go(func() {
			for errs[worker] == nil {
				n := int(next.Add(1))
				if n > s.count {
					return
				}
				if s.rate > 0 {
					time.Sleep(time.Until(begun.Add(time.Duration(n) * time.Second / time.Duration(s.rate))))
				}
				_, errs[worker] = c.Send(ctx, s.channel, client.Posting{
					Sender: s.sender, Audience: []string{s.sender}, Type: "app.note", Data: json.RawMessage(fmt.Sprintf(`{"text":"note %d"}`, n)),
				})
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"sent": s.count, "seconds": time.Since(begun).Seconds()})
}
