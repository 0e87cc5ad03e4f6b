package wire_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh/wire"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	scan := wire.Options{Now: now, Secrets: wire.NewSecretScan("correct horse battery", "short")}
	spec.Check(t, "agh-network#47: secret-like keys, anywhere in body, ext and proof", func(t *spec.T) {
		for _, key := range []string{
			"apikey", "api_key", "API-Key", "access.token", "refresh_token", "mcp_auth_token", "oauth_code", "authorization_code",
			"code_verifier", "pkce_verifier", "secret_binding", "client_secret", "Authorization", "password", "secret", "token", "claim_token",
		} {
			for _, value := range []string{`"x"`, `1`, `true`, `["x"]`, `{"a":null}`} {
				inner := `{` + quoted(key) + `:` + value + `}`
				for _, data := range [][]byte{
					with(say, "ext", inner), with(say, "proof", inner), with(say, "ext", `{"a":[{"b":`+inner+`}]}`),
					with(say, "body", `{"text":"x","artifacts":[`+inner+`]}`),
				} {
					t.True(reason(data, scan) == wire.Malformed, "%s is refused", data)
					t.True(reason(data, lax) == "", "%s passes without the scan", data)
				}
			}
		}
		for _, key := range []string{"p.a.s.s.w.o.r.d", repeat("_", 40) + "token", "Client" + repeat("-.", 30) + "Secret"} {
			t.True(reason(with(say, "ext", `{`+quoted(key)+`:"x"}`), scan) == wire.Malformed, "%s is refused", key)
		}
		for _, inner := range []string{
			`{"` + repeat("secret", 20) + `":"x"}`, `{"token_hash":"x"}`, `{"token":""}`, `{"token":"  "}`, `{"token":[]}`, `{"token":{ }}`, `{"token":null}`, `{"tokens":"x"}`, `{"secretary":"x"}`,
			`{"passwordhash":"x"}`,
		} {
			t.True(reason(with(say, "ext", inner), scan) == "", "%s passes", inner)
		}
	})
	spec.Check(t, "agh-network#47: secret-like text", func(t *spec.T) {
		for _, text := range []string{
			"password: hunter2", "use API_KEY=abc", "api-key : abc", "Bearer abc.def", "authorization: Basic abc", "Proxy-Authorization=x",
			"bearer  xyz", "agh_claim_Ab-9", "my token=abc", "SECRET:x", "the webhook_secret = 5", "lease-token:x", "the key is correct horse battery",
			"oauthcode=1", "bottoken: 77",
		} {
			data := with(say, "body", `{"text":`+quoted(text)+`}`)
			t.True(reason(data, scan) == wire.Malformed, "%q is refused", text)
			t.True(reason(data, lax) == "", "%q passes without the scan", text)
			_, err := wire.Decode(data, scan)
			t.False(strings.Contains(err.Error(), text), "the refusal repeats %q", text)
			t.True(reason(with(say, "ext", `{`+quoted(text)+`:null}`), scan) == wire.Malformed, "the key %q is refused", text)
		}
		for _, text := range []string{
			"the password was changed", "token_hash: x", "tokens: 5", "what a secret", "forbearer x", "bearer", "agh_claim_", "short", "my_token: x", "password:", "a = b",
		} {
			t.True(reason(with(say, "body", `{"text":`+quoted(text)+`}`), scan) == "", "%q passes", text)
		}
	})
}
