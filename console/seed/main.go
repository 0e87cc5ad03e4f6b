// Command seed fills a data folder for the console's tests, and prints as JSON what is in
// it. A scene is chosen by its name:
//
//	long      one discussion of -count events
//	channels  -count open channels, one in eight of which waits for a person
//	workflow  a random workflow of -count turns, with what it folds to after
//	          -samples random events
//	graph     a workflow of -count agents
//	story     what a person would see on a working day
//	trouble   a turn that failed, and a channel that cannot be folded
//	hostile   results of tasks and a turn that failed, with markup in them
//	streams   -count streams of server-sent events, with what a reader makes of them
//	storm     none: -count notes of -sender in -channel of the running hub -hub,
//	          -rate a second
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/disk"
)

// seeder fills a hub.
type seeder struct {
	hub     *hub.Hub
	count   int
	samples int
	random  *rand.Rand
}

var scenes = map[string]func(*seeder, context.Context) (any, error){
	"long": (*seeder).long, "channels": (*seeder).channels, "tasks": (*seeder).tasks, "workflow": (*seeder).workflow, "graph": (*seeder).graph, "story": (*seeder).story, "trouble": (*seeder).trouble, "hostile": (*seeder).hostile, "streams": (*seeder).streams,
}

func main() {
	data := flag.String("data", "", "the data folder, which no hub uses")
	scene := flag.String("scene", "story", "what is in it: long, channels, tasks, workflow, graph, story, trouble, hostile, streams or storm")
	count := flag.Int("count", 100, "how many of what the scene is about")
	samples := flag.Int("samples", 200, "how many moments of a workflow are folded")
	seed := flag.Uint64("seed", 1, "what random choices begin with")
	var notes storm
	flag.StringVar(&notes.hub, "hub", "", "the URL of a running hub, for a storm")
	flag.StringVar(&notes.channel, "channel", "", "the channel of a storm")
	flag.StringVar(&notes.sender, "sender", "", "the id of who speaks in a storm")
	flag.IntVar(&notes.rate, "rate", 0, "notes a second of a storm; 0: as many as the hub takes")
	flag.Parse()
	if *scene == "storm" {
		notes.count = *count
		if err := notes.run(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "seed:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(*data, *scene, &seeder{count: *count, samples: *samples, random: rand.New(rand.NewPCG(*seed, 7))}); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(data, scene string, s *seeder) (err error) {
	fill, ok := scenes[scene]
	if !ok || data == "" {
		return fmt.Errorf("scene %q into folder %q: give -data and one of the scenes that -help lists", scene, data)
	}
	ctx := context.Background()
	quiet := slog.New(slog.DiscardHandler)
	engine, err := disk.Open(data, disk.Options{Logger: quiet, MinFree: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	known, err := adapters()
	if err != nil {
		return err
	}
	o := hub.Options{Adapters: known, Log: quiet}
	o.Limits.Inbox = 1 << 30 // nobody reads while it is filled
	if s.hub, err = hub.Open(ctx, engine, o); err != nil {
		return err
	}
	defer s.hub.Close()
	told, err := fill(s, ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

// agent registers an identity whose inbox is never full.
func (s *seeder) agent(ctx context.Context, name string, kind identity.Kind) (string, error) {
	rule := identity.DefaultRule()
	rule.Limits.Inbox.MaxPending = 1 << 30
	p, err := s.hub.Register(ctx, hub.Registration{
		Passport: &identity.Passport{Name: name, Kind: kind, Auth: identity.Auth{Scheme: identity.SchemeNone}}, Rule: &rule,
	})
	return p.ID(), err
}

// agents registers several identities.
func (s *seeder) agents(ctx context.Context, names ...string) (ids []string, err error) {
	for _, name := range names {
		id, err := s.agent(ctx, name, identity.Agent)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// open opens a channel at once.
func (s *seeder) open(ctx context.Context, title, kind string, knobs []byte, ids ...string) (string, error) {
	none := 0
	opened, err := s.hub.Open(ctx, hub.Opening{
		Creator: ids[0], Type: kind, Participants: ids[1:], RequiredAcks: &none, Knobs: knobs, Labels: map[string]string{"title": title},
	})
	if err != nil {
		return "", err
	}
	return opened.ID, nil
}

// say puts a text into a channel, and returns its id.
func (s *seeder) say(ctx context.Context, channel, sender, text string) (string, error) {
	data, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return "", err
	}
	return s.hub.Post(ctx, &envelope.Envelope{Channel: channel, Sender: sender, Type: envelope.TypeText, Data: data}, nil)
}
