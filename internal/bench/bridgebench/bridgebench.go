// Package bridgebench measures what joining dialects costs: reading a log as
// items beside folding it, and the way of a text into another dialect.
package bridgebench

import (
	"context"
	"fmt"
	"time"

	adapters "github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/aghbench"
	"github.com/parley-hub/parley/internal/bench/hpdbench"
)

// Options of a run.
type Options struct {
	Envelopes int // in each log; 0: 100,000
	bench.Plan
}

// minItems is the least rate of reading a log as items, relative to folding it.
const minItems = 0.3

// Run measures.
func Run(ctx context.Context, o Options) (bench.Report, error) {
	o.Plan = o.WithDefaults()
	if o.Envelopes <= 0 {
		o.Envelopes = 100_000
	}
	report := bench.Report{Bench: "bridge", Params: map[string]any{"envelopes": o.Envelopes}}
	for _, s := range subjects() {
		log, err := s.log(o.Envelopes)
		if err != nil {
			return report, err
		}
		f, err := bench.Contest{
			Name: "items: read a " + s.meta.Manifest.Type, Unit: "envelopes/s", Better: bench.Higher, Target: new(minItems),
			Ours: s.items(log), Floor: s.fold(log),
		}.Run(ctx, o.Plan)
		if err != nil {
			return report, err
		}
		report.Figures = append(report.Figures, f)
	}
	for _, crossing := range []func(context.Context, bench.Plan) (bench.Figure, error){hpdbench.Crossing, aghbench.Crossing} {
		f, err := crossing(ctx, o.Plan)
		if err != nil {
			return report, err
		}
		report.Figures = append(report.Figures, f)
	}
	return report, nil
}

// subject is a type of channel and the envelopes that are written into it repeatedly.
type subject struct {
	adapter channel.Adapter
	meta    *channel.Metadata
	write   []*envelope.Envelope
}

const (
	knobs = `{"graph":{"initial_speaker":"a","default_target":{"name":"round_robin"}}}`
	asked = `{"text":"When is high tide at the northern mole?"}`
)

// epoch is when the channels begin.
var epoch = time.Date(2026, 3, 9, 10, 15, 42, 0, time.UTC)

// between returns a channel of two participants that a opened.
func between(a channel.Adapter, knobs string) *channel.Metadata {
	manifest := a.Manifest()
	return &channel.Metadata{
		ID: "channel-1", Manifest: &manifest, State: channel.Active, Creator: "a", Knobs: []byte(knobs),
		CreatedAt: epoch, ExpiresAt: epoch.Add(2 * time.Hour),
		Participants: []channel.Participant{
			{Agent: "a", Role: channel.Initiator, JoinedAt: epoch},
			{Agent: "b", Role: channel.Respondent, Order: 1, JoinedAt: epoch},
		},
	}
}

func says(sender, eventType, data string) *envelope.Envelope {
	return &envelope.Envelope{Channel: "channel-1", Sender: sender, Type: eventType, Priority: envelope.Normal, Data: []byte(data)}
}

func subjects() []subject {
	var list []subject
	for _, a := range adapters.All() {
		if kind := a.Manifest().Type; kind == "conversation" || kind == "workflow" {
			list = append(list, subject{a, between(a, knobs), []*envelope.Envelope{
				says("a", envelope.TypeText, asked), says("b", envelope.TypeText, `{"text":"At ten past five; the tide tables say so."}`),
			}})
		}
	}
	say := says("a", "agh.say", asked)
	say.Origin = envelope.Origin{Dialect: "agh", ID: "msg_7"}
	say.Ext = []byte(`{"protocol":"agh-network/v0","workspace_id":"ws","kind":"say","channel":"dock","surface":"thread","thread_id":"thread_tide","from":"a.s","ts":1776366000}`)
	threads := thread.New(thread.Options{})
	list = append(list, subject{threads, between(threads, `{"workspace_id":"ws","channel":"dock","thread_id":"thread_tide"}`), []*envelope.Envelope{say}})

	branches := branch.New(branch.Options{})
	event := func(name, data string) *envelope.Envelope {
		e := says("b", "hpd."+name, data)
		e.Ext = []byte(`{"flow":"0123456789abcdef0123456789abcdef"}`)
		return e
	}
	stream := []*envelope.Envelope{event("TEXT_MESSAGE_START", `{"messageId":"m-1","role":"assistant"}`)}
	for range 30 {
		stream = append(stream, event("TEXT_DELTA", `{"text":"the tide ","messageId":"m-1"}`))
	}
	stream = append(stream, event("TEXT_MESSAGE_END", `{"messageId":"m-1"}`))
	return append(list, subject{branches, between(branches, `{"session":"s","branch":"main"}`), stream})
}

// log returns what is written, as the journal stores it.
func (s subject) log(n int) ([][]byte, error) {
	log := make([][]byte, n)
	for i := range log {
		e := *s.write[i%len(s.write)]
		e.ID, e.CreatedAt = fmt.Sprintf("%032x", i+1), epoch.Add(time.Duration(i)*time.Second)
		data, err := e.Append(nil)
		if err != nil {
			return nil, err
		}
		log[i] = data
	}
	return log, nil
}

// each decodes a log and calls a function for each envelope, for about a duration.
func each(log [][]byte, begin func() (func(*envelope.Envelope), error)) bench.Side {
	return func(_ context.Context, d time.Duration) (bench.Sample, error) {
		start, total := time.Now(), 0
		for {
			take, err := begin()
			if err != nil {
				return bench.Sample{}, err
			}
			for i, data := range log {
				e, err := envelope.Unmarshal(data)
				if err != nil {
					return bench.Sample{}, err
				}
				e.Seq = uint64(i + 1)
				take(e)
			}
			total += len(log)
			if elapsed := time.Since(start); elapsed >= d {
				return bench.Sample{Value: float64(total) / elapsed.Seconds()}, nil
			}
		}
	}
}

func (s subject) fold(log [][]byte) bench.Side {
	return each(log, func() (func(*envelope.Envelope), error) {
		state, err := s.adapter.Initial(s.meta)
		return func(e *envelope.Envelope) { state = s.adapter.Fold(state, e) }, err
	})
}

func (s subject) items(log [][]byte) bench.Side {
	return each(log, func() (func(*envelope.Envelope), error) {
		reader := channel.ReaderOf(s.adapter, s.meta)
		var items []channel.Item
		return func(e *envelope.Envelope) { items = reader.Read(items[:0], e) }, nil
	})
}
