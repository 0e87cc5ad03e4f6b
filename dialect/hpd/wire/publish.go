package wire

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// MaxPublished is how many events a producer may publish at once.
const MaxPublished = 512

// ParsePublished reads one event or a list from a producer, all or none. A refusal
// names the index of the refused event.
func (r *Registry) ParsePublished(data []byte, limits Limits) ([]*Event, error) {
	if jsontext.Value(data).Kind() != '[' {
		e, err := r.parsePublished(data, limits)
		if err != nil {
			return nil, err
		}
		return []*Event{e}, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(data))
	if _, err := d.ReadToken(); err != nil {
		return nil, invalid("the list", err)
	}
	var events []*Event
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, invalid("the list", err)
		}
		if len(events) == MaxPublished {
			return nil, fault.New(fault.TooLarge, "the list has more than %d events; send the rest in another call", MaxPublished)
		}
		e, err := r.parsePublished(value.Clone(), limits)
		if err != nil {
			return nil, fault.Wrap(fault.CodeOf(err), err, "event %d: %v", len(events), err)
		}
		events = append(events, e)
	}
	if !ends(d, data) {
		return nil, fault.New(fault.Invalid, "something follows the list; send one JSON array")
	}
	if len(events) == 0 {
		return nil, fault.New(fault.Invalid, "the list is empty; send at least one event")
	}
	return events, nil
}

func (r *Registry) parsePublished(data []byte, limits Limits) (*Event, error) {
	e, err := r.ParseAny(data, limits)
	if err != nil {
		return nil, err
	}
	return e, r.CheckPublished(e)
}

// CheckPublished returns an error for types that producers may not publish.
func (r *Registry) CheckPublished(e *Event) error {
	row, known := r.Table.Lookup(e.Payload.EventType())
	if !known {
		return nil // shown live, unchanged
	}
	switch row.Source {
	case branch.Server:
		return fault.New(fault.Invalid, "%s is written by the server only", row.Type)
	case branch.Client:
		return fault.New(fault.Invalid, "%s comes from clients; a producer does not publish it", row.Type)
	case branch.Asker:
		return fault.New(fault.Invalid, "%s is a request; ask it by the requests route, so that somebody waits for the answer", row.Type)
	}
	return nil
}

// ParseAsked reads a producer's request.
func (r *Registry) ParseAsked(data []byte, limits Limits) (*Event, Request, error) {
	e, err := r.Parse(data, limits)
	if err != nil {
		return nil, Request{}, err
	}
	request, ok := RequestOf(e)
	if !ok {
		return nil, Request{}, fault.New(fault.Invalid, "%s is not a request; publish it as an event", e.Payload.EventType())
	}
	return e, request, nil
}
