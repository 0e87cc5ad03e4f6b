package gemini_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/gemini"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

// An empty text separates nothing, unless it has further fields.
func TestStreamedTexts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		parts string
		want  []string
	}{
		"one":                    {`{"text":"a"},{"text":"b"}`, []string{"ab"}},
		"an empty one":           {`{"text":"a"},{"text":""},{"text":"b"}`, []string{"ab"}},
		"an empty signed one":    {`{"text":"a"},{"text":"","thoughtSignature":"s"},{"text":"b"}`, []string{"a", "b"}},
		"an empty first one":     {`{"text":""},{"text":"b"}`, []string{"b"}},
		"a thought in between":   {`{"text":"a"},{"text":"t","thought":true},{"text":"b"}`, []string{"a", "b"}},
		"a signed one that ends": {`{"text":"a","thoughtSignature":"s"},{"text":"b"}`, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := gemini.NewStream(provider.ReadOptions{})
			if _, err := stream.Add([]byte(`{"candidates":[{"content":{"parts":[` + c.parts + `]}}]}`)); err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, e := range stream.Reply().Messages {
				texts = append(texts, value.Text(e.Content))
			}
			if diff := cmp.Diff(c.want, texts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// responseOf returns the response in a request's last content.
func responseOf(body *value.Map) string {
	contents := body.At("contents").([]any)
	parts := contents[len(contents)-1].(*value.Map).At("parts").([]any)
	return valuetest.Write(parts[0].(*value.Map).At("functionResponse").(*value.Map).At("response"))
}

// A response that is read and written again is the same.
func TestResponsesSurvive(t *testing.T) {
	t.Parallel()
	for _, response := range []string{
		`{}`, `{"a":1,"b":[2.50]}`, `{"result":"4 m"}`, `{"result":"{\"a\":1}"}`, `{"result":"{ \"a\": 1 }"}`, `{"result":{"x":1}}`, `{"result":{}}`, `{"result":[1]}`, `{"result":null}`,
		`{"result":{"result":1}}`, `{"error":"boom"}`, `{"error":"{\"code\":5}"}`, `{"error":{"code":5}}`, `{"error":null}`, `{"error":"x","result":"y"}`, `{"result":{"error":"x"}}`, `{"result":"{\"error\":\"x\"}"}`,
	} {
		body := valuetest.Decode(t, `{"contents":[{"role":"model","parts":[{"functionCall":{"id":"c1","name":"t","args":{}}}]},`+
			`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"t","response":`+response+`}}]}]}`).(*value.Map)
		request := gemini.Contents(gemini.History(body, provider.ReadOptions{}).Messages, provider.Options{})
		if got := responseOf(request.Body); got != response {
			t.Errorf("%s became %s", response, got)
		}
	}
}

// A response that was kept is not returned once the message says otherwise.
func TestKeptResponsesDoNotOutlive(t *testing.T) {
	t.Parallel()
	body := valuetest.Decode(t, `{"contents":[{"role":"model","parts":[{"functionCall":{"id":"c1","name":"t","args":{}}}]},`+
		`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"t","response":{"result":{"secret":1}}}}]}]}`).(*value.Map)
	for name, c := range map[string]struct {
		change func(*message.Envelope)
		want   string
	}{
		"the same":        {func(*message.Envelope) {}, `{"result":{"secret":1}}`},
		"another text":    {func(e *message.Envelope) { e.Content = "gone"; e.Payload.Delete("result") }, `{"result":"gone"}`},
		"another value":   {func(e *message.Envelope) { e.Payload.Set("result", value.New().Set("open", value.Int(2))) }, `{"open":2}`},
		"now a failure":   {func(e *message.Envelope) { e.Payload.Set("success", false) }, `{"error":"{\"secret\":1}"}`},
		"another failure": {func(e *message.Envelope) { e.Content = "null"; e.Payload.Set("success", false) }, `{"error":"null"}`},
	} {
		messages := gemini.History(body, provider.ReadOptions{}).Messages
		c.change(&messages[len(messages)-1])
		request := gemini.Contents(messages, provider.Options{})
		if got := responseOf(request.Body); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
