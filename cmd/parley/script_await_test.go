package main

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() { scriptCommands["await"] = cmdAwait }

// cmdAwait asks until the answer says something, which what runs in the
// background brings about:
//
//	await URL TEXT
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await URL TEXT")
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	last := ""
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // a script's own certificate
	}}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
		ts.Check(err)
		if token := ts.Getenv("PARLEY_TOKEN"); token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(request)
		if err == nil {
			body, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if last = string(body); strings.Contains(last, args[1]) {
				return
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			ts.Fatalf("%s never said %q; at last: %s", args[0], args[1], last)
		}
	}
}
