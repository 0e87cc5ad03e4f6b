package api

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
)

// Bounds of one watch.
const (
	maxTopics    = 16
	maxExact     = 4
	maxTopicIDs  = 200
	maxWatchedID = 4 << 10 // bytes of an event's id
)

// topic is one subject of a watch. An exact topic sends every event in order and is
// resumed from a place; a conflated one sends only its newest value.
type topic struct {
	kind  string   // channel, requests, audit, summary, rows, agents or stats
	id    string   // of the channel
	place string   // of an exact topic; empty: from now on
	ids   []string // of rows and agents
}

var exactTopics = []string{"channel", "requests", "audit"}

func (t topic) exact() bool { return slices.Contains(exactTopics, t.kind) }

// name is unique among the topics of a watch, and is in each of their events.
func (t topic) name() string {
	if t.kind == "channel" {
		return "channel:" + t.id
	}
	return t.kind
}

const topicsSay = "channel:ID@POSITION, requests@POSITION, audit@POSITION, summary, rows:ID,ID, agents:ID,ID or stats"

func parseTopic(text string) (topic, error) {
	var t topic
	rest, place, _ := cutLast(text, "@")
	kind, of, listed := strings.Cut(rest, ":")
	t.kind, t.place = kind, place
	bad := fault.New(fault.Invalid, "topic=%.100q is unknown; it is %s", text, topicsSay)
	switch kind {
	case "channel":
		if t.id = of; !channel.ValidID(of) {
			return t, bad
		}
	case "requests", "audit":
		if listed {
			return t, bad
		}
	case "summary", "stats":
		if listed || place != "" {
			return t, bad
		}
	case "rows", "agents":
		if !listed || place != "" {
			return t, bad
		}
		t.ids = slices.DeleteFunc(strings.Split(of, ","), func(id string) bool { return id == "" })
		if len(t.ids) > maxTopicIDs {
			return t, fault.New(fault.Invalid, "topic %s names %d ids; at most %d are watched", kind, len(t.ids), maxTopicIDs)
		}
	default:
		return t, bad
	}
	return t, nil
}

// cutLast cuts around the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// parseTopics reads the topics of a watch. Several of one conflated kind are merged.
func parseTopics(texts []string) ([]topic, error) {
	if len(texts) == 0 {
		return nil, fault.New(fault.Invalid, "topic is missing: name what to watch, such as summary; it is %s", topicsSay)
	}
	if len(texts) > maxTopics {
		return nil, fault.New(fault.Invalid, "%d topics are given; at most %d are watched", len(texts), maxTopics)
	}
	var topics []topic
	exact := 0
	for _, text := range texts {
		t, err := parseTopic(text)
		if err != nil {
			return nil, err
		}
		if t.exact() {
			exact++
		}
		i := slices.IndexFunc(topics, func(other topic) bool { return other.name() == t.name() })
		switch {
		case i < 0:
			topics = append(topics, t)
		case t.exact():
			return nil, fault.New(fault.Invalid, "topic %s is given twice; give it once", t.name())
		default:
			topics[i].ids = append(topics[i].ids, t.ids...)
			if len(topics[i].ids) > maxTopicIDs {
				return nil, fault.New(fault.Invalid, "topic %s names %d ids; at most %d are watched", t.kind, len(topics[i].ids), maxTopicIDs)
			}
		}
	}
	if exact > maxExact {
		return nil, fault.New(fault.Invalid, "%d exact topics are given (channel, requests, audit); at most %d are watched", exact, maxExact)
	}
	return topics, nil
}

// places are the positions of a watch in its exact topics.
type places map[string]string

// encode writes the places as the id of an event.
func (p places) encode() string {
	data, err := json.Marshal(p)
	if err != nil {
		return "" // strings always encode
	}
	id := base64.RawURLEncoding.EncodeToString(data)
	if len(id) > maxWatchedID {
		return ""
	}
	return id
}

func decodePlaces(id string) (places, error) {
	data, err := base64.RawURLEncoding.DecodeString(id)
	var p places
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil || len(id) > maxWatchedID {
		return nil, fault.New(fault.Invalid, "Last-Event-ID is not one of a watch's events; send the id of the last event that was received, or none")
	}
	return p, nil
}
