package ag2

import "github.com/parley-hub/parley/dialect/ag2/wire"

// defaultLimit is the length of a list without a limit.
const defaultLimit = 50

// maxList is more than the entries of any list that fit a frame.
const maxList = logBytes / 128

// limitOf returns a list's limit; a negative one is 0. It is capped at what a frame
// could hold.
func limitOf(limit *wire.Index) int {
	if limit == nil {
		return defaultLimit
	}
	return int(min(max(*limit, 0), maxList))
}

// entry is one entry of a list, with its JSON.
type entry[T any] struct {
	value T
	data  []byte
}

// fetched is how many entries are looked up at once.
const fetched = 64

// gather lists what fits a frame, at most limit entries. More is true if there are
// more.
func gather[T any](limit int, fetch func(n int, after string) ([]T, string, error), encode func(T) ([]byte, error)) (list []entry[T], more bool, err error) {
	size, after := 0, ""
	for len(list) < limit {
		found, next, err := fetch(min(fetched, limit-len(list)), after)
		if err != nil {
			return nil, false, err
		}
		for _, value := range found {
			data, err := encode(value)
			if err != nil {
				return nil, false, err
			}
			if size += len(data) + 1; size > logBytes {
				return list, true, nil
			}
			list = append(list, entry[T]{value, data})
		}
		if after = next; after == "" {
			return list, false, nil
		}
	}
	return list, true, nil
}

// keepOpen replaces the youngest ended entries in a list of the oldest ones by
// younger entries that have not ended.
func keepOpen[T any](list, open []entry[T], limit int, id func(T) string, ended func(T) bool) []entry[T] {
	listed := make(map[string]bool, len(list))
	for _, e := range list {
		listed[id(e.value)] = true
	}
	kept, count, size := map[string]bool{}, 0, 0
	keep := func(from []entry[T], wanted func(T) bool) {
		for _, e := range from {
			key := id(e.value)
			if kept[key] || !wanted(e.value) {
				continue
			}
			if count == limit || size+len(e.data)+1 > logBytes {
				return
			}
			kept[key] = true
			count, size = count+1, size+len(e.data)+1
		}
	}
	keep(list, func(v T) bool { return !ended(v) })
	keep(open, func(T) bool { return true })
	keep(list, ended)
	var result []entry[T]
	for _, e := range list {
		if kept[id(e.value)] {
			result = append(result, e)
		}
	}
	for _, e := range open {
		if key := id(e.value); kept[key] && !listed[key] {
			result = append(result, e)
		}
	}
	return result
}

// joined writes a list as a JSON array.
func joined[T any](list []entry[T]) []byte {
	buf := []byte{'['}
	for i, e := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, e.data...)
	}
	return append(buf, ']')
}
