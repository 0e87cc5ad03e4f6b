package jetstream_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/parley-hub/parley/journal/cluster/jetstream"
)

// dialer tells of each connection.
type dialer chan struct{}

func (d dialer) Dial(network, address string) (net.Conn, error) {
	d <- struct{}{}
	return net.Dial(network, address) //nolint:noctx // as nats.go does
}

// TestAUserThatIsRefusedForAWhile: servers that refuse the user of a node, as while its
// password is being changed, do not end the connection for good. Errors name the reason.
func TestAUserThatIsRefusedForAWhile(t *testing.T) {
	t.Parallel()
	opts := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
		Username: "node", Password: "right",
	}
	var s *server.Server
	start := func(password string) {
		t.Helper()
		opts.Password = password
		var err error
		if s, err = server.NewServer(opts.Clone()); err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("the server does not start")
		}
	}
	stop := func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	start("right")
	defer func() { stop() }()
	dials := make(dialer, 1000)
	log, err := jetstream.Connect(jetstream.Options{URL: s.ClientURL(), Cluster: "test", NATS: []nats.Option{
		nats.UserInfo("node", "right"), nats.SetCustomDialer(dials),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := log.Create(t.Context(), 1, 1, 1); err != nil {
		t.Fatal(err)
	}
	opts.Port = s.Addr().(*net.TCPAddr).Port
	stop()
	start("changed")
	for len(dials) > 0 {
		<-dials
	}
	for range 6 {
		select {
		case <-dials:
		case <-time.After(10 * time.Second):
			_, err := log.State(t.Context(), 0)
			t.Fatalf("the node no longer tries to connect: %v", err)
		}
	}
	if _, err := log.State(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "Authorization Violation") {
		t.Errorf("the error does not tell why: %v", err)
	}
	stop()
	start("right")
	for began := time.Now(); ; {
		if _, err := log.State(t.Context(), 0); err == nil {
			return
		} else if time.Since(began) > time.Minute {
			t.Fatal(err)
		}
	}
}
