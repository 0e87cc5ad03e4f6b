package api

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/access"
)

// How often conflated topics are checked: rows four times a second, the others once a
// second.
const (
	watchTick   = 250 * time.Millisecond
	ticksSecond = 4
)

// watches holds the open watches. While there are any, it checks for changes once for
// all of them.
type watches struct {
	api *API

	refreshing sync.Mutex
	mu         sync.Mutex
	all        map[string]*watcher
	stop       func()            // ends the ticker and waits for it; nil: it does not run
	rows       map[string][]byte // of this tick, for callers who see everything
}

// watcher has one stream's conflated topics, and what is due to be sent of them.
type watcher struct {
	id   string
	who  caller
	call *call
	of   *watches

	mu      sync.Mutex
	bell    chan struct{}
	rows    map[string]bool // by channel; true: due
	agents  map[string]bool
	summary *due
	stats   *due
	sent    map[string][]byte // agents as last sent
}

// due is a topic with a single value.
type due struct {
	now  bool
	sent []byte
}

// add begins a watch. Conflated topics begin with their current values.
func (ws *watches) add(c *call, topics []topic) (*watcher, error) {
	w := &watcher{id: envelope.NewID(), who: c.who, call: c, of: ws, sent: map[string][]byte{}}
	if err := w.set(topics); err != nil {
		return nil, err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.all == nil {
		ws.all = map[string]*watcher{}
	}
	ws.all[w.id] = w
	if ws.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { ws.run(ctx) })
		ws.stop = func() { cancel(); running.Wait() }
	}
	return w, nil
}

func (ws *watches) remove(w *watcher) {
	ws.mu.Lock()
	delete(ws.all, w.id)
	stop := ws.stop
	if len(ws.all) > 0 || stop == nil {
		ws.mu.Unlock()
		return
	}
	ws.stop = nil
	ws.mu.Unlock()
	stop()
}

// change replaces the topics of a watch of the same caller.
func (ws *watches) change(c *call, id string, topics []topic) error {
	ws.mu.Lock()
	w := ws.all[id]
	ws.mu.Unlock()
	if w == nil || w.who.Key != c.who.Key || w.who.Session != c.who.Session || w.who.Role != c.who.Role {
		return fault.New(fault.NotFound, "you have no watch '%.100s' open; its stream's hello names it", id)
	}
	if err := w.set(topics); err != nil {
		return err
	}
	w.ring()
	return nil
}

// set replaces the topics; the values of all are due.
func (w *watcher) set(topics []topic) error {
	rows, agents := map[string]bool{}, map[string]bool{}
	var summary, stats *due
	for _, t := range topics {
		switch t.kind {
		case "rows":
			for _, id := range t.ids {
				rows[id] = true
			}
		case "agents":
			for _, id := range t.ids {
				agents[id] = true
			}
		case "summary":
			summary = &due{now: true}
		case "stats":
			if !w.who.Has(access.Reader) {
				return fault.New(fault.AccessDenied, "stats take a key of role operator or reader").Because(fault.NeedsRole)
			}
			stats = &due{now: true}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows, w.agents, w.summary, w.stats = rows, agents, summary, stats
	w.sent = map[string][]byte{}
	return nil
}

func (w *watcher) listen(bell chan struct{}) {
	w.mu.Lock()
	w.bell = bell
	w.mu.Unlock()
}

func (w *watcher) ring() {
	w.mu.Lock()
	bell := w.bell
	w.mu.Unlock()
	if bell != nil {
		ring(bell)
	}
}

// run checks for changes until there are no watches.
func (ws *watches) run(ctx context.Context) {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := ws.refresh(ctx); err != nil && ctx.Err() == nil {
			ws.api.log.Warn("what is watched cannot be looked at", "error", err)
		}
		if n%ticksSecond == 0 {
			ws.second()
		}
	}
}

// refresh marks the rows of channels that have changed.
func (ws *watches) refresh(ctx context.Context) error {
	ws.refreshing.Lock()
	defer ws.refreshing.Unlock()
	changed, err := ws.api.hub.Changed(ctx)
	if len(changed) == 0 {
		return err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, id := range changed {
		delete(ws.rows, id)
	}
	for _, w := range ws.all {
		if w.mark(changed) {
			w.ring()
		}
	}
	return err
}

func (w *watcher) mark(changed []string) (marked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rows) == 0 {
		return false
	}
	for _, id := range changed {
		if _, watched := w.rows[id]; watched {
			w.rows[id], marked = true, true
		}
	}
	return marked
}

// second marks all topics but rows as due.
func (ws *watches) second() {
	ws.mu.Lock()
	all := make([]*watcher, 0, len(ws.all))
	for _, w := range ws.all {
		all = append(all, w)
	}
	ws.mu.Unlock()
	for _, w := range all {
		w.mu.Lock()
		for id := range w.agents {
			w.agents[id] = true
		}
		for _, d := range []*due{w.summary, w.stats} {
			if d != nil {
				d.now = true
			}
		}
		busy := len(w.agents) > 0 || w.summary != nil || w.stats != nil
		w.mu.Unlock()
		if busy {
			w.ring()
		}
	}
}

// next returns an event that is due; an empty name: there is none.
func (w *watcher) next(ctx context.Context) (name string, data []byte, err error) {
	for {
		name, id := w.take()
		switch name {
		case "":
			return "", nil, nil
		case "row":
			data, err = w.of.row(ctx, w, id)
		case "agent":
			data, err = w.agent(ctx, id)
		case "summary":
			data, err = w.summarize(ctx)
		default:
			data, err = w.sample()
		}
		if err != nil || data != nil {
			return name, data, err
		}
	}
}

// take removes one value that is due.
func (w *watcher) take() (name, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.summary != nil && w.summary.now:
		w.summary.now = false
		return "summary", ""
	case w.stats != nil && w.stats.now:
		w.stats.now = false
		return "sample", ""
	}
	for id, due := range w.rows {
		if due {
			w.rows[id] = false
			return "row", id
		}
	}
	for id, due := range w.agents {
		if due {
			w.agents[id] = false
			return "agent", id
		}
	}
	return "", ""
}

