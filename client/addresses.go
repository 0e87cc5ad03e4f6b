package client

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
)

// Headers of a node of a cluster that does not serve.
const (
	standbyHeader = "Parley-Standby" // its name
	servingHeader = "Parley-Serving" // where the one that serves is, if one does
)

// addresses are where the nodes of a hub may be. One is tried at a time; the next
// one after a failure, or the one that a node names.
type addresses struct {
	given []string
	now   string
}

func addressesOf(urls string) addresses {
	a := addresses{}
	for url := range strings.SplitSeq(urls, ",") {
		a.given = append(a.given, strings.TrimSpace(url))
	}
	a.now = a.given[0]
	return a
}

// look takes the result of an attempt to connect and selects another address
// if that should be tried next. It returns an error for a node that does not
// serve.
func (a *addresses) look(answer *http.Response, err error) error {
	if answer == nil || answer.Header.Get(standbyHeader) == "" {
		if err != nil {
			a.next()
		}
		return nil
	}
	node, serving := answer.Header.Get(standbyHeader), answer.Header.Get(servingHeader)
	refusal := fault.New(fault.Unavailable, "node %s at %s does not serve", node, a.now)
	refusal.Reason = fault.NotServing
	rest, http := strings.CutPrefix(serving, "http")
	if at := "ws" + rest; http && at != a.now && (!strings.HasPrefix(a.now, "wss:") || strings.HasPrefix(at, "wss:")) {
		a.now = at
	} else {
		a.next()
	}
	return refusal
}

func (a *addresses) next() {
	a.now = a.given[(slices.Index(a.given, a.now)+1)%len(a.given)]
}

// find connects to the first address that serves. It gives up when none can be
// reached, or when the reached nodes know no serving node within Timeout.
func (c *Client) find(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	wait := c.opts.Backoff
	for unreached := 0; ; {
		conn, err := c.dial(ctx)
		if err == nil {
			return conn, nil
		}
		unreached++
		if fault.ReasonOf(err) == fault.NotServing {
			unreached = 0
		}
		if unreached > len(c.at.given) || len(c.at.given) == 1 && unreached > 0 {
			return nil, err
		}
		if loop.Pause(ctx, wait) != nil {
			return nil, err
		}
		wait = min(2*wait, c.opts.MaxBackoff, time.Second)
	}
}
