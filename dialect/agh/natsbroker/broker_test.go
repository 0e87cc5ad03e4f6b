package natsbroker_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/natsbroker"
	"github.com/parley-hub/parley/dialect/agh/wire"
)

var _ agh.Broker = (*natsbroker.Broker)(nil)

const wait = 10 * time.Second

func open(t *spec.T, o natsbroker.Options) *natsbroker.Broker {
	t.Helper()
	b, err := natsbroker.Open(o)
	t.NoError(err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestBroker(t *testing.T) {
	t.Parallel()
	spec.Check(t, "agh-network#117 agh-network#22: a wrong token is refused, and a whole envelope goes through", func(t *spec.T) {
		t.Parallel()
		b := open(t, natsbroker.Options{Listen: "127.0.0.1:0", Token: "open-sesame-1"})
		host, port := b.Address()
		t.True(host == "127.0.0.1" && port > 0, "%s:%d", host, port)
		url := "nats://127.0.0.1:" + strconv.Itoa(port)
		for _, bad := range []nats.Option{nats.Token("wrong"), nats.Name("none")} {
			_, err := nats.Connect(url, bad)
			t.ErrorIs(err, nats.ErrAuthorization)
		}
		other := open(t, natsbroker.Options{URL: url, Token: "open-sesame-1"})
		got := make(chan []byte, 1)
		stop, err := b.Subscribe("agh.x", func(data []byte) { got <- data })
		t.NoError(err)
		large := make([]byte, wire.MaxBytes)
		t.NoError(publish(other, "agh.x", large))
		select {
		case data := <-got:
			t.Equal(len(data), wire.MaxBytes)
		case <-time.After(wait):
			t.Fatal("nothing arrives")
		}
		t.NoError(publish(b, "agh.x", []byte("its own"))) // b does not receive it
		stop()
		t.NoError(publish(other, "agh.x", []byte("x")))
		t.Equal(len(got), 0)
	})
	t.Run("a server that goes away and comes back", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		b := open(c, natsbroker.Options{Listen: "127.0.0.1:0", Token: "open-sesame-1"})
		_, port := b.Address()
		away := open(c, natsbroker.Options{URL: "nats://open-sesame-1@127.0.0.1:" + strconv.Itoa(port)})
		states := make(chan error, 10)
		away.Watch(func(err error) { states <- err })
		c.NoError(b.Close())
		c.True(next(c, states) != nil, "the loss is not told")
		c.True(publish(away, "agh.x", []byte("x")) != nil, "published to nobody")
		again := open(c, natsbroker.Options{Listen: "127.0.0.1:" + strconv.Itoa(port), Token: "open-sesame-1"})
		_ = again
		c.NoError(next(c, states))
		c.NoError(publish(away, "agh.x", []byte("x")))
	})
	t.Run("a server that comes after its clients", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		first := open(c, natsbroker.Options{Listen: "127.0.0.1:0", Token: "open-sesame-1"})
		_, port := first.Address()
		c.NoError(first.Close()) // now nobody listens there
		early := open(c, natsbroker.Options{URL: "nats://open-sesame-1@127.0.0.1:" + strconv.Itoa(port)})
		states := make(chan error, 10)
		early.Watch(func(err error) { states <- err })
		c.True(next(c, states) != nil, "that there is no connection is not told")
		open(c, natsbroker.Options{Listen: "127.0.0.1:" + strconv.Itoa(port), Token: "open-sesame-1"})
		c.NoError(next(c, states))
		c.NoError(publish(early, "agh.x", []byte("x")))
	})
	t.Run("a server that refuses the token for a while", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		first := open(c, natsbroker.Options{Listen: "127.0.0.1:0", Token: "open-sesame-1"})
		_, port := first.Address()
		listen := "127.0.0.1:" + strconv.Itoa(port)
		client := open(c, natsbroker.Options{URL: "nats://open-sesame-1@" + listen})
		refused, states := make(chan struct{}, 10), make(chan error, 10)
		client.Watch(func(err error) { states <- err })
		c.NoError(first.Close())
		c.True(next(c, states) != nil, "the loss is not told")
		other, err := server.NewServer(&server.Options{
			Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true, CustomClientAuthentication: refuses(refused),
		})
		c.NoError(err)
		other.Start()
		for range 3 {
			select {
			case <-refused:
			case <-time.After(wait):
				c.Fatal("it does not try again")
			}
		}
		other.Shutdown()
		other.WaitForShutdown()
		open(c, natsbroker.Options{Listen: listen, Token: "open-sesame-1"})
		c.NoError(next(c, states))
		c.NoError(publish(client, "agh.x", []byte("x")))
	})
	t.Run("what is refused", func(t *testing.T) {
		t.Parallel()
		for _, o := range []natsbroker.Options{
			{Listen: "0.0.0.0:0", Token: "t"}, {Listen: ":4222", Token: "t"}, {Listen: "127.0.0.1:0"}, {Listen: "127.0.0.1"}, {Listen: "127.0.0.1:x", Token: "t"},
		} {
			if b, err := natsbroker.Open(o); err == nil {
				_ = b.Close()
				t.Errorf("%+v is opened", o)
			}
		}
	})
	t.Run("token", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		dir := t.TempDir()
		one, err := natsbroker.Token(dir)
		c.NoError(err)
		two, err := natsbroker.Token(dir)
		c.NoError(err)
		c.True(one == two && len(one) == 32, "%q, %q", one, two)
		raw, err := os.ReadFile(filepath.Join(dir, natsbroker.TokenFile))
		c.NoError(err)
		c.Equal(string(raw), one) // and nothing else, for programs that read the file directly
		info, err := os.Stat(filepath.Join(dir, natsbroker.TokenFile))
		c.NoError(err)
		c.Equal(info.Mode().Perm(), os.FileMode(0o600))
	})
}

// refuses every client.
type refuses chan struct{}

func (r refuses) Check(server.ClientAuthentication) bool {
	select {
	case r <- struct{}{}:
	default:
	}
	return false
}

func publish(b *natsbroker.Broker, subject string, data []byte) error {
	if err := b.Publish(subject, data); err != nil {
		return err
	}
	return b.Flush(context.Background())
}

func next(c *spec.T, states chan error) error {
	c.Helper()
	select {
	case err := <-states:
		return err
	case <-time.After(wait):
		c.Fatal("nothing is told")
		return nil
	}
}
