package body_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/server/body"
)

// order is a body with one member of each kind that the interface reads.
type order struct {
	Name   string            `json:"name"`
	Count  int               `json:"count"`
	Acks   *int              `json:"acks,omitzero"`
	Open   bool              `json:"open"`
	Guests []string          `json:"guests"`
	Labels map[string]string `json:"labels"`
	TTL    *identity.TTL     `json:"ttl"`
	Knobs  jsontext.Value    `json:"knobs"`
	Due    time.Time         `json:"due,omitzero"`
	Seat   seat              `json:"seat"`
}

type seat struct {
	Row int `json:"row"`
}

const mayHave = "acks, count, due, guests, knobs, labels, name, open, seat, ttl"

func TestRead(t *testing.T) {
	t.Parallel()
	var got order
	err := body.Read(strings.NewReader(`{"name":"n","count":2,"acks":null,"open":true,"guests":["g"],"labels":{"a":"b"},"ttl":"2h","knobs":{"x":1.50}} `), &got)
	if err != nil {
		t.Fatal(err)
	}
	ttl := identity.TextTTL("2h")
	want := order{Name: "n", Count: 2, Open: true, Guests: []string{"g"}, Labels: map[string]string{"a": "b"}, TTL: &ttl, Knobs: jsontext.Value(`{"x":1.50}`)}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(identity.TTL{})); diff != "" {
		t.Error(diff)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name":1}`:                             "/name is a number; it must be a string",
		`{"name":["x"]}`:                         "/name is a list; it must be a string",
		`{"count":"2"}`:                          "/count is a string; it must be a whole number of at most 64 bits",
		`{"count":1.5}`:                          "/count is the number 1.5; it must be a whole number of at most 64 bits",
		`{"acks":99999999999999999999}`:          "/acks is the number 99999999999999999999; it must be a whole number of at most 64 bits",
		`{"acks":true}`:                          "/acks is a boolean; it must be a whole number of at most 64 bits",
		`{"open":"yes"}`:                         "/open is a string; it must be true or false",
		`{"guests":"bob"}`:                       "/guests is a string; it must be a list, each of it a string",
		`{"guests":["a",{"b":1}]}`:               "/guests/1 is an object; it must be a string",
		`{"labels":[]}`:                          "/labels is a list; it must be an object, each value of it a string",
		`{"labels":{"team":7}}`:                  "/labels/team is a number; it must be a string",
		`{"ttl":{}}`:                             "/ttl: a duration is text or a whole number of seconds, not a object",
		`{"ttl":1.5}`:                            "/ttl is the number 1.5; it must be a whole number of at most 64 bits",
		`{"naam":"x"}`:                           `the body has the member "naam", which is unknown; it may have ` + mayHave,
		`{"seat":{"raw":1}}`:                     `/seat has the member "raw", which is unknown; it may have row`,
		`{"due":"soon"}`:                         `/due is a string; it must be a time as text, such as "2026-01-02T15:04:05Z"`,
		`{"due":{}}`:                             `/due is an object; it must be a time as text, such as "2026-01-02T15:04:05Z"`,
		`[]`:                                     "the body is a list; it must be an object with " + mayHave,
		`null`:                                   "the body is null; it must be an object with " + mayHave,
		`"x"`:                                    "the body is a string; it must be an object with " + mayHave,
		``:                                       "the body is empty; a JSON object is wanted, with " + mayHave,
		`{`:                                      "the body is not JSON: it ends at byte 1, before it is complete",
		`{"name":"x"} x`:                         "the body is not JSON: invalid character 'x' after top-level value, at byte 13",
		`{"labels":{"a":x}}`:                     "the body is not JSON: invalid character 'x' at start of value, at byte 15, in /labels/a",
		`{"name":"a","name":"b"}`:                "/name is given twice; give it once",
		"{\"name\":\"\xff\"}":                    "the body is not JSON: invalid UTF-8, at byte 9, in /name",
		`{"` + strings.Repeat("x", 300) + `":1}`: `the body has the member "` + strings.Repeat("x", 100) + `", which is unknown; it may have ` + mayHave,
	} {
		err := body.Read(strings.NewReader(text), &order{})
		if fault.CodeOf(err) != fault.Invalid || err.Error() != want {
			t.Errorf("%.60s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	limited := http.MaxBytesReader(httptest.NewRecorder(), io.NopCloser(strings.NewReader(`{"name":"`+strings.Repeat("x", 100)+`"}`)), 50)
	err := body.Read(limited, &order{})
	if want := "the body is over 50 bytes (limits.body)"; fault.CodeOf(err) != fault.TooLarge || err.Error() != want {
		t.Errorf("too large: got %v, want %s", err, want)
	}
	gone := errors.New("read tcp 127.0.0.1:7440: i/o timeout")
	err = body.Read(iotest.ErrReader(gone), &order{})
	if want := "the body could not be read to its end"; fault.CodeOf(err) != fault.Invalid || err.Error() != want || !errors.Is(err, gone) {
		t.Errorf("cut off: got %v, want %s", err, want)
	}
}
