package api

import (
	"regexp"

	"github.com/parley-hub/parley/envelope"
)

// maxNamedText bounds the words that are searched for ids.
const maxNamedText = 16 << 10

var idInText = regexp.MustCompile(`[0-9a-f]{32}`)

// namedError is an error in words for people; what it is about stays.
type namedError struct {
	error
	words string
}

func (e *namedError) Error() string { return e.words }
func (e *namedError) Unwrap() error { return e.error }

// named puts the names of identities in place of their ids in the words of an error:
// adapters and rules know ids only, but people know names.
func (a *API) named(err error) error {
	text := err.Error()
	if len(text) > maxNamedText {
		return err
	}
	changed := false
	words := idInText.ReplaceAllStringFunc(text, func(id string) string {
		if !envelope.ValidID(id) {
			return id
		}
		name := a.hub.Name(id)
		changed = changed || name != id
		return name
	})
	if !changed {
		return err
	}
	return &namedError{err, words}
}
