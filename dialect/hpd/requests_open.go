package hpd

import (
	"sync"

	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// asked is the dialect's state of a run's request, besides what the hub stores.
type asked struct {
	id      string // the hub's
	request wire.Request
	run     *run

	told chan struct{} // closed when its end was shown

	mu       sync.Mutex
	response *wire.Event // the answer, once there is one
}

// asks are the requests of runs of this process, by channel and request id. Ended
// requests are read from the hub.
type asks struct {
	mu  sync.Mutex
	all map[[2]string]*asked
}

func (a *asks) get(channelID, id string) *asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[[2]string{channelID, id}]
}

// add registers a request; it returns false if one of that id is open.
func (a *asks) add(x *asked) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := [2]string{x.run.scope.channel, x.request.RequestID}
	if a.all[key] != nil {
		return false
	}
	if a.all == nil {
		a.all = map[[2]string]*asked{}
	}
	a.all[key] = x
	return true
}

func (a *asks) remove(x *asked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := [2]string{x.run.scope.channel, x.request.RequestID}
	if a.all[key] == x {
		delete(a.all, key)
	}
}

// of returns the open requests of a run.
func (a *asks) of(x *run) []*asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*asked
	for _, one := range a.all {
		if one.run == x {
			list = append(list, one)
		}
	}
	return list
}
