package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// What gremlins calls the ways a mutant can end.
const (
	killed     = "KILLED"
	lived      = "LIVED"
	notCovered = "NOT COVERED"
	timedOut   = "TIMED OUT"
	notViable  = "NOT VIABLE"
)

// mutant is one change and its result.
type mutant struct {
	file         string // from the module's folder
	line, column int
	kind, status string
}

// mutate runs gremlins on one folder of the copied tree. It is not given
// --test-cpu: version 0.6.0 passes that on as one broken argument, and then
// counts every mutant as killed.
func mutate(ctx context.Context, tool, root, folder string, progress io.Writer) ([]mutant, error) {
	tool, err := filepath.Abs(tool)
	if err != nil {
		return nil, err
	}
	result := filepath.Join(root, "mutants.json")
	cmd := exec.CommandContext(ctx, tool, "unleash", folder, "--output", result, "--timeout-coefficient", "10")
	cmd.Dir = root
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("gremlins on %s: %w", folder, err)
	}
	raw, err := os.ReadFile(result)
	if err != nil {
		return nil, err
	}
	var document struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
				Line   int    `json:"line"`
				Column int    `json:"column"`
			} `json:"mutations"`
		} `json:"files"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("gremlins on %s: %w", folder, err)
	}
	var found []mutant
	for _, file := range document.Files {
		for _, m := range file.Mutations {
			found = append(found, mutant{filepath.ToSlash(filepath.Join(folder, file.Name)), m.Line, m.Column, m.Type, m.Status})
		}
	}
	return found, nil
}

// source returns the line that was changed.
func (m mutant) source(root string) (string, error) {
	file, err := os.Open(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		if n == m.line {
			return strings.TrimSpace(lines.Text()), nil
		}
	}
	return "", fmt.Errorf("%s has no line %d", m.file, m.line)
}
