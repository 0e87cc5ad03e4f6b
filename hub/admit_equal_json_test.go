package hub_test

import (
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// A repeat may be written differently, if its values are the same.
func TestRepeatSaysTheSame(t *testing.T) {
	t.Parallel()
	first := `{"a":1,"b":{"x":[1,2.50],"y":"é"},"n":12345678901234567890}`
	tests := map[string]struct {
		data string
		same bool
	}{
		"byte for byte":           {first, true},
		"space":                   {"{ \"a\" : 1,\n\t\"b\":{\"x\":[ 1,2.50 ],\"y\":\"é\"},\"n\":12345678901234567890 }", true},
		"order of keys":           {`{"n":12345678901234567890,"b":{"y":"é","x":[1,2.50]},"a":1}`, true},
		"escapes":                 {`{"a":1,"b":{"x":[1,2.50],"y":"\u00e9"},"n":12345678901234567890}`, true},
		"order of a list":         {`{"a":1,"b":{"x":[2.50,1],"y":"é"},"n":12345678901234567890}`, false},
		"another value":           {`{"a":2,"b":{"x":[1,2.50],"y":"é"},"n":12345678901234567890}`, false},
		"a key less":              {`{"a":1,"b":{"x":[1,2.50],"y":"é"}}`, false},
		"a text, not a number":    {`{"a":"1","b":{"x":[1,2.50],"y":"é"},"n":12345678901234567890}`, false},
		"numbers past a float64":  {`{"a":1,"b":{"x":[1,2.50],"y":"é"},"n":12345678901234567891}`, false},
		"a float, not an integer": {`{"a":1.0,"b":{"x":[1,2.50],"y":"é"},"n":12345678901234567890}`, false},
	}
	for name, tc := range tests {
		runs(t, name, hub.Options{}, func(t *testing.T, r *rig) {
			a, b := r.agent("alice"), r.agent("bob")
			ch := r.open("conversation", a, b)
			post := func(data, ext string) (string, error) {
				e := &envelope.Envelope{Channel: ch, Sender: a.id, Type: "my.own", Key: "k", Data: []byte(data), Ext: []byte(ext)}
				return r.Post(ctx, e, nil)
			}
			want, err := post(first, `{"e":1,"f":2}`)
			if err != nil {
				t.Fatal(err)
			}
			got, err := post(tc.data, `{"f":2, "e":1}`)
			if tc.same && (err != nil || got != want) {
				t.Fatalf("got %q, %v; want %q", got, err, want)
			}
			if !tc.same && fault.CodeOf(err) != fault.Protocol {
				t.Fatalf("got %q, %v", got, err)
			}
			if _, err := post(first, `{"e":1,"f":3}`); fault.CodeOf(err) != fault.Protocol {
				t.Errorf("another extension: %v", err)
			}
		})
	}
}
