package jetstream_test

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-hub/parley/journal/cluster/jetstream"
)

// TestAConnectionIsLostDuringASearch: a search for a better server ends while the
// connection, which was lost meanwhile, reconnects. The two do not wait for each other
// for good.
func TestAConnectionIsLostDuringASearch(t *testing.T) {
	t.Parallel()
	s := alone(t, "always")
	chooses, mayChoose, first := make(chan struct{}), make(chan struct{}), sync.Once{}
	var log *jetstream.Log
	log, err := jetstream.Connect(jetstream.Options{URL: s.ClientURL(), Cluster: "test", NATS: []nats.Option{
		nats.UserInfo("app", "app"),
		nats.ReconnectToServer(func(pool []nats.Server, info nats.ServerInfo) (*nats.Server, time.Duration) {
			first.Do(func() {
				close(chooses)
				<-mayChoose
			})
			return log.Choose(pool, info)
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	clients, err := s.Connz(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clients.Conns {
		if err := s.DisconnectClientByID(c.Cid); err != nil {
			t.Fatal(err)
		}
	}
	<-chooses
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		log.MoveTo(s.ClientURL())
	}()
	for !log.Moving() {
		<-time.After(time.Millisecond)
	}
	close(mayChoose)
	select {
	case <-moved:
	case <-time.After(10 * time.Second):
		t.Fatal("the search and the connection wait for each other")
	}
	for began := time.Now(); !log.Connected(); <-time.After(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the connection does not come back")
		}
	}
	log.Close()
}
