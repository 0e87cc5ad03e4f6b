package schema

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/journal"
)

// IndexHome lists the homes of a kind: + kind / id; the value is the record.
const IndexHome = "home/"

// HomeRecord describes a home. It is the only record of the home's log.
type HomeRecord struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	CreatedAt string `json:"created_at"`
}

// HomeClaim returns the claim of a home's name among the homes of its kind.
func HomeClaim(kind, name string) string { return "home/" + kind + "/" + Digest(name) }

// NewHome returns the record that creates a home: it claims the name and lists the
// home.
func NewHome(id, kind, name string, at time.Time) (journal.Record, error) {
	data, err := json.Marshal(HomeRecord{Kind: kind, Name: name, CreatedAt: at.Format(time.RFC3339Nano)})
	if err != nil {
		return journal.Record{}, err
	}
	return journal.Record{
		Data: data,
		Put:  []journal.IndexPut{{Key: Key(IndexHome, kind, id), Value: data}},
		Take: []journal.Take{{Name: HomeClaim(kind, name)}},
	}, nil
}

// HomeDeleted returns the record that begins a home's deletion: the home is no
// longer listed, and the sweeper finds that the deletion must be finished.
func HomeDeleted(id, kind string, at time.Time) journal.Record {
	return journal.Record{
		Data:   []byte(`{"deleted":true}`),
		Remove: [][]byte{Key(IndexHome, kind, id)},
		Put:    []journal.IndexPut{{Key: DueKey(DueDrop, at, id), Value: []byte(dropHome)}},
	}
}

// dropHome is the value of a home's entry in the list of what is to be dropped.
const dropHome = "home"

// dropWhole is the value in that list of a channel whose parts are dropped first.
const dropWhole = "whole"

// DropWhole returns the index entry that begins the deletion of a channel and its
// parts.
func DropWhole(id string, at time.Time) journal.IndexPut {
	return journal.IndexPut{Key: DueKey(DueDrop, at, id), Value: []byte(dropWhole)}
}

// DropsWhole reports whether an entry of what is to be dropped stands for a channel
// with its parts.
func DropsWhole(entry journal.IndexEntry) bool { return string(entry.Value) == dropWhole }

// DropsHome reports whether an entry of what is to be dropped stands for a home.
func DropsHome(entry journal.IndexEntry) bool { return string(entry.Value) == dropHome }

// DecodeHome reads a home's record.
func DecodeHome(data []byte) (HomeRecord, time.Time, error) {
	var r HomeRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return r, time.Time{}, err
	}
	at, err := envelope.ParseTime(r.CreatedAt)
	return r, at, err
}

// OwnedChannel returns the channel of an entry under IndexOwned.
func OwnedChannel(entry journal.IndexEntry) string {
	if _, home, ok := strings.Cut(string(entry.Value), "\x00"); ok {
		return InHome(home, LastPart(entry.Key))
	}
	return LastPart(entry.Key)
}

// ListedIn returns the value of an entry of a list of channels: the home and, after
// a zero byte, the only dialect that shows the channel. Either may be empty.
func ListedIn(home, dialect string) []byte {
	if dialect == "" {
		return []byte(home)
	}
	return []byte(home + "\x00" + dialect)
}

// Listed returns the channel that an entry of a list of channels stands for: the
// entry's key ends in the channel's own part, its value begins with the home.
func Listed(entry journal.IndexEntry) string {
	home, _, _ := strings.Cut(string(entry.Value), "\x00")
	if home == "" {
		return LastPart(entry.Key)
	}
	return InHome(home, LastPart(entry.Key))
}

// ListedDialect returns the only dialect that shows the channel of an entry; empty
// if every dialect does, or if the entry does not say.
func ListedDialect(entry journal.IndexEntry) string {
	_, dialect, _ := strings.Cut(string(entry.Value), "\x00")
	return dialect
}
