package api

import (
	"regexp"

	"github.com/parley-hub/parley/envelope"
)

// maxNamedText bounds the text that is searched for ids.
const maxNamedText = 16 << 10

var idInText = regexp.MustCompile(`[0-9a-f]{32}`)

// namedError replaces the text of an error and keeps the rest.
type namedError struct {
	error
	words string
}

func (e *namedError) Error() string { return e.words }
func (e *namedError) Unwrap() error { return e.error }

// named is an error with the names of identities in place of their ids.
func (a *API) named(err error) error {
	words, changed := a.inNames(err.Error())
	if !changed {
		return err
	}
	return &namedError{err, words}
}

// inNames puts the names of identities in place of their ids in words for people:
// adapters and rules know ids only, but people know names.
func (a *API) inNames(text string) (words string, changed bool) {
	if len(text) > maxNamedText {
		return text, false
	}
	words = idInText.ReplaceAllStringFunc(text, func(id string) string {
		if !envelope.ValidID(id) {
			return id
		}
		name := a.hub.Name(id)
		changed = changed || name != id
		return name
	})
	return words, changed
}
