package envelope

import "strings"

// Priority orders what waits for one reader across channels, never within one.
// Unknown values pass through untouched and rank as normal.
type Priority string

const (
	Background Priority = "background"
	Normal     Priority = "normal"
	Urgent     Priority = "urgent"
)

// Rank returns a higher number for what should be read first.
func (p Priority) Rank() int {
	switch p {
	case Background:
		return 0
	case Urgent:
		return 2
	}
	return 1
}

// ParsePriority reads today's names in any case and the seed's names and
// numbers; the empty string is normal.
func ParsePriority(s string) Priority {
	switch strings.ToLower(s) {
	case "", "normal", "1":
		return Normal
	case "background", "low", "0":
		return Background
	case "urgent", "high", "2", "3":
		return Urgent
	}
	return Priority(s)
}
