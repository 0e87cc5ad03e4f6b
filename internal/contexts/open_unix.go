//go:build unix

package contexts

import "io/fs"

// open reports whether others than the owner may read a file.
func open(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
