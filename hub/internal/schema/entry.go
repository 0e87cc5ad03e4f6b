package schema

import "strings"

// Index keys of adapters' own entries. Each ends in the entry's key, a zero byte
// and the channel that put it, so that entries of several channels under one key
// differ.
const (
	IndexEntries    = "adapter/"      // + type / home / key
	IndexAllEntries = "adapter-kind/" // + type / kind of home / key: of all homes
)

// EntryKey is the index key of an adapter's own entry, in its home.
func EntryKey(kind, channelID, key string) []byte {
	home, own := Split(channelID)
	return Key(IndexEntries, kind, home, key+"\x00"+own)
}

// EntryPrefix is what the keys of a home's entries of a type begin with; an empty
// home is that of channels without one.
func EntryPrefix(kind, home string) []byte { return Key(IndexEntries, kind, home, "") }

// AllEntriesKey is the index key of an adapter's own entry among those of all homes
// of a kind.
func AllEntriesKey(kind, homeKind, channelID, key string) []byte {
	return Key(IndexAllEntries, kind, homeKind, key+"\x00"+channelID)
}

// AllEntriesPrefix is what the keys of the entries of all homes of a kind begin
// with.
func AllEntriesPrefix(kind, homeKind string) []byte { return Key(IndexAllEntries, kind, homeKind, "") }

// CutEntry takes what follows the prefix of an entry's index key apart: the
// entry's key and the channel, without its home where the prefix names it.
func CutEntry(rest string) (key, channel string) {
	key, channel, _ = strings.Cut(rest, "\x00")
	return key, channel
}
