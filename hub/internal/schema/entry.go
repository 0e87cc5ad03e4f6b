package schema

import "strings"

// Index keys of adapters' own entries. Each ends in the entry's key, a zero byte
// and the channel that put it, so that entries of several channels under one key
// differ.
const (
	IndexEntries    = "adapter/"      // + type / home / key
	IndexAllEntries = "adapter-kind/" // + type / kind of home / key: of all homes
)

// EntryKey returns the index key of an adapter's own entry, in its home.
func EntryKey(kind, channelID, key string) []byte {
	home, own := Split(channelID)
	return Key(IndexEntries, kind, home, key+"\x00"+own)
}

// EntryPrefix returns the prefix of the keys of a home's entries of a type; an
// empty home selects channels without a home.
func EntryPrefix(kind, home string) []byte { return Key(IndexEntries, kind, home, "") }

// AllEntriesKey returns the index key of an adapter's own entry among those of all
// homes of a kind.
func AllEntriesKey(kind, homeKind, channelID, key string) []byte {
	return Key(IndexAllEntries, kind, homeKind, key+"\x00"+channelID)
}

// AllEntriesPrefix returns the prefix of the keys of the entries of all homes of a
// kind.
func AllEntriesPrefix(kind, homeKind string) []byte { return Key(IndexAllEntries, kind, homeKind, "") }

// CutEntry splits what follows the prefix of an entry's index key into the entry's
// key and the channel. The channel is without its home if the prefix names the
// home.
func CutEntry(rest string) (key, channel string) {
	key, channel, _ = strings.Cut(rest, "\x00")
	return key, channel
}
