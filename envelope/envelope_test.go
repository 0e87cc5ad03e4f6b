package envelope_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/envelope"
)

func TestVisibleTo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		audience []string
		who      string
		want     bool
	}{
		"broadcast is for everyone":      {nil, "carol", true},
		"the sender always reads itself": {[]string{}, "alice", true},
		"an empty audience is nobody":    {[]string{}, "bob", false},
		"a listed reader":                {[]string{"bob"}, "bob", true},
		"an unlisted reader":             {[]string{"bob"}, "carol", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &envelope.Envelope{Sender: "alice", Audience: tc.audience}
			if got := e.VisibleTo(tc.who); got != tc.want {
				t.Errorf("VisibleTo(%s) = %v, want %v", tc.who, got, tc.want)
			}
		})
	}
}

func TestExpiredAt(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)
	ttl := func(s int64) *int64 { return &s }
	for name, tc := range map[string]struct {
		ttl  *int64
		at   time.Duration
		want bool
	}{
		"no ttl lives for ever":     {nil, 1 << 62, false},
		"just before":               {ttl(5), 5*time.Second - time.Millisecond, false},
		"exactly at the end":        {ttl(5), 5 * time.Second, true},
		"after":                     {ttl(5), time.Minute, true},
		"zero is over at once":      {ttl(0), 0, true},
		"a huge ttl never overflow": {ttl(math.MaxInt64), time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &envelope.Envelope{CreatedAt: made, TTL: tc.ttl}
			if got := e.ExpiredAt(made.Add(tc.at)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	ttl := int64(3)
	e := &envelope.Envelope{
		Audience: []string{"a"}, Ext: []byte("{}"), Data: []byte(`{"x":1}`), Foreign: []byte("f"), TTL: &ttl,
	}
	c := e.Clone()
	if diff := cmp.Diff(e, c); diff != "" {
		t.Fatal(diff)
	}
	c.Audience[0], c.Ext[0], c.Data[0], c.Foreign[0], *c.TTL = "z", 'z', 'z', 'z', 9
	want := &envelope.Envelope{
		Audience: []string{"a"}, Ext: []byte("{}"), Data: []byte(`{"x":1}`), Foreign: []byte("f"), TTL: e.TTL,
	}
	if diff := cmp.Diff(want, e); diff != "" || *e.TTL != 3 {
		t.Errorf("the original changed: %s ttl %d", diff, *e.TTL)
	}
}

func TestEventClasses(t *testing.T) {
	t.Parallel()
	for eventType, want := range map[string]struct{ channel, task, protocol, adapter, content bool }{
		envelope.TypeText:                {content: true},
		envelope.TypePacket:              {content: true},
		envelope.TypeContextSet:          {content: true},
		"myapp.review":                   {content: true},
		"ag2.channel":                    {content: true},
		envelope.TypeInvite:              {channel: true, protocol: true, adapter: true},
		envelope.TypeInviteAck:           {channel: true, protocol: true, adapter: true},
		envelope.TypeInviteReject:        {channel: true, protocol: true, adapter: true},
		envelope.TypeOpened:              {channel: true, protocol: true, adapter: true},
		envelope.TypeClosed:              {channel: true, protocol: true, adapter: true},
		envelope.TypeExpired:             {channel: true, protocol: true, adapter: true},
		envelope.TypeExpectationViolated: {channel: true, protocol: true},
		envelope.WireExpectationViolated: {protocol: true},
		"ag2.channel.custom":             {channel: true, protocol: true},
		envelope.TypeTaskStarted:         {task: true, protocol: true},
		"ag2.task.custom":                {task: true, protocol: true},
	} {
		got := struct{ channel, task, protocol, adapter, content bool }{
			envelope.IsChannelEvent(eventType), envelope.IsTask(eventType), envelope.IsProtocol(eventType),
			envelope.IsAdapterProtocol(eventType), envelope.IsContent(eventType),
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", eventType, got, want)
		}
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ag2.session.invite":             "ag2.channel.invite",
		"ag2.session.closed":             "ag2.channel.closed",
		"ag2.session.":                   "ag2.channel.",
		envelope.WireExpectationViolated: envelope.TypeExpectationViolated,
		"ag2.channel.opened":             "ag2.channel.opened",
		"ag2.sessions.x":                 "ag2.sessions.x",
		"x":                              "x",
	} {
		if got := envelope.Canonical(in); got != want {
			t.Errorf("Canonical(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParsePriority(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		p    envelope.Priority
		rank int
	}{
		"":           {envelope.Normal, 1},
		"normal":     {envelope.Normal, 1},
		"NORMAL":     {envelope.Normal, 1},
		"1":          {envelope.Normal, 1},
		"low":        {envelope.Background, 0},
		"Background": {envelope.Background, 0},
		"0":          {envelope.Background, 0},
		"HIGH":       {envelope.Urgent, 2},
		"urgent":     {envelope.Urgent, 2},
		"2":          {envelope.Urgent, 2},
		"3":          {envelope.Urgent, 2},
		"purple":     {"purple", 1},
		"Purple":     {"Purple", 1},
	} {
		if got := envelope.ParsePriority(in); got != want.p || got.Rank() != want.rank {
			t.Errorf("%q: got %q rank %d, want %q rank %d", in, got, got.Rank(), want.p, want.rank)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 9, 10, 15, 42, 8_113_000, time.UTC)
	for _, in := range []string{
		"2026-03-09T10:15:42.008113Z", "2026-03-09T10:15:42.008113+00:00", "2026-03-09T11:15:42.008113+01:00",
		"2026-03-09T10:15:42.008113", "2026-03-09T10:15:42.008113000Z",
		"2026-03-09 10:15:42.008113+00:00", "2026-03-09 11:15:42.008113+01:00", "2026-03-09 10:15:42.008113Z", "2026-03-09 10:15:42.008113",
	} {
		got, err := envelope.ParseTime(in)
		if err != nil || !got.Equal(at) || got.Location() != time.UTC {
			t.Errorf("ParseTime(%q) = %v, %v; want %v", in, got, err, at)
		}
	}
	if got := envelope.FormatTime(at.In(time.FixedZone("x", 3600))); got != "2026-03-09T10:15:42.008113Z" {
		t.Errorf("FormatTime: %s", got)
	}
	if got := envelope.FormatTimeAG2(at.In(time.FixedZone("x", 3600))); got != "2026-03-09T10:15:42.008113+00:00" {
		t.Errorf("FormatTimeAG2: %s", got)
	}
	if got := envelope.FormatTimeAG2(at.Truncate(time.Second)); got != "2026-03-09T10:15:42.000000+00:00" {
		t.Errorf("a whole second keeps its six digits: %s", got)
	}
	for _, in := range []string{"", "yesterday", "2026-13-01T00:00:00Z", "2026-03-09"} {
		if _, err := envelope.ParseTime(in); err == nil {
			t.Errorf("ParseTime(%q) accepted", in)
		}
	}
}
