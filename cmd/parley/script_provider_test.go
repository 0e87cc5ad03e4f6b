package main

import (
	"bytes"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-hub/parley/internal/fakeprovider"
)

func init() {
	scriptCommands["provider"] = cmdProvider
	scriptCommands["nowhere"] = cmdNowhere
	scriptCommands["played"] = cmdPlayed
	scriptCommands["first"] = cmdFirst
}

// cmdProvider starts a provider that plays a script:
//
//	provider NAME SCRIPT    sets NAME_URL
func cmdProvider(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: provider NAME SCRIPT")
	}
	// The script is an archive within an archive: its markers are quoted.
	script := strings.ReplaceAll(ts.ReadFile(args[1]), "== ", "-- ")
	script = strings.ReplaceAll(script, " ==\n", " --\n")
	server, err := fakeprovider.New([]byte(script))
	ts.Check(err)
	listener := httptest.NewServer(server)
	ts.Setenv(args[0]+"_URL", listener.URL)
	played.Store(ts.Getenv("WORK")+args[0], server)
	ts.Defer(listener.Close)
}

// played are the providers of running scripts.
var played sync.Map

// cmdPlayed checks that a provider was asked its whole script, and nothing
// else:
//
//	played NAME
func cmdPlayed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: played NAME")
	}
	found, ok := played.Load(ts.Getenv("WORK") + args[0])
	server, is := found.(*fakeprovider.Server)
	if !ok || !is {
		ts.Fatalf("there is no provider %s", args[0])
	}
	if problems := server.Problems(); len(problems) > 0 {
		ts.Fatalf("provider %s: %s", args[0], strings.Join(problems, "; "))
	}
}

// cmdNowhere checks that no file of the script's folder holds a text:
//
//	nowhere TEXT [EXCEPT]...
func cmdNowhere(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: nowhere TEXT [EXCEPT]...")
	}
	seen := 0
	err := filepath.WalkDir(ts.Getenv("WORK"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		for _, except := range args[1:] {
			if entry.Name() == except {
				return nil
			}
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		if bytes.Contains(raw, []byte(args[0])) {
			ts.Fatalf("%s holds it", path)
		}
		return nil
	})
	ts.Check(err)
	if seen < 5 {
		ts.Fatalf("only %d files were read", seen)
	}
}

// cmdFirst sets a variable to the first text of a name in a JSON file, however
// deep it is:
//
//	first NAME FILE FIELD
func cmdFirst(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: first NAME FILE FIELD")
	}
	found := regexp.MustCompile(`"` + regexp.QuoteMeta(args[2]) + `":\s*"([^"]*)"`).FindStringSubmatch(ts.ReadFile(args[1]))
	if found == nil {
		ts.Fatalf("%s has no %s: %s", args[1], args[2], ts.ReadFile(args[1]))
	}
	ts.Setenv(args[0], found[1])
}
