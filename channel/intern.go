package channel

import (
	"bytes"
	"errors"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Interner keeps one copy of values that many channels have in common: manifests,
// knobs, agent ids and close reasons. When its limits are reached, further values are
// not shared. It is safe for concurrent use; nil shares nothing.
type Interner struct {
	mu        sync.Mutex
	manifests map[string]*Manifest
	latest    map[Key]asked // of each key, the manifest that was asked for last
	strings   map[string]string
	max       int
	knobs     map[uint64][]byte // by hash, so that the key is not another copy
	knobBytes int
	seed      maphash.Seed
}

// Defaults of an Interner.
const (
	DefaultInternedNames = 1 << 16
	maxManifests         = 1 << 10
	maxInternedName      = 128     // longer texts are rarely shared
	maxInternedKnobs     = 4 << 20 // bytes of knobs, all together
)

// NewInterner returns an interner that keeps at most names texts; zero is the
// default.
func NewInterner(names int) *Interner {
	if names <= 0 {
		names = DefaultInternedNames
	}
	return &Interner{manifests: map[string]*Manifest{}, latest: map[Key]asked{}, strings: map[string]string{}, max: names, knobs: map[uint64][]byte{}, seed: maphash.MakeSeed()}
}

// Name returns the shared copy of a text.
func (in *Interner) Name(s string) string { return in.name(s) }

// Knobs returns the shared copy of a channel's knobs. It must not be changed.
func (in *Interner) Knobs(knobs []byte) []byte {
	if in == nil || len(knobs) == 0 {
		return knobs
	}
	hash := maphash.Bytes(in.seed, knobs)
	in.mu.Lock()
	defer in.mu.Unlock()
	kept, taken := in.knobs[hash]
	if taken && bytes.Equal(kept, knobs) {
		return kept
	}
	if !taken && in.knobBytes+len(knobs) <= maxInternedKnobs {
		in.knobs[hash] = knobs
		in.knobBytes += len(knobs)
	}
	return knobs
}

func (in *Interner) manifest(text jsontext.Value) (*Manifest, error) {
	if len(text) == 0 {
		return nil, errors.New("channel: metadata has a manifest")
	}
	if in == nil {
		return DecodeManifest(text)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if m, ok := in.manifests[string(text)]; ok {
		return m, nil
	}
	m, err := DecodeManifest(text)
	if err == nil && len(in.manifests) < maxManifests {
		in.manifests[string(text)] = m
	}
	return m, err
}

func (in *Interner) name(s string) string {
	if in == nil || s == "" || len(s) > maxInternedName {
		return s
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if kept, ok := in.strings[s]; ok {
		return kept
	}
	if len(in.strings) < in.max {
		s = strings.Clone(s)
		in.strings[s] = s
	}
	return s
}

func (in *Interner) names(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	for i, s := range list {
		list[i] = in.name(s)
	}
	return list
}
