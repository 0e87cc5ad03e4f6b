package work

import "cmp"

// What the keys of entries begin with; see the table at the top of index.go.

// ActivityPrefix is of the rows of a channel's conversations, newest first.
func ActivityPrefix(channel string) string { return prefixActivity + channel + "/" }

// ActivityKey is of a conversation's row, given the value of its NameKey.
func ActivityKey(channel, newest, id string) string {
	return ActivityPrefix(channel) + newest + "/" + id
}

// NameKey leads to when a conversation was last active.
func NameKey(channel, id string) string { return prefixName + channel + "/" + id }

// MessagePrefix is of a conversation's messages by time and id.
func MessagePrefix(channel, id string) string { return prefixMessage + channel + "/" + id + "/" }

// IDPrefix is of where the messages of an id are, of whichever sender.
func IDPrefix(id string) string { return prefixID + inKey(id) + between }

// IDKey is of where the message of a sender is.
func IDKey(id, from string) string { return IDPrefix(id) + inKey(from) }

// WorkKey is of a piece of work's row.
func WorkKey(id string) string { return prefixWork + id }

// SpeakerPrefix is of who has spoken in a channel's threads.
func SpeakerPrefix(channel string) string { return prefixSpeaker + channel + "/" }

// RoomsPrefix is of the direct rooms of a peer, newest first; what follows is
// as in ActivityPrefix.
func RoomsPrefix(channel, peer string) string { return prefixPeer + channel + "/" + peer + "/" }

// ToldPrefix is of what a peer of a channel is told alone; an empty peer
// selects what all are told.
func ToldPrefix(channel, peer string) string {
	peer = cmp.Or(peer, everyone)
	return prefixTold + channel + "/" + inKey(peer) + "/"
}
