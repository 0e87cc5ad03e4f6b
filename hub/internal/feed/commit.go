package feed

import (
	"bytes"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/reader"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Commit is an immutable journal commit as followers of all channels see it.
type Commit struct {
	Position journal.ShardPosition
	History  Entries
	Side     Entries // requests only
	bytes    int
	Err      error // why it cannot be read
}

// Entries are records of one commit and one family of logs.
type Entries struct {
	Count int // including those that are not in List
	List  []Entry
}

// Entry is the n-th record, counted from 1.
type Entry struct {
	N        int
	Envelope *envelope.Envelope
	Shared   *reader.Shared
}

// recordOverhead is the memory of an entry besides its data. The data counts twice,
// because of the frame that is made of it.
const recordOverhead = 1024

// NewCommit decodes a commit.
func NewCommit(commit *journal.Commit) *Commit {
	c := &Commit{Position: commit.Position, bytes: 128}
	if isSeed(commit) { // its channel does not exist yet
		return c
	}
	for i := range commit.Writes {
		write := &commit.Writes[i]
		switch write.Log.Family {
		case schema.FamilyHistory:
			c.add(&c.History, write.Entries, schema.DecodeEnvelope)
		case schema.FamilySide:
			c.add(&c.Side, write.Entries, requestEnvelope)
		}
	}
	return c
}

func (c *Commit) add(to *Entries, entries []journal.Entry, decode func(journal.Entry) (*envelope.Envelope, error)) {
	for _, entry := range entries {
		to.Count++
		e, err := decode(entry)
		if err != nil {
			c.Err = err
			return
		}
		if e != nil {
			to.List = append(to.List, Entry{N: to.Count, Envelope: e, Shared: &reader.Shared{}})
			c.bytes += 2*len(entry.Data) + recordOverhead
		}
	}
}

// isSeed reports whether a commit is part of a seed, but not the end of one.
func isSeed(commit *journal.Commit) bool {
	for i := range commit.Writes {
		if write := &commit.Writes[i]; write.Log.Family == schema.FamilySide {
			return len(write.Entries) == 1 && schema.IsSeed(write.Entries[0].Data)
		}
	}
	return false
}

// requestEnvelope returns the envelope of a side record about a request, or nil for
// any other record.
func requestEnvelope(entry journal.Entry) (*envelope.Envelope, error) {
	if !bytes.Contains(entry.Data, []byte(`"`+schema.SideRequest)) {
		return nil, nil
	}
	r, err := schema.DecodeSide(entry.Data)
	if err != nil || r.Kind != schema.SideRequest && r.Kind != schema.SideRequestEnded {
		return nil, nil
	}
	return envelope.Unmarshal(r.Envelope)
}
