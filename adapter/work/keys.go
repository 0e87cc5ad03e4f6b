package work

import "cmp"

// Keys and prefixes of entries; see the table at the top of index.go.

// ActivityPrefix selects the rows of a channel's conversations, newest first.
func ActivityPrefix(channel string) string { return prefixActivity + channel + "/" }

// ActivityKey is the key of a conversation's row, given the value at its NameKey.
func ActivityKey(channel, newest, id string) string {
	return ActivityPrefix(channel) + newest + "/" + id
}

// NameKey is the key of when a conversation was last active.
func NameKey(channel, id string) string { return prefixName + channel + "/" + id }

// MessagePrefix selects a conversation's messages by time and id.
func MessagePrefix(channel, id string) string { return prefixMessage + channel + "/" + id + "/" }

// IDPrefix selects the places of messages with an id, of all senders.
func IDPrefix(id string) string { return prefixID + inKey(id) + between }

// IDKey is the key of the place of a sender's message.
func IDKey(id, from string) string { return IDPrefix(id) + inKey(from) }

// WorkKey is the key of a piece of work's row.
func WorkKey(id string) string { return prefixWork + id }

// SpeakerPrefix selects the speakers in a channel's threads.
func SpeakerPrefix(channel string) string { return prefixSpeaker + channel + "/" }

// RoomsPrefix selects the direct rooms of a peer, newest first; the rest of a key is as
// with ActivityPrefix.
func RoomsPrefix(channel, peer string) string { return prefixPeer + channel + "/" + peer + "/" }

// ToldPrefix selects the messages that are delivered to one peer of a channel; an empty
// peer selects those to all.
func ToldPrefix(channel, peer string) string {
	peer = cmp.Or(peer, everyone)
	return prefixTold + channel + "/" + inKey(peer) + "/"
}
