package openapi

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tool runs a program of clients/ for at most five minutes.
func tool(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = "clients", append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// cleanReport is the linter's sum without a finding.
var cleanReport = regexp.MustCompile(`"totals":\s*\{\s*"errors":\s*0,\s*"warnings":\s*0,`)

// The document passes a linter without a warning, and generated clients
// compile and talk to the hub.
func TestGeneratedClients(t *testing.T) {
	h := start(t)
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, h.document(), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PARLEY_HUB=" + h.url, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true"}
	// What the linter says of itself, such as which Node it will need, is no warning.
	if said := tool(t, env, "node_modules/.bin/redocly", "lint", "--format=json", file); !cleanReport.MatchString(said) {
		t.Errorf("redocly lint: %s", said)
	}

	tool(t, env, "node_modules/.bin/openapi-typescript", file, "--output", "v1.ts")
	tool(t, env, "node_modules/.bin/tsc", "--project", ".")
	if said := tool(t, env, "node", "build/use.js"); !strings.Contains(said, "typescript: fine") {
		t.Errorf("use.ts said %s", said)
	}

	python, err := filepath.Abs(os.Getenv("PARLEY_VENV"))
	if err != nil || os.Getenv("PARLEY_VENV") == "" {
		t.Fatal("PARLEY_VENV is not set; run make test")
	}
	python = filepath.Join(python, "bin")
	env = append(env, "PATH="+python+string(os.PathListSeparator)+os.Getenv("PATH"))
	said := tool(t, env, filepath.Join(python, "openapi-python-client"), "generate", "--path", file, "--output-path", "parley_v1", "--meta", "none", "--overwrite")
	// It supports neither tar archives nor JSON lines; anything else that it
	// leaves out is a fault of the document.
	for _, known := range []string{"GET /v1/backup", "POST /v1/import"} {
		said = strings.Replace(said, "WARNING parsing "+known, "", 1)
	}
	if strings.Contains(said, "WARNING parsing") || strings.Contains(said, "Unable to process schema") {
		t.Errorf("openapi-python-client: %s", said)
	}
	tool(t, env, filepath.Join(python, "python"), "-m", "compileall", "-q", "parley_v1")
	if said := tool(t, env, filepath.Join(python, "python"), "use.py"); !strings.Contains(said, "python: fine") {
		t.Errorf("use.py said %s", said)
	}
}
