package access

import (
	"maps"
	"net/netip"
	"sync"
	"time"
)

// Failed authentications are reported at most so often for each address, and
// for so many addresses at a time.
const (
	failuresPerMinute = 10
	maxAddresses      = 4096
)

// Failures reports failed authentications, a bounded number for each address,
// and counts the rest.
type Failures struct {
	tell func(Failure)
	now  func() time.Time

	mu sync.Mutex
	by map[string]*failureWindow
	at time.Time // when addresses were last forgotten
}

// Failure is a failed authentication.
type Failure struct {
	Address string // without port; of IPv6 the network
	Door    string // where it was tried, such as http or ag2
	Name    string // the claimed name, if any
	// Untold is how many failures of the same address came before it without a record.
	Untold int
}

type failureWindow struct {
	since  time.Time
	told   int
	untold int
}

// NewFailures returns Failures that call tell for each failure to report.
func NewFailures(tell func(Failure)) *Failures {
	return &Failures{tell: tell, now: time.Now, by: map[string]*failureWindow{}}
}

// Note records a failed authentication of a remote address.
func (f *Failures) Note(remote, door, name string) {
	address := networkOf(remote)
	if untold, worth := f.count(address); worth {
		f.tell(Failure{Address: address, Door: door, Name: name, Untold: untold})
	}
}

// Wait returns how long an address that failed too often has to wait; 0 is not at all.
func (f *Failures) Wait(remote string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.by[networkOf(remote)]
	if w == nil && len(f.by) >= maxAddresses {
		w = f.by["others"]
	}
	if w == nil || w.told < failuresPerMinute {
		return 0
	}
	return max(0, w.since.Add(time.Minute).Sub(f.now()))
}

func (f *Failures) count(address string) (untold int, worth bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	w := f.by[address]
	if w == nil {
		if len(f.by) >= maxAddresses && now.Sub(f.at) >= time.Second {
			f.forget(now)
		}
		if len(f.by) >= maxAddresses {
			address = "others"
			w = f.by[address]
		}
		if w == nil {
			w = &failureWindow{since: now}
			f.by[address] = w
		}
	}
	if now.Sub(w.since) >= time.Minute {
		w.since, w.told = now, 0
	}
	if w.told >= failuresPerMinute {
		w.untold++
		return 0, false
	}
	w.told++
	untold, w.untold = w.untold, 0
	return untold, true
}

// forget drops the addresses that have been quiet for a minute.
func (f *Failures) forget(now time.Time) {
	f.at = now
	maps.DeleteFunc(f.by, func(_ string, w *failureWindow) bool { return now.Sub(w.since) >= time.Minute })
}

// networkOf returns the part of a remote address that its holder cannot choose.
func networkOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "?"
	}
	address := at.Addr().Unmap().WithZone("")
	if address.Is6() && !address.IsLoopback() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}
