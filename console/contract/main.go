// Command contract prints the OpenAPI document of /v1, from which the console's types are
// made.
package main

import (
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/server/api"
)

func main() {
	document := new(api.API).Document()
	if err := json.MarshalWrite(os.Stdout, document, json.Deterministic(true), jsontext.WithIndent(" ")); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
}
