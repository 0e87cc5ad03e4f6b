// Command picture records parley demo and draws it as the README's first picture:
//
//	go run ./internal/demo/picture FILE    writes FILE.txt and FILE.svg
//
// The text is what the demo printed, with times, ports and numbers of lines that
// differ from run to run made the same. The drawing depends on the text alone.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: picture FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(name string) error {
	var out bytes.Buffer
	demo := exec.Command("go", "run", "./cmd/parley", "demo") //nolint:noctx // it ends by itself
	demo.Stdout, demo.Stderr = &out, os.Stderr
	if err := demo.Run(); err != nil {
		return err
	}
	text := Settled(out.String())
	if err := os.WriteFile(name+".txt", []byte(text), 0o644); err != nil { //nolint:gosec // it is published
		return err
	}
	return os.WriteFile(name+".svg", []byte(Draw(text)), 0o644) //nolint:gosec // it is published
}

var (
	place = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)
	stamp = regexp.MustCompile(`^([0-9]{2}:[0-9]{2}:[0-9]{2}) +[0-9]+  (.*)$`)
	count = regexp.MustCompile(`the log of [0-9]+ envelopes`)
)

// Settled returns the part of a run that is shown: without the opening of the
// channel, which is in another order each time, and without the drawing for
// other programs.
func Settled(out string) string {
	var lines []string
	drawing, second := false, 0
	for line := range strings.Lines(strings.ReplaceAll(out, "go run ./cmd/parley", "parley")) {
		line = strings.TrimRight(line, "\n")
		if found := stamp.FindStringSubmatch(line); found != nil {
			if strings.Contains(line, "invite") || strings.HasSuffix(line, ": opened") || strings.Contains(line, "context.set") {
				continue
			}
			second++
			line = fmt.Sprintf("14:05:%02d  %s", second, found[2])
		}
		switch {
		case strings.HasPrefix(line, "The graph with that path"):
			drawing = true
		case strings.HasPrefix(line, "Checked against"):
			drawing = false
		}
		if drawing || line == "" && len(lines) > 0 && lines[len(lines)-1] == "" {
			continue
		}
		line = place.ReplaceAllString(line, "http://127.0.0.1:7440")
		lines = append(lines, count.ReplaceAllString(line, "the log"))
	}
	return "$ parley demo\n" + strings.Join(lines, "\n") + "\n"
}
