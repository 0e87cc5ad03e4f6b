package channel_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/channel"
)

// Errors in a list of expectations use the author's words.
func TestExpectationsOfTheWrongType(t *testing.T) {
	t.Parallel()
	for given, where := range map[string]string{
		`{}`: `"expectations"`, `[5]`: `"expectations/0"`, `[{"name":"a","on_violation":5}]`: `"expectations/0/on_violation"`,
	} {
		_, err := channel.DecodeExpectations([]byte(given))
		if err == nil || !strings.Contains(err.Error(), where) || strings.Contains(err.Error(), "Go") {
			t.Errorf("%s: %v", given, err)
		}
	}
}
