package api

import "sync"

// maxTitles bounds how many titles are remembered.
const maxTitles = 10_000

// titles caches the first texts of channels, which never change. When it is full, it
// is cleared.
type titles struct {
	mu   sync.Mutex
	byID map[string]string
}

func (t *titles) get(id string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	title, ok := t.byID[id]
	return title, ok
}

func (t *titles) put(id, title string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil || len(t.byID) >= maxTitles {
		t.byID = map[string]string{}
	}
	t.byID[id] = title
}
