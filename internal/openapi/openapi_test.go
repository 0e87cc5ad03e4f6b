package openapi_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/internal/openapi"
)

type base struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

type itemShape struct {
	base
	Name   *string              `json:"name,omitzero"` // hides the one of base
	Made   time.Time            `json:"made"`
	Parts  []itemShape          `json:"parts,omitzero"`
	Raw    jsontext.Value       `json:"raw,omitzero"`
	Flags  map[string]bool      `json:"flags,omitzero"`
	Opaque struct{ hidden int } `json:"opaque,omitzero"`
	unsaid int
}

const itemProperties = `"flags":{"additionalProperties":{"type":"boolean"},"type":"object"},` +
	`"id":{"type":"integer"},"made":{"format":"date-time","type":"string"},"name":{"type":"string"},"opaque":{"type":"null"},` +
	`"parts":{"items":{"$ref":"#/components/schemas/Item"},"type":"array"},"raw":{}`

func TestTypes(t *testing.T) {
	t.Parallel()
	known := map[reflect.Type]openapi.Object{reflect.TypeFor[struct{ hidden int }](): {"type": "null"}}
	_ = itemShape{}.unsaid + itemShape{}.Opaque.hidden
	for name, tc := range map[string]struct {
		describe func(*openapi.Types) openapi.Object
		want     string
	}{
		"an answer has what is never left out": {
			func(t *openapi.Types) openapi.Object { return t.Of([]itemShape{}) },
			`{"schema":{"items":{"$ref":"#/components/schemas/Item"},"type":"array"},"schemas":{"Item":{"properties":{` + itemProperties + `},"required":["id","made"],"type":"object"}}}`,
		},
		"a request has what its route needs": {
			func(t *openapi.Types) openapi.Object { return t.Request(itemShape{}, []string{"name"}) },
			`{"schema":{"$ref":"#/components/schemas/Item"},"schemas":{"Item":{"properties":{` + itemProperties + `},"required":["name"],"type":"object"}}}`,
		},
		"one of several, or null": {
			func(t *openapi.Types) openapi.Object { return t.Of(openapi.AnyOf{"", nil}) },
			`{"schema":{"anyOf":[{"type":"string"},{"type":"null"}]},"schemas":{}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			types := &openapi.Types{Schemas: openapi.Object{}, Known: known}
			got, err := json.Marshal(openapi.Object{"schema": tc.describe(types), "schemas": types.Schemas}, json.Deterministic(true))
			if err != nil || string(got) != tc.want {
				t.Errorf("%s, %v; want\n%s", got, err, tc.want)
			}
		})
	}
}
