// Command release builds what is published: binaries, archives, packages, an
// SBOM and their sums, in one folder. The same commit gives the same bytes: times
// come from the commit, and nothing is taken from the machine but the Go and nfpm
// that the Makefile pins.
//
//	go run ./internal/release -nfpm bin/nfpm -out build/release
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	out := flag.String("out", "build/release", "folder of what is made; what it holds is removed first")
	nfpm := flag.String("nfpm", "", "the nfpm command")
	version := flag.String("version", "", "version of the release, such as 0.1.0; without one it is a snapshot of the commit")
	platforms := flag.String("platforms", "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64", "systems to build for")
	flag.Parse()
	if err := makeRelease(context.Background(), *out, *nfpm, *version, strings.Fields(*platforms)); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one run.
type release struct {
	out     string
	nfpm    string
	version string    // without a leading v
	stamp   string    // what parley version prints
	at      time.Time // of the commit
	extras  string    // folder of completions and man pages, the same for every system
}

func makeRelease(ctx context.Context, out, nfpm, version string, platforms []string) error {
	if nfpm == "" {
		return fmt.Errorf("-nfpm is missing: the path of the nfpm command, which make release-snapshot installs")
	}
	at, err := commitTime(ctx)
	if err != nil {
		return err
	}
	version = strings.TrimPrefix(version, "v")
	stamp := "v" + version
	if version == "" {
		commit, err := git(ctx, "rev-parse", "--short=12", "HEAD")
		if err != nil {
			return err
		}
		// deb, rpm and apk all sort this before 0.0.0 and by time.
		version = "0.0.0-pre" + at.Format("20060102150405")
		stamp = "v" + version + "+" + commit
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "parley-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r := &release{out: out, nfpm: nfpm, version: version, stamp: stamp, at: at, extras: filepath.Join(work, "extras")}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := r.writeExtras(ctx, work); err != nil {
		return err
	}
	for _, platform := range platforms {
		if err := r.build(ctx, platform); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	return r.sum()
}

func commitTime(ctx context.Context) (time.Time, error) {
	text, err := git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w (a release is made from a commit)", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
