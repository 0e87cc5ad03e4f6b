package hpd_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
)

// Every operation of the document reaches a handler.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	doc := r.do("GET", "/openapi.json", nil).object()
	c.Equal(doc["openapi"], any("3.1.0"))
	paths := doc["paths"].(object)
	c.True(len(paths) > 40, "%d paths", len(paths))
	id := regexp.MustCompile(`\{[A-Za-z]+\}`)
	for path, item := range paths {
		at := id.ReplaceAllString(path, "nothing")
		for method := range item.(object) {
			if strings.HasSuffix(path, "/work") {
				continue // it streams
			}
			a := r.do(strings.ToUpper(method), at, nil)
			c.True(a.status != 405 && !strings.Contains(string(a.raw), "there is no"), "%s %s is served: %d", method, path, a.status)
		}
	}
}
