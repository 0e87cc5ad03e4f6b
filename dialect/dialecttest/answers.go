package dialecttest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// longWait is for answers of megabytes on a busy machine.
const longWait = 3 * Wait

// unreadAnswers checks that answers that a client requests and does not read count
// against its own share. Its further requests are refused, those of others are not,
// and it has its share again when it disconnects.
func unreadAnswers(t *testing.T, door Door) {
	const long = 700_000                                                  // of one message
	s := door.Start(t, Options{Answers: 4 << 20, Patience: 2 * longWait}) // one key's share has room for one message
	if s.Unread == nil {
		return
	}
	good := s.honest(t)
	mallory, mule := s.agent(t, "mallory"), s.agent(t, "mule")
	room := s.Meet(mallory, mule)
	for i := range 14 { // more than what the kernel keeps for a reader
		data := fmt.Sprintf(`{"text":"%d %s"}`, i, strings.Repeat("x", long))
		if err := mallory.Say(room, []byte(data)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := mule.Hear(); err != nil {
			t.Fatal(err)
		}
	}
	asks := s.Asks(mallory, room)
	for _, unread := range s.Unread(mallory, room) {
		var stuck []net.Conn
		for range 16 {
			stuck = append(stuck, s.stuck(t, unread))
		}
		s.until(t, asks, http.StatusServiceUnavailable, unread.Path+" counts for nothing while it is not read")
		if got := s.ask(t, s.Asks(good.a, good.room), "localhost", ""); got.code != http.StatusOK {
			t.Errorf("%s: another key is answered with %s", unread.Path, got.status)
		}
		good.works("beside answers that are not read")
		if err := mallory.Say(room, []byte(`{"text":"still here"}`)); err != nil {
			t.Errorf("%s: who does not read may not speak: %v", unread.Path, err)
		}
		for _, c := range stuck {
			_ = c.Close()
		}
		s.until(t, asks, http.StatusOK, unread.Path+" gives nothing back")
	}
}

// stuck sends a request and never reads the answer.
func (s *Site) stuck(t *testing.T, r Request) net.Conn {
	t.Helper()
	c := s.bare(t)
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(16 << 10)
	}
	_ = c.SetWriteDeadline(time.Now().Add(Wait))
	if _, err := io.WriteString(c, r.head("localhost", "")); err != nil {
		t.Fatal(err)
	}
	return c
}

// until repeats a request until it is answered with a status.
func (s *Site) until(t *testing.T, r Request, status int, otherwise string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(longWait); ; <-tick.C {
		c := s.stuck(t, r)
		_ = c.SetReadDeadline(time.Now().Add(longWait))
		answer, err := http.ReadResponse(bufio.NewReader(c), nil) //nolint:bodyclose // the connection is closed
		got := "nothing"
		if err == nil {
			got = answer.Status
			if status >= 300 { // a refusal says which limit it is; the rest may be long
				text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
				got += " " + string(text)
			}
		}
		_ = c.Close()
		if err == nil && answer.StatusCode == status && (status < 300 || strings.Contains(got, "limits.answers")) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s: the last answer was %.300s (%v)", otherwise, got, err)
		}
	}
}

// readsWithoutEnd checks that a client that reads a long conversation again and
// again has to wait, and does not keep others from reading.
func readsWithoutEnd(t *testing.T, door Door) {
	s := door.Start(t, Options{Reads: 256 << 10, Patience: 500 * time.Millisecond})
	good := s.honest(t)
	mallory, mule := s.agent(t, "mallory"), s.agent(t, "mule")
	room := s.Meet(mallory, mule)
	if err := mallory.Say(room, []byte(`{"text":"`+strings.Repeat("x", 300_000)+`"}`)); err != nil {
		t.Fatal(err)
	}
	var refused error
	for n := 0; refused == nil && n < 1000; n++ {
		refused = mallory.Read(room)
	}
	if refused == nil || !strings.Contains(refused.Error(), "limits.reads") {
		t.Errorf("somebody reads for ever: %v", refused)
	}
	if err := good.b.Read(good.room); err != nil {
		t.Errorf("another may not read: %v", err)
	}
	good.works("beside somebody who reads")
}
