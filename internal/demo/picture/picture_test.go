package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

const picture = "../../../docs/images/demo"

// The README's picture is the drawing of the text beside it, and is what make
// readme-images would draw.
func TestThePictureIsOfTheText(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(picture + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := os.ReadFile(picture + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	if Draw(string(text)) != string(drawn) {
		t.Error("docs/images/demo.svg is not the drawing of demo.txt; run make readme-images")
	}
	for d := xml.NewDecoder(strings.NewReader(string(drawn))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil || !strings.Contains(string(readme), "(docs/images/demo.svg)") {
		t.Errorf("the README does not show it: %v", err)
	}
}

// Two runs that differ in times, ports and the order of acks are shown alike.
func TestRunsAreShownAlike(t *testing.T) {
	t.Parallel()
	one := "A hub is running at http://127.0.0.1:39011.\n09:19:27    1  triage: invite\n09:19:27    8  triage: Slow <&>.\n\n\nThe graph with that path, for x:\n\n  n0\n\nChecked against the log of 16 envelopes: 0 lost.\n  go run ./cmd/parley serve\n"
	other := "A hub is running at http://127.0.0.1:7.\n10:00:00    9  triage: Slow <&>.\n\nChecked against the log of 15 envelopes: 0 lost.\n  parley serve\n"
	got := Settled(one)
	if got != Settled(other) {
		t.Errorf("%s\nand\n%s", got, Settled(other))
	}
	if want := "$ parley demo\nA hub is running at http://127.0.0.1:7440.\n14:05:01  triage: Slow <&>.\n\nChecked against the log: 0 lost.\n  parley serve\n"; got != want {
		t.Errorf("got %q", got)
	}
	if drawn := Draw(got); !strings.Contains(drawn, "Slow\u00a0&lt;&amp;&gt;.") || strings.Count(drawn, "<text") != 5 {
		t.Errorf("drawn: %s", drawn)
	}
}

func TestLongLinesAreBroken(t *testing.T) {
	t.Parallel()
	for _, line := range []string{strings.Repeat("wörter ", 40), strings.Repeat("ö", 300)} {
		for _, row := range wrapped(line) {
			if len([]rune(row)) > columns {
				t.Errorf("a row of %d: %s", len([]rune(row)), row)
			}
		}
	}
}
