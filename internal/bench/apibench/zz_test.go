package apibench

import (
	"testing"
	"time"
	"context"
	"net/http"
	"fmt"
)

func BenchmarkOurs(b *testing.B) {
	s, err := open(b.Context(), b.TempDir())
	if err != nil { b.Fatal(err) }
	defer s.close()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	at := s.http.url + "/v1/channels/" + s.channel + "/events"
	arrived, err := s.follow(ctx, at)
	if err != nil { b.Fatal(err) }
	body := fmt.Appendf(nil, `{"sender":%q,"event_type":"ag2.msg.text","event_data":%s}`, s.alice, text)
	var toPost, toArrive time.Duration
	for b.Loop() {
		start := time.Now()
		if err := post(ctx, at, body, http.StatusCreated); err != nil { b.Fatal(err) }
		toPost += time.Since(start)
		toArrive += (<-arrived).Sub(start)
	}
	b.ReportMetric(float64(toPost.Microseconds())/float64(b.N), "post-us")
	b.ReportMetric(float64(toArrive.Microseconds())/float64(b.N), "arrive-us")
}
