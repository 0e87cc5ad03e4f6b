package wire_test

import (
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// An error for a member's JSON type names the member and the type, and no Go types.
func TestRefusedTypesInWords(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	for data, want := range map[string]string{
		`{"type":"TEXT_DELTA","messageId":"m","text":5}`:                                    `TEXT_DELTA is not valid: "/text" is a number, which is the wrong JSON type`,
		`{"type":"INTERRUPTION_REQUEST","source":"Martian"}`:                                "INTERRUPTION_REQUEST is not valid: `source` is \"Martian\"; it is one of User, System, Parent, Middleware, or its number from 0 to 3",
		`{"type":"PERMISSION_RESPONSE","permissionId":"p","sourceName":"s","approved":"y"}`: `PERMISSION_RESPONSE is not valid: "/approved" is a string, which is the wrong JSON type`,
	} {
		_, err := wire.NewRegistry(nil).Parse([]byte(data), wire.Limits{})
		c.Equal(err.Error(), want)
	}
}
