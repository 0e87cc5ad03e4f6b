package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/parley-hub/parley/conformance/spec"
)

// maxKept bounds the output kept for a test that has not ended yet.
const maxKept = 64 << 10

// holding is one test that names one statement.
type holding struct {
	statement string
	test      string
	passed    bool
}

// goTests is what one stream of `go test -json` reported.
type goTests struct {
	statements []holding
	broken     []string // packages that failed or never ended, in words
}

// event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	Key         string
	Value       string
	FailedBuild string
}

// running is a test or, with an empty name, a package that has begun.
type running struct {
	statements []string
	output     []byte
}

type testKey struct{ pkg, test string }

// readGoTest follows the stream to its end. A test that began and never ended
// has failed, and so has one that was skipped: neither holds anything. The
// output of what failed goes to log.
func readGoTest(in io.Reader, log io.Writer) (goTests, error) {
	var result goTests
	open := map[testKey]*running{}
	begun := func(key testKey) *running {
		if open[key] == nil {
			open[key] = &running{}
		}
		return open[key]
	}
	builds := map[string][]byte{}
	packages := 0

	reader := bufio.NewReader(in)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var ev event
			if json.Unmarshal(line, &ev) != nil {
				log.Write(line) // the go command prints lines between events
			} else {
				key := testKey{ev.Package, ev.Test}
				switch ev.Action {
				case "start":
					packages++
					begun(key)
				case "run":
					begun(key)
				case "attr":
					if ev.Key == spec.Attribute {
						test := begun(key)
						test.statements = append(test.statements, ev.Value)
					}
				case "output":
					test := begun(key)
					if len(test.output) < maxKept {
						test.output = append(test.output, ev.Output...)
					}
				case "build-output":
					builds[ev.ImportPath] = append(builds[ev.ImportPath], ev.Output...)
				case "pass", "fail", "skip":
					result.end(key, begun(key), ev, builds, log)
					delete(open, key)
				}
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return goTests{}, fmt.Errorf("read test results: %w", err)
		}
	}
	if packages == 0 {
		return goTests{}, errors.New("no test ran: standard input held no results of `go test -json`")
	}

	abandoned := slices.SortedFunc(maps.Keys(open), func(a, b testKey) int {
		return bytes.Compare([]byte(a.pkg+"\x00"+a.test), []byte(b.pkg+"\x00"+b.test))
	})
	for _, key := range abandoned {
		result.end(key, open[key], event{Action: "unfinished"}, builds, log)
	}
	return result, nil
}

// end records the result of a test or package.
func (r *goTests) end(key testKey, test *running, ev event, builds map[string][]byte, log io.Writer) {
	passed := ev.Action == "pass"
	for _, statement := range test.statements {
		r.statements = append(r.statements, holding{statement, key.pkg + " " + key.test, passed})
	}
	failed := ev.Action == "fail" || ev.Action == "unfinished"
	if failed {
		log.Write(builds[ev.FailedBuild])
		log.Write(test.output)
	}
	if !failed || key.test != "" {
		return
	}
	switch {
	case ev.FailedBuild != "":
		r.broken = append(r.broken, "package "+key.pkg+" did not build")
	case ev.Action == "unfinished":
		r.broken = append(r.broken, "package "+key.pkg+" never ended")
	default:
		r.broken = append(r.broken, "package "+key.pkg+" failed")
	}
}
