package store

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/parley-hub/parley/journal/disk/internal/layout"
)

// Has reports whether a key exists.
func Has(r pebble.Reader, key []byte) (bool, error) {
	_, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the metadata of the store: %w", layout.StoreError(err))
	}
	return true, closer.Close()
}

// ReadPlace reads epoch and last offset. It reads single keys only, so that damage
// elsewhere does not affect it.
func ReadPlace(r pebble.Reader) (epoch, offset uint64, err error) {
	if epoch, err = readNumber(r, layout.KeyEpoch); err == nil && epoch == 0 {
		err = layout.Damaged(errors.New("it is missing"), "the epoch")
	}
	if err != nil {
		return 0, 0, err
	}
	offset, err = readNumber(r, layout.KeyLast)
	return epoch, offset, err
}

// ReadCopyPlace reads the place of a copy in its log. It returns the zero place if
// none is stored.
func ReadCopyPlace(r pebble.Reader) (layout.Place, error) {
	value, closer, err := r.Get(layout.KeyPlace)
	if errors.Is(err, pebble.ErrNotFound) {
		return layout.Place{}, nil
	}
	if err != nil {
		return layout.Place{}, fmt.Errorf("reading the metadata of the store: %w", layout.StoreError(err))
	}
	at, err := layout.DecodePlace(value)
	if err != nil {
		err = layout.Damaged(err, "the place of the copy")
	}
	return at, errors.Join(err, closer.Close())
}

// readNumber reads a number, or returns 0 if the key does not exist.
func readNumber(r pebble.Reader, key []byte) (uint64, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the metadata of the store: %w", layout.StoreError(err))
	}
	n, err := layout.DecodeNumber(key, value)
	if err != nil {
		err = layout.Damaged(err, "the metadata of the store")
	}
	return n, errors.Join(err, closer.Close())
}

// ScanRange calls each for every key of a range.
func ScanRange(r pebble.Reader, lower, upper []byte, each func(key, value []byte) error) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return layout.StoreError(err)
	}
	defer it.Close() //nolint:errcheck // read errors are looked at below
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return layout.StoreError(err)
		}
		if err := each(it.Key(), value); err != nil {
			return err
		}
	}
	return layout.StoreError(it.Error())
}

// Removals returns the logs with an unfinished removal.
func Removals(r pebble.Reader) (all []layout.Removal, err error) {
	if going, err := Has(r, layout.KeyGoing); err != nil || !going {
		return nil, err
	}
	err = ScanRange(r, []byte{layout.KindRemoval}, []byte{layout.KindRemoval + 1}, func(key, value []byte) error {
		one, err := layout.DecodeRemoval(key, value)
		if err != nil {
			return layout.Damaged(err, "the mark of a removal, %x,", key)
		}
		all = append(all, one)
		return nil
	})
	return all, err
}
