package main

import (
	"fmt"
	"net"
	"net/url"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() { scriptCommands["deaf"] = cmdDeaf }

// cmdDeaf asks for a stream and never reads it; the connection stays open until the
// script ends:
//
//	deaf URL
func cmdDeaf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: deaf URL")
	}
	at, err := url.Parse(args[0])
	ts.Check(err)
	conn, err := net.DialTimeout("tcp", at.Host, startTimeout)
	ts.Check(err)
	ts.Defer(func() { _ = conn.Close() })
	ts.Check(conn.(*net.TCPConn).SetReadBuffer(4 << 10))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", at.RequestURI(), at.Host)
	ts.Check(err)
}
