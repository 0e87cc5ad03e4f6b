// Package feed reads what becomes durable in a store, in order: positions among all
// events, the commits of all shards, and the newest commits, decoded once for all
// followers of all channels. It does not decide who may see an event.
package feed

import (
	"fmt"
	"strings"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// Position is a place among all events of the hub: one place in each shard. With
// one shard it is after the first Skip events of the batch that follows the shard's
// position.
type Position struct {
	journal.ShardPosition
	Skip int
	// Others is the text form of the places in the other shards; empty: there is
	// only one shard, or everything is ahead.
	Others string
}

// Place is a place among the events of one shard.
type Place struct {
	journal.ShardPosition
	Skip int
}

// String returns the text form, for example "1.42.0", or "1.42.0,1.7.0" with two
// shards.
func (p Position) String() string {
	text := Place{p.ShardPosition, p.Skip}.String()
	if p.Others != "" {
		text += "," + p.Others
	}
	return text
}

func (p Place) String() string { return fmt.Sprintf("%s.%d", p.ShardPosition, p.Skip) }

// ParsePosition reads the text form.
func ParsePosition(s string) (Position, error) {
	first, others, _ := strings.Cut(s, ",")
	var places []Place
	for _, part := range append([]string{first}, split(others)...) {
		p, err := parsePlace(part)
		if err != nil {
			return Position{}, err
		}
		places = append(places, p)
	}
	if p := PositionOf(places); p.String() == s {
		return p, nil
	}
	return Position{}, errNoPlace(s)
}

func split(others string) []string {
	if others == "" {
		return nil
	}
	return strings.Split(others, ",")
}

func parsePlace(s string) (p Place, err error) {
	cut := strings.LastIndexByte(s, '.')
	if cut < 0 {
		return p, errNoPlace(s)
	}
	if p.ShardPosition, err = journal.ParseShardPosition(s[:cut]); err == nil {
		_, err = fmt.Sscanf(s[cut+1:], "%d", &p.Skip)
	}
	if err != nil || p.Skip < 0 || p.String() != s {
		return p, errNoPlace(s)
	}
	return p, nil
}

func errNoPlace(s string) error {
	return fault.New(fault.Invalid, "position %.200q is not of the form epoch.offset.n, one for each shard with commas between", s)
}

// Places returns the place in each of a number of shards. The zero position is
// before everything.
func (p Position) Places(shards int) ([]Place, error) {
	list := make([]Place, 1, shards)
	list[0] = Place{p.ShardPosition, p.Skip}
	if p == (Position{}) {
		return list[:shards], nil
	}
	for _, part := range split(p.Others) {
		next, err := parsePlace(part)
		if err != nil {
			return nil, err
		}
		list = append(list, next)
	}
	if len(list) != shards {
		return nil, fault.New(fault.Invalid, "position %.200q names %d shards, and there are %d", p, len(list), shards)
	}
	return list, nil
}

// PositionOf returns the position that names these places.
func PositionOf(places []Place) Position {
	p := Position{ShardPosition: places[0].ShardPosition, Skip: places[0].Skip}
	if len(places) > 1 {
		others := make([]string, len(places)-1)
		for i, other := range places[1:] {
			others[i] = other.String()
		}
		p.Others = strings.Join(others, ",")
	}
	return p
}

// PlacesOf returns the places that a position of the store stands for.
func PlacesOf(at journal.StorePosition) []Place {
	places := make([]Place, len(at))
	for i := range at {
		places[i].ShardPosition = at[i]
	}
	return places
}
