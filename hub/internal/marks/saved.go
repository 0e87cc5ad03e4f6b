package marks

import (
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/request"
)

// Saved is the form in which marks are stored.
type Saved struct {
	Fired   []string        `json:"fired,omitempty"`
	Hidden  []string        `json:"hidden,omitempty"`
	Removed []string        `json:"removed,omitempty"`
	Tasks   []string        `json:"tasks,omitempty"`
	Due     []savedDeadline `json:"due,omitempty"`
	Listed  []string        `json:"listed,omitempty"`
	Open    []savedRequest  `json:"open,omitempty"`
	Asked   []expect.Asked  `json:"asked,omitempty"`
}

type savedRequest struct {
	Request []byte `json:"request"` // as stored in its record
	Asked   uint64 `json:"asked"`
}

type savedDeadline struct {
	Name string         `json:"name"`
	At   expect.Instant `json:"at"`
}

// Save returns the form in which marks are stored.
func Save(m Marks) (Saved, error) {
	s := Saved{Fired: m.Fired, Hidden: m.Hidden, Removed: m.Removed, Tasks: m.Tasks, Listed: m.Listed, Asked: m.Asked}
	for _, d := range m.Due {
		s.Due = append(s.Due, savedDeadline(d))
	}
	for _, q := range m.Open {
		data, err := q.Encode()
		if err != nil {
			return s, err
		}
		s.Open = append(s.Open, savedRequest{data, q.Asked})
	}
	return s, nil
}

// Marks decodes saved marks. It leaves Back empty, as loading does. Every field is
// set by its position, so that a new field cannot be forgotten here.
func (s *Saved) Marks() (Marks, error) {
	var due []Deadline
	for _, d := range s.Due {
		due = append(due, Deadline(d))
	}
	var open []OpenRequest
	for _, q := range s.Open {
		asked, err := request.Decode(q.Request)
		if err != nil {
			return Marks{}, err
		}
		open = append(open, OpenRequest{asked, q.Asked})
	}
	return Marks{s.Fired, s.Hidden, s.Removed, nil, s.Tasks, due, s.Listed, open, s.Asked}, nil
}
