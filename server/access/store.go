package access

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// Store keeps keys as documents of the hub, so that they are in its backups,
// and changes of them are audited in the same batch.
type Store interface {
	Documents(ctx context.Context, kind string, page hub.DocumentPage) (list []hub.Document, next string, err error)
	EditDocuments(ctx context.Context, edits []hub.DocumentEdit, notes ...hub.AuditNote) (version uint64, err error)
}

// Kinds of documents.
const (
	kindKey   = "access-key"   // by id
	kindName  = "keyed-name"   // each name that a key was ever made for
	kindState = "access-state" // claimedDoc, importedDoc
)

const (
	claimedDoc  = "claimed"  // a first key was made
	importedDoc = "imported" // the keys of the file are in the store
)

// storeTimeout bounds a change of the keys. The caller may have disconnected
// by then: the change is completed anyway.
const storeTimeout = 30 * time.Second

// importBatch is how many keys and names are imported with one edit.
const importBatch = 60

// Load reads the keys of a store and keeps them there from now on. If the store
// has had none, those of the file in a data folder are imported, and the file is
// renamed; an empty folder name imports nothing.
func (k *Keys) Load(ctx context.Context, store Store, dir string) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	state, err := documents(ctx, store, kindState)
	if err != nil {
		return err
	}
	if dir != "" {
		if _, done := state[importedDoc]; !done {
			if err := importFile(ctx, store, dir); err != nil {
				return err
			}
		}
		if err := retireFile(dir); err != nil {
			return err
		}
	}
	keys, err := documents(ctx, store, kindKey)
	if err != nil {
		return err
	}
	names, err := documents(ctx, store, kindName)
	if err != nil {
		return err
	}
	if state, err = documents(ctx, store, kindState); err != nil {
		return err
	}
	k.store = store
	if _, claimed := state[claimedDoc]; !claimed {
		return nil
	}
	list := make([]stored, 0, len(keys))
	for id, data := range keys {
		var entry stored
		if err := json.Unmarshal(data, &entry); err != nil {
			return fmt.Errorf("access keys: key %s cannot be read: %w", id, err)
		}
		list = append(list, entry)
	}
	slices.SortFunc(list, func(a, b stored) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID)) })
	agents := make(map[string]bool, len(names))
	for name := range names {
		agents[name] = true
	}
	k.adopt(list, agents)
	return nil
}

// documents reads all documents of a kind.
func documents(ctx context.Context, store Store, kind string) (map[string][]byte, error) {
	all := map[string][]byte{}
	for after := ""; ; {
		list, next, err := store.Documents(ctx, kind, hub.DocumentPage{After: after, Limit: 1000})
		if err != nil {
			return nil, fmt.Errorf("access keys: %w", err)
		}
		for _, d := range list {
			all[d.Name] = d.Data
		}
		if after = next; next == "" {
			return all, nil
		}
	}
}

// importFile puts the keys of a file into the store, and then records that it
// did. If it is interrupted, the next call repeats it.
func importFile(ctx context.Context, store Store, dir string) error {
	doc, ok, err := readFile(dir)
	if err != nil {
		return err
	}
	var edits []hub.DocumentEdit
	var fields map[string]any
	if ok {
		names := map[string]bool{}
		for _, name := range doc.Agents {
			names[name] = true
		}
		for i, entry := range doc.Keys {
			entry.Order = i + 1
			edits = append(edits, documentOf(kindKey, entry.ID, entry))
			if entry.Role == Agent {
				names[entry.Agent] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			edits = append(edits, documentOf(kindName, name, struct{}{}))
		}
		edits = append(edits, documentOf(kindState, claimedDoc, struct{}{}))
		fields = map[string]any{"file": KeysFile, "keys": len(doc.Keys)}
	}
	for len(edits) > importBatch {
		if _, err := store.EditDocuments(ctx, edits[:importBatch]); err != nil {
			return fmt.Errorf("access keys: %s is not imported: %w", KeysFile, err)
		}
		edits = edits[importBatch:]
	}
	edits = append(edits, documentOf(kindState, importedDoc, struct{}{}))
	var notes []hub.AuditNote
	if ok {
		notes = []hub.AuditNote{{Kind: "keys_imported", Fields: fields}}
	}
	if _, err := store.EditDocuments(ctx, edits, notes...); err != nil {
		return fmt.Errorf("access keys: %s is not imported: %w", KeysFile, err)
	}
	return nil
}

// documentOf writes a document.
func documentOf(kind, name string, value any) hub.DocumentEdit {
	data, err := json.Marshal(value)
	if err != nil {
		panic("access: " + err.Error()) // text and numbers always encode
	}
	return hub.DocumentEdit{Kind: kind, Name: name, Data: data}
}

// storeKey makes a key durable, together with the facts that its name has a
// key and that there was a first key.
func (k *Keys) storeKey(ctx context.Context, entry stored, by *hub.Caller) error {
	none := uint64(0)
	put := documentOf(kindKey, entry.ID, entry)
	put.Expect = &none
	edits := []hub.DocumentEdit{put}
	if entry.Role == Agent && !k.agents[entry.Agent] {
		edits = append(edits, documentOf(kindName, entry.Agent, struct{}{}))
	}
	if !k.claimed {
		edits = append(edits, documentOf(kindState, claimedDoc, struct{}{}))
	}
	return k.edit(ctx, edits, noteOf("key_added", entry.Key, by))
}

func (k *Keys) removeKey(ctx context.Context, key Key, by *hub.Caller) error {
	err := k.edit(ctx, []hub.DocumentEdit{{Kind: kindKey, Name: key.ID, Remove: true}}, noteOf("key_revoked", key, by))
	if fault.CodeOf(err) == fault.NotFound {
		return nil // an earlier revocation whose answer was lost
	}
	return err
}

func noteOf(kind string, key Key, by *hub.Caller) hub.AuditNote {
	f := map[string]any{"key": key.ID, "role": key.Role.String()}
	if key.Agent != "" {
		f["agent"] = key.Agent
	}
	return hub.AuditNote{Kind: kind, Fields: f, By: by}
}

func (k *Keys) edit(ctx context.Context, edits []hub.DocumentEdit, note hub.AuditNote) error {
	if k.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	_, err := k.store.EditDocuments(ctx, edits, note)
	return err
}
