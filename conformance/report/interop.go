package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// readInterop reads the results that suites in other languages left behind:
//
//	{"statement":"ag2-hub#1","test":"test_hello","passed":true}
func readInterop(glob string) ([]holding, error) {
	if glob == "" {
		return nil, nil
	}
	files, err := filepath.Glob(glob)
	if err != nil {
		return nil, fmt.Errorf("interop results: %w", err)
	}
	var held []holding
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("interop results: %w", err)
		}
		lines := bufio.NewScanner(bytes.NewReader(raw))
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			var row struct {
				Statement string `json:"statement"`
				Test      string `json:"test"`
				Passed    *bool  `json:"passed"`
			}
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, n, err)
			}
			if row.Statement == "" || row.Test == "" || row.Passed == nil {
				return nil, fmt.Errorf("%s:%d: a result has statement, test and passed", file, n)
			}
			held = append(held, holding{row.Statement, filepath.Base(file) + " " + row.Test, *row.Passed})
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return held, nil
}
