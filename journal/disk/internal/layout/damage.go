// Package layout defines how a journal is stored in Pebble: the keys, their
// values, and the checksums that detect damage. It encodes and decodes, and
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

// Errors for bytes that cannot be decoded.
var (
	ErrSum  = errors.New("the checksum does not match")
	ErrForm = errors.New("the form is not known")
	ErrKey  = errors.New("not a key that this engine writes")
)

// Damaged returns a journal.DamageError that names what could not be read.
func Damaged(err error, what string, args ...any) error {
	return &journal.DamageError{What: fmt.Sprintf(what, args...), Err: err}
}

// StoreError turns a corruption error of Pebble into a damage error that names the
// file. It returns other errors unchanged.
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
