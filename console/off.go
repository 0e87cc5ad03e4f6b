//go:build noconsole

package console

import "embed"

// Built says whether the page is in the binary.
const Built = false

// dist is empty: the binary was built without the console.
var dist embed.FS
