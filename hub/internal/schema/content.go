package schema

import (
	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/journal"
)

// IndexContent lists the content of a home: + home / id; the value is the record.
const IndexContent = "content/"

// ContentPiece is the size of each record of content but the last two, so that a
// position in the content gives the position in the log.
const ContentPiece = 512 << 10

// ContentLog returns the log of one content. Its records are the pieces of the
// content and then its description.
func (t Tenant) ContentLog(home, id string) journal.LogName {
	return t.Home(home).In(FamilyContent, id)
}

// ContentRecord describes a content. It is the last record of the content's log.
type ContentRecord struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitzero"`
	Type      string `json:"type,omitzero"`
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"` // hex
	By        string `json:"by,omitzero"`
	CreatedAt string `json:"created_at"`
}

// Finish returns the record that ends a content and lists it.
func (c ContentRecord) Finish(home string) (journal.Record, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return journal.Record{}, err
	}
	return journal.Record{Data: data, Put: []journal.IndexPut{{Key: Key(IndexContent, home, c.ID), Value: data}}}, nil
}

// DecodeContent reads the last record of a content.
func DecodeContent(data []byte) (c ContentRecord, err error) {
	err = json.Unmarshal(data, &c)
	return c, err
}