type goneRow struct {
	ID      string `json:"channel_id"`
	Deleted bool   `json:"deleted"`
}

// row returns a row as a watcher may see it. It is made once for all who see
// everything.
func (ws *watches) row(ctx context.Context, w *watcher, id string) ([]byte, error) {
	shared := w.who.seesAll() && w.who.Has(access.Operator)
	if shared {
		ws.mu.Lock()
		data := ws.rows[id]
		ws.mu.Unlock()
		if data != nil {
			return data, nil
		}
	}
	if _, err := ws.api.hub.As(w.who.hub()).Channel(ctx, id); err != nil {
		if code := fault.CodeOf(err); code == fault.NotFound || code == fault.AccessDenied {
			return encodeTopic("rows", goneRow{id, true})
		}
		return nil, err
	}
	r, err := ws.api.row(ctx, id, w.who.eyes())
	if fault.CodeOf(err) == fault.NotFound {
		return encodeTopic("rows", goneRow{id, true})
	}
	if err != nil {
		return nil, err
	}
	data, err := encodeTopic("rows", r)
	if err == nil && shared {
		ws.mu.Lock()
		if ws.rows == nil || len(ws.rows) > maxTitles {
			ws.rows = map[string][]byte{}
		}
		ws.rows[id] = data
		ws.mu.Unlock()
	}
	return data, err
}

func encodeTopic(topic string, value any) ([]byte, error) {
	data, err := encode(value)
	if err != nil {
		return nil, err
	}
	return withTopic(topic, data), nil
}

// agent returns an identity, if it differs from what was last sent.
func (w *watcher) agent(ctx context.Context, id string) ([]byte, error) {
	p, err := w.of.api.hub.Agent(id)
	if err != nil {
		return nil, nil // removed; lists show that
	}
	data, err := w.of.api.encodeAgent(ctx, p)
	if err != nil {
		return nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if bytes.Equal(w.sent[id], data) {
		return nil, nil
	}
	w.sent[id] = slices.Clone(data)
	return withTopic("agents", data), nil
}

// summarize returns the summary, if it differs from what was last sent.
func (w *watcher) summarize(ctx context.Context) ([]byte, error) {
	s, err := w.of.api.summaryFor(ctx, w.who)
	if err != nil {
		return nil, err
	}
	compared := s
	compared.At, compared.Position = time.Time{}, ""
	key, err := encode(compared)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.summary == nil || bytes.Equal(w.summary.sent, key) {
		return nil, nil
	}
	w.summary.sent = key
	return encodeTopic("summary", s)
}

// sample returns the newest sample of the stats.
func (w *watcher) sample() ([]byte, error) {
	r := w.of.api.cfg.Stats
	if r == nil {
		return nil, nil
	}
	newest, ok := r.Newest()
	if !ok {
		return nil, nil
	}
	data, err := encode(newest)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stats == nil || bytes.Equal(w.stats.sent, data) {
		return nil, nil
	}
	w.stats.sent = data
	return withTopic("stats", data), nil
}
