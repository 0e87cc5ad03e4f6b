package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// pack makes a package of one format for Linux, as packaging/nfpm.yaml says.
func (r *release) pack(ctx context.Context, binary, arch, format string) error {
	c := exec.CommandContext(ctx, r.nfpm, "package", "--config", "packaging/nfpm.yaml", "--packager", format, "--target", r.out)
	c.Env = append(
		os.Environ(),
		"PARLEY_BINARY="+binary, "PARLEY_EXTRAS="+r.extras, "PARLEY_ARCH="+arch, "PARLEY_VERSION="+r.version,
		"SOURCE_DATE_EPOCH="+strconv.FormatInt(r.at.Unix(), 10),
	)
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("nfpm %s: %w: %s", format, err, text)
	}
	return nil
}
