// Package layout is how a journal is stored in Pebble: the keys, what is stored
// under them, and the checksums that find damage. It encodes and decodes, and
// never reads or writes a store.
package layout

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal"
)

// What is wrong with bytes that cannot be decoded.
var (
	ErrSum  = errors.New("the checksum does not match")
	ErrForm = errors.New("the form is not known")
	ErrKey  = errors.New("not a key that this engine writes")
)

// Damaged is a journal.DamageError that names what could not be read.
func Damaged(err error, what string, args ...any) error {
	return &journal.DamageError{What: fmt.Sprintf(what, args...), Err: err}
}

// StoreError turns damage that Pebble found into an error of this package that
// names the file.
func StoreError(err error) error {
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return Damaged(errors.New(text), "%s", filepath.Base(info.Path))
	}
	return Damaged(errors.New(text), "the store")
}
