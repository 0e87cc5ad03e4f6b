// Package messagebench measures package message: what normalizing costs beside
// decoding and encoding the same JSON, and how much memory a large file takes
// on its way through the command.
package messagebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/sample"
)

// Options of a run.
type Options struct {
	// Binary is the parley that a file is taken through; empty: this one.
	Binary string
	// Bytes is the size of that file; 0: 64 MiB, times PARLEY_SCALE, so that 16
	// makes it a gigabyte.
	Bytes int
	bench.Plan
}

// The targets: how many times the floor normalizing may take, and how many MiB
// a file of any size.
const (
	maxRatio  = 2.5
	maxMemory = 64
)

// Run measures.
func Run(ctx context.Context, o Options) (bench.Report, error) {
	o.Plan = o.WithDefaults()
	if o.Bytes <= 0 {
		o.Bytes = scale.N(64 << 20)
	}
	report := bench.Report{Bench: "message", Params: map[string]any{
		"message_bytes": len(sample.Typical()), "file_bytes": o.Bytes,
	}}
	f, err := bench.Contest{
		Name: "normalize: decode, normalize, encode", Unit: "µs/message", Better: bench.Lower, Target: new(maxRatio),
		Ours: bench.Timed(normalize()), Floor: bench.Timed(decodeEncode),
	}.Run(ctx, o.Plan)
	if err != nil {
		return report, err
	}
	memory, rate, err := through(ctx, o)
	if err != nil {
		return report, err
	}
	report.Figures = append(report.Figures, f,
		bench.Counted("normalize a file: peak memory", memory, "MiB", new(float64(maxMemory))),
		bench.Counted("normalize a file: time for a MiB", 1000/rate, "ms", nil))
	return report, nil
}

// normalize returns a function that turns JSON into canonical JSON.
func normalize() func() error {
	src := sample.Typical()
	var dst []byte
	return func() error {
		e, err := message.NormalizeJSON(src)
		if err == nil {
			dst, err = e.AppendJSON(dst[:0])
		}
		return err
	}
}

// typical is what the floor decodes.
var typical = sample.Typical()

// decodeEncode is the floor: the same library, the same JSON, no rules.
func decodeEncode() error {
	var v any
	if err := json.Unmarshal(typical, &v); err != nil {
		return err
	}
	_, err := json.Marshal(v)
	return err
}

// through processes a file with the command in a process of its own. It reports the
// peak memory of the process in MiB, and its rate in MiB per second.
func through(ctx context.Context, o Options) (memory, rate float64, err error) {
	binary := o.Binary
	if binary == "" {
		if binary, err = os.Executable(); err != nil {
			return 0, 0, err
		}
	}
	cmd := exec.CommandContext(ctx, binary, "message", "normalize", "-")
	input := &endless{text: sample.Conversation(), left: o.Bytes}
	input.end = func() { memory = peak(cmd.Process.Pid) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, io.Discard, os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("message normalize: %w", err)
	}
	elapsed := time.Since(start)
	if memory == 0 {
		return 0, 0, errors.New("this system does not say how much memory a process had")
	}
	o.Tell("normalize a file", 1, 1)
	return memory, float64(o.Bytes) / (1 << 20) / elapsed.Seconds(), nil
}

// peak returns the peak memory of a process so far, in MiB; 0 if it is unknown.
// What the system reports for a process that has ended would include its parent's.
func peak(pid int) float64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == "VmHWM:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return 0
			}
			return kib / 1024
		}
	}
	return 0
}

// endless repeats whole lines until a number of bytes is reached.
type endless struct {
	text []byte
	at   int
	left int
	end  func() // called when all is read
}

func (e *endless) Read(p []byte) (int, error) {
	if e.at == 0 && e.left <= 0 {
		if e.end != nil {
			e.end()
		}
		return 0, io.EOF
	}
	n := copy(p, e.text[e.at:])
	e.at, e.left = (e.at+n)%len(e.text), e.left-n
	return n, nil
}
