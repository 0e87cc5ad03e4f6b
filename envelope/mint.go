package envelope

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// IDLength is the number of characters of an id.
const IDLength = 32

// Minter makes ids that increase strictly, as strings, for as long as it
// lives: 16 hex digits of nanoseconds, then 16 random ones. When the clock
// stalls or steps back it counts on from the last id. Safe for concurrent use.
type Minter struct {
	mu   sync.Mutex
	last uint64

	reserved uint64
	reserve  func(floor uint64) error
	step     uint64

	// Random bytes for the next ids: reading many at once is cheaper.
	random [512]byte
	unused int
}

// NewMinter returns a minter whose first id is above floor, which is the value
// last passed to reserve (zero on a new store). The minter calls reserve before
// it mints beyond what it has reserved, step nanoseconds ahead, so that a
// process that starts later, with a clock further back, mints above everything
// minted before without scanning a log. A nil reserve keeps no floor.
func NewMinter(floor uint64, step time.Duration, reserve func(floor uint64) error) *Minter {
	return &Minter{last: floor, reserved: floor, reserve: reserve, step: uint64(max(step, 1))}
}

// Mint returns an id above now, above the last one minted here and above after,
// which may be empty.
func (m *Minter) Mint(now time.Time, after string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ns := uint64(max(now.UnixNano(), 0))
	ns = max(ns, m.last+1)
	if stamp, ok := idStamp(after); ok {
		ns = max(ns, stamp+1)
	}
	if m.reserve != nil && ns > m.reserved {
		floor := ns + m.step
		if err := m.reserve(floor); err != nil {
			return "", fmt.Errorf("envelope: reserve ids: %w", err)
		}
		m.reserved = floor
	}
	m.last = ns
	if m.unused == 0 {
		_, _ = rand.Read(m.random[:]) // never fails: crypto/rand ends the process instead
		m.unused = len(m.random)
	}
	m.unused -= 8
	return formatID(ns, m.random[m.unused:m.unused+8]), nil
}

// NewID returns an id that is unique but not ordered relative to those of a
// Minter; it names agents, channels, endpoints and requests.
func NewID() string {
	var random [8]byte
	_, _ = rand.Read(random[:])
	return formatID(uint64(max(time.Now().UnixNano(), 0)), random[:])
}

// ValidID reports whether s has the form of an id.
func ValidID(s string) bool {
	if len(s) != IDLength {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func formatID(ns uint64, random []byte) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], ns)
	copy(raw[8:], random)
	return hex.EncodeToString(raw[:])
}

func idStamp(id string) (uint64, bool) {
	if len(id) < 16 {
		return 0, false
	}
	ns, err := strconv.ParseUint(id[:16], 16, 64)
	return ns, err == nil
}
