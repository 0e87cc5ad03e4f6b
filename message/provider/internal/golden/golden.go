// Package golden compares the mappings with files that show both sides: the
// input, the written request, the notes, and what is read back. Run a test
// with -update to write them again. It is for tests only.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

var update = flag.Bool("update", false, "write the golden files again")

// Writer is a mapping to a provider.
type Writer func([]message.Envelope, provider.Options) provider.Request

// Reader is a mapping back of the same form.
type Reader func(*value.Map, provider.ReadOptions) provider.History

// Requests runs every case of the shared folder through a writer and back, and
// compares with the files in dir. What was read back must be written as
// before.
func Requests(t *testing.T, cases, dir string, write Writer, read Reader) {
	t.Helper()
	for _, path := range files(t, cases) {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := open(t, path)
			messages, options := Case(t, in)
			request := write(messages, options)
			history := read(request.Body, provider.ReadOptions{Aliases: options.Aliases})
			check(t, filepath.Join(dir, name+".txtar"), in.Comment, []txtar.File{
				{Name: "request.json", Data: pretty(t, request.Body)},
				{Name: "notes.jsonl", Data: noteLines(t, request.Notes)},
				{Name: "back.jsonl", Data: lines(t, history.Messages)},
			})
			again := write(history.Messages, provider.Options{Aliases: options.Aliases, Tools: options.Tools, Previous: options.Previous})
			if diff := cmp.Diff(string(pretty(t, request.Body)), string(pretty(t, again.Body))); diff != "" {
				t.Errorf("what was read back is written otherwise (-first +second):\n%s", diff)
			}
		})
	}
}

// Case reads the messages and options of a case.
func Case(t *testing.T, in *txtar.Archive) ([]message.Envelope, provider.Options) {
	t.Helper()
	options := provider.Options{Aliases: &provider.Aliases{}}
	if text := section(in, "options.json"); text != nil {
		readOptions(t, text, &options)
	}
	if section(in, "files") != nil {
		files := map[string][]byte{"notes/boat.txt": section(in, "files")}
		options.ReadFile = func(path string) ([]byte, error) {
			if data, ok := files[path]; ok {
				return data, nil
			}
			return nil, os.ErrNotExist
		}
	}
	var messages []message.Envelope
	for line := range bytes.Lines(section(in, "messages.jsonl")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		e, err := message.NormalizeJSON(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		messages = append(messages, e)
	}
	return messages, options
}

func readOptions(t *testing.T, text []byte, options *provider.Options) {
	t.Helper()
	v, err := value.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	m := value.MapOrEmpty(v)
	options.Speakers = m.At("speakers") == true
	options.Previous, _ = m.At("previous").(string)
	tools, _ := m.At("tools").([]any)
	for _, item := range tools {
		tool := value.MapOrEmpty(item)
		name, _ := tool.At("name").(string)
		description, _ := tool.At("description").(string)
		parameters, _ := tool.At("parameters").(*value.Map)
		options.Tools = append(options.Tools, provider.Tool{Name: name, Description: description, Parameters: parameters})
	}
}

// Replies compares each response.json in dir with the reply that is read.
func Replies(t *testing.T, dir string, read func([]byte, provider.ReadOptions) (provider.Reply, error)) {
	t.Helper()
	for _, path := range files(t, dir) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			in := open(t, path)
			response := section(in, "response.json")
			reply, err := read(response, provider.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			check(t, path, in.Comment, []txtar.File{
				{Name: "response.json", Data: response},
				{Name: "reply.json", Data: pretty(t, reply.Canonical())},
			})
		})
	}
}

// Streams compares each stream.sse in dir with its deltas and with the reply
// they add up to.
func Streams(t *testing.T, dir string, begin func(provider.ReadOptions) provider.Stream) {
	t.Helper()
	for _, path := range files(t, dir) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			in := open(t, path)
			source := section(in, "stream.sse")
			stream := begin(provider.ReadOptions{})
			var deltas []message.Envelope
			for event, err := range provider.Events(bytes.NewReader(source), 0) {
				if err != nil {
					t.Fatal(err)
				}
				added, err := stream.Add(event)
				if err != nil {
					t.Fatal(err)
				}
				deltas = append(deltas, added...)
			}
			check(t, path, in.Comment, []txtar.File{
				{Name: "stream.sse", Data: source},
				{Name: "deltas.jsonl", Data: lines(t, deltas)},
				{Name: "aggregate.jsonl", Data: lines(t, provider.Aggregate(deltas, 1))},
				{Name: "reply.json", Data: pretty(t, stream.Reply().Canonical())},
			})
		})
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	return found
}

func open(t *testing.T, path string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func section(archive *txtar.Archive, name string) []byte {
	for _, f := range archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func check(t *testing.T, path string, comment []byte, got []txtar.File) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, txtar.Format(&txtar.Archive{Comment: comment, Files: got}), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := open(t, path)
	for _, f := range got {
		if diff := cmp.Diff(string(section(want, f.Name)), string(f.Data)); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", f.Name, diff)
		}
	}
}

func pretty(t *testing.T, m *value.Map) []byte {
	t.Helper()
	text, err := m.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	v := jsontext.Value(text)
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		t.Fatal(err)
	}
	return append(v, '\n')
}

func lines(t *testing.T, messages []message.Envelope) []byte {
	t.Helper()
	var out []byte
	for _, e := range messages {
		var err error
		if out, err = e.AppendJSON(out); err != nil {
			t.Fatal(err)
		}
		out = append(out, '\n')
	}
	return out
}

func noteLines(t *testing.T, notes []provider.Note) []byte {
	t.Helper()
	var out []byte
	for _, n := range notes {
		text, err := n.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, text...), '\n')
	}
	return out
}
