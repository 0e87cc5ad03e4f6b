package message

import "github.com/parley-hub/parley/message/value"

// HostRow prepares a row of a host whose ids or dates are numbers: Normalize
// would drop them, so they are turned into strings. Other values stay.
func HostRow(row any) any {
	m, ok := value.Of(row).(*value.Map)
	if !ok {
		return row
	}
	for _, key := range []string{"id", "created_at", "updated_at"} {
		if n, isNumber := m.At(key).(value.Number); isNumber {
			m = m.Clone().Set(key, value.Text(n))
		}
	}
	return m
}
