package dialecttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// revokedKey checks that a client whose key is revoked is disconnected at once, and
// can no longer post.
func revokedKey(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	good := s.honest(t)
	token, id := s.Key("mallory")
	mallory := s.join(t, "mallory", token)
	room := s.Meet(mallory, good.b)
	if err := mallory.Say(room, []byte(`{"text":"in time"}`)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := good.b.Hear(); err != nil {
		t.Fatal(err)
	}
	s.Revoke(id)
	if err := mallory.Say(room, []byte(`{"text":"late"}`)); err == nil {
		t.Error("a revoked key still speaks")
	}
	gone(t, mallory, "who had the key")
	if c, err := s.Join("mallory", token); err == nil {
		c.Close()
		t.Error("a revoked key connects")
	}
	good.works("after the revocation")
}

// squatter checks that making a key for a name ends connections that use the name
// without one. After the key is revoked, no client can connect under the name
// without a key again.
func squatter(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	good := s.honest(t)
	var token, id string
	if s.Keyless {
		squatter := s.join(t, "quill", "")
		token, id = s.Key("quill")
		gone(t, squatter, "the squatter")
	} else {
		token, id = s.Key("quill")
	}
	if c, err := s.Join("quill", ""); err == nil {
		c.Close()
		t.Error("the squatter comes back")
	}
	s.join(t, "quill", token).Close()
	s.Revoke(id)
	if c, err := s.Join("quill", ""); err == nil {
		c.Close()
		t.Error("revoking the key opened the name")
	}
	good.works("after the squatter")
}

// stranger checks that a client that has not identified itself sees no other
// agents, unless it is on this machine.
func stranger(t *testing.T, door Door) {
	s := door.Start(t, Options{Proxied: true})
	if s.Stranger == nil {
		return
	}
	if n, err := s.honest(t).b.Look(10); err != nil || n == 0 {
		t.Errorf("who has proved an identity sees %d, %v", n, err)
	}
	c, err := s.Stranger()
	if err != nil {
		return // refused on connecting
	}
	defer c.Close()
	if n, err := c.Look(10); err == nil {
		t.Errorf("a stranger sees %d", n)
	}
}

// forgedSender checks that no client can post under the name of another.
func forgedSender(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	good := s.honest(t)
	mallory := s.agent(t, "mallory")
	if err := mallory.SayAs(good.room, good.a.ID(), []byte(`{"text":"forged"}`)); err == nil {
		t.Error("a forged sender is accepted")
	}
	if err := mallory.Say(good.room, []byte(`{"text":"uninvited"}`)); err == nil {
		t.Error("somebody speaks where it takes no part")
	}
	good.works("after the forgery")
}

// foreignReader checks that a client cannot read a conversation between others.
func foreignReader(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	good := s.honest(t)
	mallory := s.agent(t, "mallory")
	good.works("between two")
	if err := good.a.Read(good.room); err != nil {
		t.Errorf("who takes part cannot read: %v", err)
	}
	if err := mallory.Read(good.room); err == nil {
		t.Error("somebody reads where it takes no part")
	}
	good.works("after the attempt")
}

// hugeLimit checks that an absurdly large limit costs nothing.
func hugeLimit(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	good := s.honest(t)
	all, err := good.a.Look(10)
	if err != nil || all == 0 {
		t.Fatalf("an honest client sees %d, %v", all, err)
	}
	for _, limit := range []int64{1 << 20, 1 << 40, 1<<63 - 1} {
		if n, err := good.a.Look(limit); err == nil && n != all {
			t.Errorf("limit %d: %d entries, not %d", limit, n, all)
		}
	}
	if n, err := good.a.Look(-1 << 63); err == nil && n > all {
		t.Errorf("a negative limit: %d entries", n)
	}
	good.works("after huge limits")
}

// lineBreaks checks that a text stays in its frame, whatever it contains.
func lineBreaks(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	good := s.honest(t)
	for _, data := range []string{
		"{\n\"text\":\n\n\"a\"\n}", "{\r\"text\":\r\n\r\n\"b\"\r}", `{"text":"id: 1\ndata: {}\n\nevent: x\r\r"}`, "{\"text\":\"\u2028\u2029\u202e\"}",
	} {
		if err := good.a.Say(good.room, []byte(data)); err != nil {
			t.Errorf("%q is refused: %v", data, err)
			continue
		}
		if _, heard, err := good.b.Hear(); err != nil || !sameJSON(heard, []byte(data)) {
			t.Fatalf("%q is heard as %q, %v", data, heard, err)
		}
	}
	good.works("after line breaks")
}

// garbage checks that bytes that are not a message of the dialect do not affect
// other clients.
func garbage(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	good := s.honest(t)
	all := map[string][]byte{
		"nothing":   {},
		"no JSON":   []byte("hello"),
		"cut":       []byte(`{"kind":"`),
		"not UTF-8": []byte("{\"a\":\"\xff\xfe\"}"),
		"deep":      bytes.Repeat([]byte("["), 200_000),
		"deeper":    []byte(strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)),
		"twice":     []byte(`{"kind":"x","kind":"y"}`),
		"exponent":  []byte(`{"a":1e` + strings.Repeat("9", 100_000) + `}`),
		"long":      bytes.Repeat([]byte("x"), 3<<20),
		"zeros":     make([]byte, 1000),
	}
	maps.Copy(all, door.Garbage)
	for name, message := range all {
		mallory := s.agent(t, "mallory-"+strings.ReplaceAll(strings.ToLower(name), " ", "-"))
		_ = mallory.Send(message) // it may be cut off while it sends
		good.works("after " + name)
		mallory.Close()
	}
}

