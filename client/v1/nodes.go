package v1

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/parley-hub/parley/fault"
)

// A hub may have several nodes, one of which serves. A standby node does nothing and
// names the serving one; a node that is down refuses the connection. In both cases
// the client sends the request to another node, and nothing is done twice.

// maxBases bounds how many addresses a client may have.
const maxBases = 16

// cleanBases reads one or more URLs of a hub, separated by commas.
func cleanBases(text string) ([]string, error) {
	var bases []string
	for part := range strings.SplitSeq(text, ",") {
		base, err := cleanBase(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		bases = append(bases, base)
	}
	if len(bases) > maxBases {
		return nil, fault.New(fault.Invalid, "%d addresses of a hub are given; %d is the most", len(bases), maxBases)
	}
	return bases, nil
}

// Addresses returns all addresses of the hub, separated by commas as New takes them,
// the one in use first.
func (c *Client) Addresses() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []string{c.base}
	for _, base := range c.bases {
		if base != c.base {
			list = append(list, base)
		}
	}
	return strings.Join(list, ",")
}

// Pauses between two searches for the serving node.
const (
	minSearch = 100 * time.Millisecond
	maxSearch = time.Second
)

// search is the state of one request's search for the serving node.
type search struct {
	client  *Client
	patient time.Time // until when standby nodes are asked again
	pause   time.Duration
	refused int // consecutive refused connections
	sent    int // how often one node named another, without a pause
}

func (c *Client) search() *search {
	return &search{client: c, patient: time.Now().Add(callTimeout), pause: minSearch}
}

// retry reports whether the request should be sent again, to another address or after
// a pause. The error is that of the last attempt.
func (s *search) retry(ctx context.Context, err error) bool {
	var dialing *net.OpError
	switch {
	case fault.ReasonOf(err) == fault.NotServing:
		s.refused = 0
		if s.client.turnTo(fault.DetailsOf(err)[fault.DetailAddress]) && s.sent < 2 {
			s.sent++
			return ctx.Err() == nil
		}
	case errors.As(err, &dialing) && dialing.Op == "dial":
		s.refused++
		if s.refused >= s.client.turn() {
			return false // all are down
		}
		return ctx.Err() == nil
	default:
		return false
	}
	if time.Now().After(s.patient) {
		return false
	}
	timer := time.NewTimer(s.pause)
	defer timer.Stop()
	s.pause, s.sent = min(2*s.pause, maxSearch), 0
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// elsewhere switches to another address if the error says that the current one does
// not serve, and reports whether the new one is known to serve.
func (s *search) elsewhere(err error) bool {
	var dialing *net.OpError
	if fault.ReasonOf(err) == fault.NotServing {
		return s.client.turnTo(fault.DetailsOf(err)[fault.DetailAddress])
	}
	if errors.As(err, &dialing) {
		s.client.turn()
	}
	return false
}

// turnTo switches to another address, unless it is already in use or is less
// protected.
func (c *Client) turnTo(address string) bool {
	base, err := cleanBase(address)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || base == c.base || strings.HasPrefix(c.base, "https:") && !strings.HasPrefix(base, "https:") {
		c.next()
		return false
	}
	c.base = base
	return true
}

// turn switches to the next address, and returns how many there are.
func (c *Client) turn() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next()
	return len(c.bases) + 1 // with one that a node may have named
}

// next is like turn; the caller holds the lock.
func (c *Client) next() {
	if i := slices.Index(c.bases, c.base); len(c.bases) > 1 || i < 0 {
		c.base = c.bases[(i+1)%len(c.bases)]
	}
}
