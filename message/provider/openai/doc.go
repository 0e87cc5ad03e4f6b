// Package openai maps canonical messages to the JSON of OpenAI's two
// interfaces and back: chat completions and responses. Many other servers
// speak the first one too.
//
// It makes no requests and keeps nothing: what OpenAI wants back verbatim is
// in the messages' metadata, under "openai" for responses and "openai_chat"
// for chat completions, because neither accepts the other's.
package openai

import (
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/internal/plan"
	"github.com/parley-hub/parley/message/value"
)

// The metadata keys of OpenAI's own fields.
const (
	Vendor     = "openai"
	VendorChat = "openai_chat"
)

// failure reads an error object.
func failure(m *value.Map) *provider.Failure {
	code := plan.Str(m, "code")
	if code == "" {
		code = plan.Str(m, "type")
	}
	f := &provider.Failure{Provider: Vendor, Code: code, Message: plan.Str(m, "message")}
	for _, name := range []string{code, plan.Str(m, "type")} {
		switch name {
		case "server_error", "rate_limit_exceeded", "internal_error", "timeout", "overloaded":
			f.Retryable = true
		}
	}
	return f
}
