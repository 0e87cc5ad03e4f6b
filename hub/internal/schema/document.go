package schema

import "github.com/parley-hub/parley/journal"

// DocumentPrefix begins the names of a kind's documents. Documents are values,
// not logs: a budget that is written at every turn must not grow for ever.
func DocumentPrefix(kind string) string { return "document/" + kind + "/" }

// Document returns the key of a document's value.
func (t Tenant) Document(kind, name string) journal.ValueKey {
	return journal.ValueKey{Partition: t.Directory(), Name: DocumentPrefix(kind) + name}
}

// DocumentCount returns the key of the value that counts a kind's documents. The
// value is written with each document that is added or removed, so that counting
// needs no list.
func (t Tenant) DocumentCount(kind string) journal.ValueKey {
	return journal.ValueKey{Partition: t.Directory(), Name: "documents/" + kind}
}
