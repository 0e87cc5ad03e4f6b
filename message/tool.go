package message

import (
	"regexp"
	"strconv"

	"github.com/parley-hub/parley/message/value"
)

// Redacted replaces a secret argument.
const Redacted = "[redacted]"

// secretKey matches the keys whose arguments count as secrets.
var secretKey = regexp.MustCompile(`(?i)api[_-]?key|authorization|auth[_-]?token|bearer|cookie|credential|nonce|password|private[_-]?key|secret|session[_-]?id|token`)

// CallID returns the id a runtime gives a tool call: the provider's, trimmed,
// or one made of the turn and the call's position in it, both from 1. An id
// that is set but blank does not fall back to tool_call_id.
func CallID(call any, turn, position int) string {
	m := value.MapOrEmpty(value.Of(call))
	id := m.At("id")
	if id == nil {
		id = m.At("tool_call_id")
	}
	text, _ := id.(string)
	if text = value.Trim(text); text != "" {
		return text
	}
	return "tool-call-" + strconv.Itoa(max(1, turn)) + "-" + strconv.Itoa(max(1, position))
}

// Redact copies a call's arguments for storing, without secrets: values under
// a key that matches secretKey, or at one of the paths that the tool declares.
// A path is the keys that lead to the value.
func Redact(parameters any, paths ...[]string) any {
	return redact(value.Of(parameters), paths)
}

func redact(v any, paths [][]string) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = redactMember(strconv.Itoa(i), item, paths)
		}
		return list
	case *value.Map:
		m := value.New()
		for key, item := range v.All() {
			if secretKey.MatchString(key) {
				m.Set(key, Redacted)
				continue
			}
			m.Set(key, redactMember(key, item, paths))
		}
		return m
	default:
		return v
	}
}

// redactMember redacts the value under a key with the paths that lead there.
func redactMember(key string, v any, paths [][]string) any {
	var below [][]string
	for _, path := range paths {
		if len(path) == 0 || path[0] != key {
			continue
		}
		if len(path) == 1 {
			return Redacted
		}
		below = append(below, path[1:])
	}
	return redact(v, below)
}
