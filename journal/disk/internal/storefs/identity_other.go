//go:build !unix

package storefs

import "os"

// identityOf returns the empty identity: only a missing file is noticed.
func identityOf(os.FileInfo) identity { return identity{} }
