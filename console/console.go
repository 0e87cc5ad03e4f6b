//go:build !noconsole

package console

import "embed"

// Built says whether the page is in the binary.
const Built = true

// dist is what make console built.
//
//go:embed all:dist
var dist embed.FS
