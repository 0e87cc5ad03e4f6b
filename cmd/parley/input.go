package main

import (
	"fmt"
	"io"
	"os"
)

// maxDocument bounds a file that is read as a whole.
const maxDocument = 16 << 20

// open opens a file to be streamed; "-" or none is standard input.
func (a *app) open(args []string) (io.ReadCloser, error) {
	if len(args) == 0 || args[0] == "-" {
		return io.NopCloser(a.in), nil
	}
	return os.Open(args[0])
}

// read reads a whole file; "-" is standard input.
func (a *app) read(name string) ([]byte, error) {
	file, err := a.open([]string{name})
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxDocument {
		return nil, fmt.Errorf("%s has more than %d bytes, which is the limit", name, maxDocument)
	}
	return raw, nil
}
