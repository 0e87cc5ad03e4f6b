package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// flags of every build. Lint builds with the same ones, so that its results are
// found in the build cache.
var flags = []string{"-trimpath", "-buildvcs=false"}

// build makes what one system gets.
func (r *release) build(ctx context.Context, platform string) error {
	system, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("want SYSTEM/ARCHITECTURE, such as linux/amd64")
	}
	name := fmt.Sprintf("parley_%s_%s_%s", r.version, system, arch)
	binary := filepath.Join(r.out, name)
	if system == "windows" {
		binary += ".exe"
	}
	if err := r.compile(ctx, binary, system, arch); err != nil {
		return err
	}
	if err := r.writeSBOM(binary, name); err != nil {
		return err
	}
	if err := r.archive(binary, name); err != nil {
		return err
	}
	if system != "linux" {
		return nil
	}
	for _, format := range []string{"deb", "rpm", "apk"} {
		if err := r.pack(ctx, binary, arch, format); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) compile(ctx context.Context, binary, system, arch string) error {
	args := append([]string{"build", "-o", binary, "-ldflags", "-s -w -X main.release=" + r.stamp}, flags...)
	c := exec.CommandContext(ctx, "go", append(args, "./cmd/parley")...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}

// writeExtras has the command itself write its completions and man pages.
func (r *release) writeExtras(ctx context.Context, work string) error {
	binary := filepath.Join(work, "parley")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	if err := r.compile(ctx, binary, runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	completions := filepath.Join(r.extras, "completions")
	if err := os.MkdirAll(completions, 0o755); err != nil {
		return err
	}
	for shell, file := range map[string]string{"bash": "parley.bash", "zsh": "_parley", "fish": "parley.fish", "powershell": "parley.ps1"} {
		text, err := exec.CommandContext(ctx, binary, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("parley completion %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(completions, file), text, 0o644); err != nil {
			return err
		}
	}
	man := exec.CommandContext(ctx, binary, "man", filepath.Join(r.extras, "man"))
	man.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.at.Unix()))
	if text, err := man.CombinedOutput(); err != nil {
		return fmt.Errorf("parley man: %w: %s", err, text)
	}
	return nil
}
