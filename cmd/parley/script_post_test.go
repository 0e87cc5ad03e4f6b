package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() { scriptCommands["post"] = cmdPost }

// cmdPost sends JSON and keeps the answer in the file body:
//
//	post STATUS URL JSON
func cmdPost(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: post STATUS URL JSON")
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, args[1], strings.NewReader(args[2]))
	ts.Check(err)
	request.Header.Set("Content-Type", "application/json")
	if token := ts.Getenv("PARLEY_TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	ts.Check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("body"), body, 0o600))
	if strconv.Itoa(answer.StatusCode) != args[0] {
		ts.Fatalf("status %s, want %s: %s", answer.Status, args[0], body)
	}
}
