package hubbench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bench"
)

// opening compares opening a hub on many channels with one on few.
func opening(ctx context.Context, o Options) ([]bench.Figure, error) {
	few, many := filepath.Join(o.Dir, "few"), filepath.Join(o.Dir, "many")
	for dir, n := range map[string]int{few: max(o.Channels/100, 1), many: o.Channels} {
		if err := populate(ctx, dir, n); err != nil {
			return nil, err
		}
	}
	open := func(dir string) bench.Side {
		return func(ctx context.Context, _ time.Duration) (bench.Sample, error) {
			start := time.Now()
			s, err := open(ctx, dir, hub.Options{})
			took := time.Since(start)
			if err != nil {
				return bench.Sample{}, err
			}
			return bench.Sample{Value: float64(took.Microseconds()) / 1000}, s.close()
		}
	}
	f, err := bench.Contest{
		Name: fmt.Sprintf("opening with %d channels, against %d", o.Channels, max(o.Channels/100, 1)),
		Unit: "ms", Better: bench.Lower, Target: ptr(2), Ours: open(many), Floor: open(few),
	}.Run(ctx, o.Plan)
	return []bench.Figure{f}, err
}

// populate opens conversations of two with ten texts each.
func populate(ctx context.Context, dir string, n int) error {
	s, err := open(ctx, dir, hub.Options{})
	if err != nil {
		return err
	}
	_, err = s.channels(ctx, n, "conversation", nil, 10)
	return errors.Join(err, s.close())
}

// channels opens many channels at once and says something in each.
func (s *site) channels(ctx context.Context, n int, kind string, knobs []byte, texts int) ([]string, error) {
	ids := make([]string, n)
	return ids, parallel(n, func(i int) (err error) {
		ids[i], err = s.channel(ctx, kind, knobs)
		for t := 0; t < texts && err == nil; t++ {
			err = s.short(ctx, ids[i])
		}
		return err
	})
}

// parallel calls a function n times, many at once.
func parallel(n int, do func(i int) error) error {
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	next := make(chan int)
	for range 128 {
		wg.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return failed
}

func (s *site) short(ctx context.Context, channel string) error {
	_, err := s.hub.Post(ctx, &envelope.Envelope{Channel: channel, Sender: s.a, Type: envelope.TypeText, Data: []byte(`{"text":"hello"}`)}, nil)
	return err
}

// weight counts the heap that loaded channels take.
func weight(ctx context.Context, o Options) (figures []bench.Figure, err error) {
	s, err := open(ctx, filepath.Join(o.Dir, "many"), hub.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	ids, err := s.listed(ctx)
	if err != nil {
		return nil, err
	}
	conversation, left, err := s.weigh(ctx, ids)
	if err != nil {
		return nil, err
	}
	flows, err := s.channels(ctx, o.Channels/10, "workflow", queueGraph(s.a, s.b), 0)
	if err != nil {
		return nil, err
	}
	workflow, _, err := s.weigh(ctx, flows)
	if err != nil {
		return nil, err
	}
	inHome, alone, err := weighRooms(ctx, filepath.Join(o.Dir, "rooms"), o.Channels/10)
	return []bench.Figure{
		bench.Against(fmt.Sprintf("heap of each of %d loaded channels of a home, against as many without", o.Channels/10), inHome, alone, "B", ptr(1.2)),
		bench.Counted("heap of a loaded conversation of two with ten texts", conversation, "B", ptr(1024)),
		bench.Counted("heap of a loaded workflow with the graph of a task queue", workflow, "B", ptr(4096)),
		bench.Counted("heap left of a channel after eviction", left, "B", ptr(64)),
	}, err
}

// weigh loads channels and reports what each takes, and what remains after they are
// evicted.
func (s *site) weigh(ctx context.Context, ids []string) (each, left float64, err error) {
	s.hub.Evict()
	before := heap()
	for _, id := range ids {
		if _, err := s.hub.State(ctx, id); err != nil {
			return 0, 0, err
		}
	}
	loaded := heap()
	s.hub.Evict()
	after := heap()
	n := float64(len(ids))
	return (loaded - before) / n, max(after-before, 0) / n, nil
}

// weighRooms weighs channels that open at once: of one home, and without one. Each kind
// is loaded by a hub that was just opened, so that the caches hold nothing of the other
// kind or of writing them.
func weighRooms(ctx context.Context, dir string, n int) (inHome, alone float64, err error) {
	ids, err := fillRooms(ctx, dir, n)
	if err != nil {
		return 0, 0, err
	}
	for i, each := range []*float64{&inHome, &alone} {
		s, err := open(ctx, dir, hub.Options{})
		if err != nil {
			return 0, 0, err
		}
		*each, _, err = s.weigh(ctx, ids[i])
		if err = errors.Join(err, s.close()); err != nil {
			return 0, 0, err
		}
	}
	return inHome, alone, nil
}

// fillRooms opens channels at once: n of one home, and n without one.
func fillRooms(ctx context.Context, dir string, n int) (ids [2][]string, err error) {
	s, err := open(ctx, dir, hub.Options{})
	if err != nil {
		return ids, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	home, err := s.hub.Home(ctx, "bench", "weight")
	if err != nil {
		return ids, err
	}
	for kind, of := range []string{home.ID, ""} {
		ids[kind] = make([]string, n)
		err := parallel(n, func(i int) error {
			opened, _, err := s.hub.AdmitOpening(ctx, hub.Opening{
				Creator: s.a, Type: "bench-room", Home: of, Participants: []string{s.b},
			}, &envelope.Envelope{Sender: s.a, Type: envelope.TypeText, Data: []byte(`{"text":"hello"}`)})
			if err == nil {
				ids[kind][i] = opened.ID
			}
			return err
		})
		if err != nil {
			return ids, err
		}
	}
	return ids, nil
}

func heap() float64 {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func (s *site) listed(ctx context.Context) (ids []string, err error) {
	after := ""
	for {
		list, next, err := s.hub.Channels(ctx, hub.ListOptions{After: after, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			ids = append(ids, m.ID)
		}
		if next == "" {
			return ids, nil
		}
		after = next
	}
}

// queueGraph returns a triage that drains a queue of jobs.
func queueGraph(triage, worker string) []byte {
	rule := func(when, then string) string {
		return fmt.Sprintf(`{"when":%s,"then":%s,"priority":0}`, when, then)
	}
	equals := func(k, v string) string {
		return fmt.Sprintf(`{"name":"context_equals","args":{"key":%q,"value":%s}}`, k, v)
	}
	agent := func(id string) string { return fmt.Sprintf(`{"name":"agent","args":{"agent_id":%q}}`, id) }
	from := func(id string) string { return fmt.Sprintf(`{"name":"from_speaker","args":{"agent_id":%q}}`, id) }
	return fmt.Appendf(nil, `{"graph":{"initial_speaker":%q,"transitions":[%s,%s,%s,%s,%s],"default_target":{"name":"terminate","args":{"reason":"idle"}},"max_turns":30}}`,
		triage,
		rule(equals("drained", "true"), `{"name":"terminate","args":{"reason":"all_done"}}`),
		rule(from(worker), agent(triage)), rule(from(worker), agent(triage)),
		rule(equals("job", `"dig"`), agent(worker)), rule(equals("job", `"write"`), agent(worker)))
}