// flood checks that a client that sends without waiting does not keep others from
// posting.
func flood(t *testing.T, door Door) {
	s := door.Start(t, Options{})
	good := s.honest(t)
	mallory := s.agent(t, "mallory")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 20_000 {
			if mallory.Send(fmt.Appendf(nil, `{"kind":"flood","n":%d}`, i)) != nil {
				return
			}
		}
	}()
	for i := range 20 {
		good.works(fmt.Sprintf("beside a flood %d", i))
	}
	mallory.Close()
	<-ended
}

// stuckReaders checks that a client that does not read is disconnected, and does
// not delay others.
func stuckReaders(t *testing.T, door Door) {
	s := door.Start(t, Options{Patience: 5 * time.Second}) // an honest client on a busy machine takes a second
	good := s.honest(t)
	var stuck []Client
	var rooms []string
	for i := range 4 {
		c := s.agent(t, fmt.Sprint("stuck", i))
		rooms = append(rooms, s.Meet(good.a, c))
		c.Stall()
		stuck = append(stuck, c)
	}
	large := []byte(`{"text":"` + strings.Repeat("x", 700_000) + `"}`)
	for range 24 {
		for _, room := range rooms {
			_ = good.a.Say(room, large) // refused once its inbox is full
		}
	}
	for i, c := range stuck {
		gone(t, c, fmt.Sprint("stuck reader ", i))
	}
	good.works("beside stuck readers")
}

// silentSockets checks that idle connections lose their place to others, and never
// take the place of this machine's operator.
func silentSockets(t *testing.T, door Door) {
	const places = 32
	s := door.Start(t, Options{Connections: places, Patience: 500 * time.Millisecond})
	if s.Socket == nil {
		return
	}
	for i := range 3 * places {
		c, err := s.Socket()
		if err != nil {
			continue // refused already
		}
		t.Cleanup(func() { _ = c.Close() })
		half := []string{"", "GET / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 9\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nX: "}
		_, _ = c.Write([]byte(half[i%len(half)]))
	}
	if s.Operator != nil {
		if err := s.Operator(); err != nil {
			t.Errorf("the operator is kept out: %v", err)
		}
	}
	token := ""
	if !s.Keyless {
		token, _ = s.Key("honest") // served from the operator's reserve
	}
	for late := time.Now().Add(Wait); ; {
		c, err := s.Join("honest", token)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(late) {
			t.Fatalf("silent sockets keep everyone out: %v", err)
		}
	}
}
