package hub

import (
	"fmt"
	"strings"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
)

// WidePosition is a place among all events of the hub: one in each shard. With one
// shard it is after the first Skip events of the batch that follows the shard's
// position.
type WidePosition struct {
	journal.ShardPosition
	Skip int
	// Others is the text form of the places in the other shards; empty: there is
	// only one shard, or everything is ahead.
	Others string
}

// shardPlace is a place among the events of one shard.
type shardPlace struct {
	journal.ShardPosition
	Skip int
}

// String is the text form, for example "1.42.0", or "1.42.0,1.7.0" with two shards.
func (p WidePosition) String() string {
	text := shardPlace{p.ShardPosition, p.Skip}.String()
	if p.Others != "" {
		text += "," + p.Others
	}
	return text
}

func (p shardPlace) String() string { return fmt.Sprintf("%s.%d", p.ShardPosition, p.Skip) }

// ParseWidePosition reads the text form.
func ParseWidePosition(s string) (WidePosition, error) {
	first, others, _ := strings.Cut(s, ",")
	var places []shardPlace
	for _, part := range append([]string{first}, split(others)...) {
		p, err := parsePlace(part)
		if err != nil {
			return WidePosition{}, err
		}
		places = append(places, p)
	}
	if p := widePosition(places); p.String() == s {
		return p, nil
	}
	return WidePosition{}, errNoPlace(s)
}

func split(others string) []string {
	if others == "" {
		return nil
	}
	return strings.Split(others, ",")
}

func parsePlace(s string) (p shardPlace, err error) {
	cut := strings.LastIndexByte(s, '.')
	if cut < 0 {
		return p, errNoPlace(s)
	}
	if p.ShardPosition, err = journal.ParseShardPosition(s[:cut]); err == nil {
		_, err = fmt.Sscanf(s[cut+1:], "%d", &p.Skip)
	}
	if err != nil || p.String() != s {
		return p, errNoPlace(s)
	}
	return p, nil
}

func errNoPlace(s string) error {
	return fault.New(fault.Invalid, "position %.200q is not of the form epoch.offset.n, one for each shard with commas between", s)
}

// places are those of a number of shards. The zero position is before everything.
func (p WidePosition) places(shards int) ([]shardPlace, error) {
	list := make([]shardPlace, 1, shards)
	list[0] = shardPlace{p.ShardPosition, p.Skip}
	if p == (WidePosition{}) {
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

func widePosition(places []shardPlace) WidePosition {
	p := WidePosition{ShardPosition: places[0].ShardPosition, Skip: places[0].Skip}
	if len(places) > 1 {
		others := make([]string, len(places)-1)
		for i, other := range places[1:] {
			others[i] = other.String()
		}
		p.Others = strings.Join(others, ",")
	}
	return p
}
