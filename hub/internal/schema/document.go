package schema

import "github.com/parley-hub/parley/journal"

// DocumentPrefix begins the names of a kind's documents. Documents are values,
// not logs: a budget that is written at every turn must not grow for ever.
func DocumentPrefix(kind string) string { return "document/" + kind + "/" }

// Document is the value of a document.
func (t Tenant) Document(kind, name string) journal.ValueKey {
	return journal.ValueKey{Partition: t.Directory(), Name: DocumentPrefix(kind) + name}
}

// DocumentCount is the value that counts a kind's documents. It is written with
// each document that is added or removed, so that nobody lists them to count.
func (t Tenant) DocumentCount(kind string) journal.ValueKey {
	return journal.ValueKey{Partition: t.Directory(), Name: "documents/" + kind}
}
