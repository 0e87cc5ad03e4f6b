package wire

import (
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// secrets are the members, at any depth of a run's configuration, that are never
// stored, logged or echoed. Case, _ and - do not matter.
var secrets = map[string]bool{
	"apikey": true, "apikeys": true, "customheaders": true, "headers": true, "authorization": true, "cookie": true, "cookies": true,
	"password": true, "passphrase": true, "secret": true, "secrets": true, "clientsecret": true, "credential": true, "credentials": true,
	"token": true, "accesstoken": true, "refreshtoken": true, "bearertoken": true, "authtoken": true, "idtoken": true, "sastoken": true,
	"privatekey": true, "secretkey": true, "accesskey": true, "secretaccesskey": true, "subscriptionkey": true, "connectionstring": true,
}

var plainName = strings.NewReplacer("_", "", "-", "")

func isSecret(name string) bool { return secrets[strings.ToLower(plainName.Replace(name))] }

// WithoutSecrets returns the part of a run's configuration that may be stored while
// an input waits for its producer. Values that cannot be searched are left out too.
func WithoutSecrets(runConfig Raw) Raw {
	if runConfig.Kind() != '{' {
		return nil
	}
	out, ok := withoutSecrets("", runConfig)
	if !ok {
		return Raw("{}")
	}
	return out
}

// withoutSecrets returns a value without its secrets; false if it must be left out.
func withoutSecrets(name string, value Raw) (Raw, bool) {
	switch value.Kind() {
	case '{':
		var members map[string]Raw
		if json.Unmarshal(value, &members) != nil {
			return nil, false
		}
		for name, inner := range members {
			kept, ok := withoutSecrets(name, inner)
			if !ok || isSecret(name) {
				delete(members, name)
				continue
			}
			members[name] = kept
		}
		return written(members)
	case '[':
		var list []Raw
		if json.Unmarshal(value, &list) != nil {
			return nil, false
		}
		for i := range list {
			kept, ok := withoutSecrets(name, list[i])
			if !ok {
				return nil, false
			}
			list[i] = kept
		}
		return written(list)
	case '"':
		return textWithoutSecrets(name, value)
	}
	return value, true
}

// textWithoutSecrets removes secrets from texts that are JSON themselves, and
// leaves out addresses that contain a password.
func textWithoutSecrets(name string, value Raw) (Raw, bool) {
	text, ok := unquote(value)
	if !ok {
		return nil, false
	}
	if at, err := url.Parse(text); err == nil && at.User != nil {
		return nil, false
	}
	if !strings.HasSuffix(strings.ToLower(name), "json") {
		return value, true
	}
	inner := Raw(text)
	if !inner.IsValid() {
		return nil, false
	}
	kept, ok := withoutSecrets("", inner)
	if !ok {
		return nil, false
	}
	quoted, err := jsontext.AppendQuote(nil, kept)
	return quoted, err == nil
}

func written(v any) (Raw, bool) {
	out, err := json.Marshal(v, json.Deterministic(true))
	return out, err == nil
}
