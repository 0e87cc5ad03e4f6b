package access_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/parley-hub/parley/server/access"
)

// A long request ends at once when its key is revoked, with the right cause.
func TestRevokedKeyEndsItsRequests(t *testing.T) {
	t.Parallel()
	keys := access.NewKeys()
	begun, ended := make(chan string, 2), make(chan error, 2)
	guard := &access.Guard{Keys: keys, Listen: "127.0.0.1:1"}
	handler := guard.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- access.From(r.Context()).Key
		<-r.Context().Done()
		ended <- r.Context().Err()
	}))
	ask := func(token string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	tokens := map[string]string{}
	for range 2 {
		token, key, err := keys.Add(t.Context(), access.Reader, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		tokens[key.ID] = token
		go ask(token)
	}
	first, second := <-begun, <-begun
	revoke := func(id string) {
		t.Helper()
		if _, err := keys.Revoke(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	revoke(first)
	if err := <-ended; err == nil {
		t.Error("the request of a revoked key goes on")
	}
	select {
	case <-ended:
		t.Error("the request of another key ended")
	default:
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
	r.Header.Set("Authorization", "Bearer "+tokens[first])
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("a revoked key is answered with %d", w.Code)
	}
	revoke(second)
	<-ended
}
