package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/server/api"
)

// stuck asks with a key and reads the status of the answer, and then nothing.
func (s *site) stuck(key, path string, header ...string) (net.Conn, int) {
	s.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", s.http.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(8 << 10); err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAs: operator\r\nKey: %s\r\n%s\r\n", path, key, strings.Join(header, ""))
	line := make([]byte, len("HTTP/1.1 200 OK\r\n"))
	if _, err := io.ReadFull(conn, line); err != nil {
		s.t.Fatal(err)
	}
	status := 0
	if _, err := fmt.Sscanf(string(line), "HTTP/1.1 %d", &status); err != nil {
		s.t.Fatal(err)
	}
	return conn, status
}

// postAs posts a word with a key.
func (s *site) postAs(key, ch string) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.http.URL+"/v1/channels/"+ch+"/events", strings.NewReader(`{"sender":"alice","text":"x"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("As", operator)
	req.Header.Set("Key", key)
	resp, err := s.http.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// Whoever asks for pages and views and does not read them is refused more when
// its share is used up; others are not, and nothing that changes the hub is.
func TestUnreadAnswersCostTheirOwnShare(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *api.Config) { c.Answers, c.Limits.View = answers.New(16<<20), 1<<20 })
	alice := s.agent("alice")
	s.agent("bob")
	s.unbounded("bob")
	ch := s.open("conversation", "alice", "bob")
	for range 3 {
		s.post(ch, alice, 300<<10)
	}
	for _, path := range []string{"/v1/channels/" + ch + "/events", "/v1/events", "/v1/channels/" + ch + "/views/full_transcript", "/v1/channels/" + ch + "/messages"} {
		var held []net.Conn
		for { // each holds about 0.9 MiB of a share of 4 MiB
			conn, status := s.stuck("greedy", path)
			held = append(held, conn)
			if status == http.StatusServiceUnavailable {
				break
			}
			if status != http.StatusOK || len(held) > 10 {
				t.Fatalf("%s: answer %d has status %d", path, len(held), status)
			}
		}
		if len(held) < 4 {
			t.Errorf("%s: only %d answers were given", path, len(held)-1)
		}
		if _, status := s.stuck("modest", path); status != http.StatusOK {
			t.Errorf("%s: the modest reader gets %d", path, status)
		}
		if status := s.postAs("greedy", ch); status != http.StatusCreated && status != http.StatusOK {
			t.Errorf("%s: a post is answered with %d", path, status)
		}
		for _, conn := range held {
			_ = conn.Close()
		}
		late := time.Now().Add(20 * time.Second)
		for { // as soon as the hub has noticed that they are gone
			conn, status := s.stuck("greedy", path)
			_ = conn.Close()
			if status == http.StatusOK {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("%s: nothing was given back", path)
			}
		}
	}
}

// Followers that do not read hold little, whatever there is to read.
func TestStuckFollowersHoldLittle(t *testing.T) { // not parallel: it measures the heap, which is everyone's
	const followers, events, size = 40, 48, 256 << 10
	engine, err := disk.Open(t.TempDir(), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newSiteOf(t, engine, hub.Options{}, func(c *api.Config) { c.Limits.Write = time.Minute })
	alice := s.agent("alice")
	s.agent("bob")
	s.unbounded("bob")
	ch := s.open("conversation", "alice", "bob")
	for range events {
		s.post(ch, alice, size)
	}
	before := liveHeap()
	for range followers {
		if _, status := s.stuck("greedy", "/v1/events", "Accept: text/event-stream\r\n"); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	s.awaitFollowers(followers)
	grown := int64(0)
	for until := time.Now().Add(time.Second); time.Now().Before(until); {
		grown = max(grown, int64(liveHeap())-int64(before))
	}
	if grown > followers*(3<<20) { // all of it would be 12 MiB for each
		t.Errorf("%d followers hold %d MiB", followers, grown>>20)
	}
}

// One backup is made at a time, and one whose reader is gone makes room.
func TestOneBackupAtATime(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	s := newSite(t, func(c *api.Config) {
		c.Backup = func(ctx context.Context, w io.Writer) error {
			for {
				_, err := w.Write(bytes.Repeat([]byte("x"), 64<<10))
				if err == nil {
					err = context.Cause(ctx)
				}
				if err != nil {
					ended <- err
					return err
				}
			}
		}
	})
	first, status := s.stuck("a", "/v1/backup")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	if status, p := s.ask(operator, "GET", "/v1/backup", ""); status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(p["detail"]), "a backup is being made") {
		t.Errorf("the second: %d %v", status, p)
	}
	_ = first.Close()
	if err := <-ended; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the first ended with %v", err)
	}
	for late := time.Now().Add(20 * time.Second); ; {
		conn, status := s.stuck("a", "/v1/backup")
		_ = conn.Close()
		if status == http.StatusOK {
			<-ended
			return
		}
		if time.Now().After(late) {
			t.Fatal("no room was made")
		}
	}
}
