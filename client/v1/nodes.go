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

// A hub may be several nodes of which one serves. The client asks one; a node that
// stands by does nothing and says who serves; one that is gone refuses the
// connection. In both cases another is asked, and nothing is done twice.

// maxBases bounds how many addresses a client is given.
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

// Addresses are all addresses of the hub, the one that is asked now first, separated
// by commas, as New takes them.
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

// Pauses between two looks for the node that serves.
const (
	minSearch = 100 * time.Millisecond
	maxSearch = time.Second
)

// search is one request's way to the node that serves.
type search struct {
	client  *Client
	patient time.Time // until when nodes that stand by are asked again
	pause   time.Duration
	refused int // connections in a row
	sent    int // how often one node named another, without a pause
}

func (c *Client) search() *search {
	return &search{client: c, patient: time.Now().Add(callTimeout), pause: minSearch}
}

// again reports whether the request should be sent once more, to another address
// or after a pause. The error says what came of it.
func (s *search) again(ctx context.Context, err error) bool {
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
			return false // all are gone
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

// elsewhere turns to another address, if the error says that the one that was asked
// does not serve, and reports whether that one is known to.
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

// turnTo uses another address from now on, unless that one is in use already or is
// less protected.
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

// turn uses the next of the addresses from now on, and returns how many there are.
func (c *Client) turn() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next()
	return len(c.bases) + 1 // with one that a node may have named
}

// next is turn under the lock.
func (c *Client) next() {
	if i := slices.Index(c.bases, c.base); len(c.bases) > 1 || i < 0 {
		c.base = c.bases[(i+1)%len(c.bases)]
	}
}
