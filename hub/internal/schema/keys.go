package schema

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/parley-hub/parley/journal"
)

// Index keys. Ids are minted in increasing order, so that a scan by id is a
// scan by age.
const (
	IndexChannel = "channel/" // + channel: every channel that has ended; older versions listed open ones too
	IndexMember  = "member/"  // + agent / channel: the same, for channels in which the agent took part
	IndexTurn    = "turn/"    // + agent / channel: channels in which the agent takes part and that have not ended
	IndexOwned   = "owned/"   // + creator / channel: channels that the creator opened and that have not ended
	IndexLabel   = "label/"   // + hash of key and value / channel
	IndexOpen    = "open/"    // + channel: every channel that has not ended
	IndexActive  = "active/"  // + minute / channel: the same, by the time of the last content
	IndexCause   = "cause/"   // + channel / hash of sender and cause: sequence of the answer
	IndexDue     = "due/"     // + kind / time / channel or task
	IndexAudit   = "audit/"   // + id: the record
)

// Index keys of tasks; each entry's value is the place of the task.
const (
	IndexTask        = "task/"         // + order: every task
	IndexTaskOwner   = "task-owner/"   // + hash of owner / order
	IndexTaskChannel = "task-channel/" // + hash of channel / order
	IndexTaskOpen    = "task-open/"    // + hash of owner / order: while it has not ended
)

// Key joins a prefix and its parts with slashes.
func Key(prefix string, parts ...string) []byte {
	size := len(prefix) + len(parts)
	for _, part := range parts {
		size += len(part)
	}
	k := append(make([]byte, 0, size), prefix...)
	for i, part := range parts {
		if i > 0 {
			k = append(k, '/')
		}
		k = append(k, part...)
	}
	return k
}

// LastPart returns the part after the last slash of an index key.
func LastPart(k []byte) string {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i] == '/' {
			return string(k[i+1:])
		}
	}
	return string(k)
}

// Digest hashes parts that clients choose to a key part of fixed size.
func Digest(parts ...string) string { return digested("", parts...) }

// digested returns a prefix followed by the digest. Every post with an idempotency
// key calls it several times, so it allocates only its result, unless the parts are
// long.
func digested(prefix string, parts ...string) string {
	var room [256]byte
	text := room[:0]
	for _, part := range parts {
		text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return string(hex.AppendEncode(append(text[:0], prefix...), sum[:digestLength/2]))
}

const digestLength = 40

// NameClaim returns the claim of an identity's name.
func NameClaim(name string) string { return "name/" + Digest(name) }

// IdempotencyClaim returns the claim of a post's idempotency key.
func IdempotencyClaim(channelID, sender, idempotencyKey string) string {
	return digested("key/", channelID, sender, idempotencyKey)
}

// HomeKeyClaim returns the claim of an idempotency key that is unique in a whole
// home.
func HomeKeyClaim(home, idempotencyKey string) string {
	return digested("key/", home, idempotencyKey)
}

// OriginClaim returns the claim of the id that something had in the dialect through
// which it was received, in a home or in a channel without one.
func OriginClaim(scope, dialect, id string) string { return digested("origin/", scope, dialect, id) }

// OpeningKeyClaim returns the claim of the idempotency key of an opening in a home.
func OpeningKeyClaim(home, kind, creator, idempotencyKey string) string {
	return digested("key/", "opening", home, kind, creator, idempotencyKey)
}

// ChannelNameClaim returns the claim of a channel's name among the channels of its
// type in a home.
func ChannelNameClaim(home, kind, name string) string {
	return digested("name/"+home+"/"+kind+"/", name)
}

// AdapterClaim returns the claim of a name by an adapter: in a channel's home, or
// in the channel if it has no home.
func AdapterClaim(channelID, name string) string {
	scope := channelID
	if home, _ := Split(channelID); home != "" {
		scope = home
	}
	return "adapter/" + scope + "/" + name
}

// TaskClaim returns the claim of a task's id; the claim leads to the task's log.
func TaskClaim(id string) string { return "task/" + Digest(id) }

// ObservedClaim returns the claim by which a task counts only once in its owner's
// track record.
func ObservedClaim(taskID string) string { return "observed/" + Digest(taskID) }

// Deadline kinds, each swept at its own pace.
const (
	DueInvite      = "invite"
	DueTTL         = "ttl"
	DueExpectation = "expectation"
	DueTask        = "task"
	DueAdapter     = "adapter"
	DueDrop        = "drop" // a channel of a home that is deleted, or a home
	DueSeed        = "seed" // a seed or a content that may have been abandoned
)

// DueKey returns the index key of a deadline.
func DueKey(kind string, at time.Time, id string) []byte {
	return Key(IndexDue, kind, hexTime(at), id)
}

// ActivePrecision is the precision of the last activity in the index, so that a
// busy channel does not write an entry for each envelope.
const ActivePrecision = time.Minute

// ActiveKey returns the index key of a channel by its last activity.
func ActiveKey(at time.Time, own string) []byte {
	return Key(IndexActive, hexTime(at), own)
}

// hexTime returns a time so that it sorts as text does; a time before 1970 is 1970.
func hexTime(at time.Time) string {
	const digits = "0123456789abcdef"
	var text [16]byte
	for i, ns := len(text)-1, max(at.UnixNano(), 0); i >= 0; i, ns = i-1, ns>>4 {
		text[i] = digits[ns&15]
	}
	return string(text[:])
}

// DueBy selects the deadlines of a kind that have come, oldest first.
func DueBy(kind string, now time.Time) journal.ScanOptions {
	return journal.ScanOptions{Prefix: Key(IndexDue, kind, ""), To: DueKey(kind, now.Add(1), "")}
}

// DeadlineKey returns the index key of a deadline that a channel's adapter set.
func DeadlineKey(at time.Time, name, channelID string) []byte {
	return DueKey(DueAdapter, at, Digest(name)+"/"+channelID)
}

// CauseKey returns the index key of an answer, by the envelope that it answers.
func CauseKey(channelID, sender, cause string) []byte {
	return Key(IndexCause, channelID, Digest(sender, cause))
}

// EncodeUint writes a number as a stored value.
func EncodeUint(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// DecodeUint reads what EncodeUint writes; anything else is 0.
func DecodeUint(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// ListScan selects the entries under a prefix that come after a given one, by the
// last part of their keys.
func ListScan(prefix []byte, after string, newest bool) journal.ScanOptions {
	scan := journal.ScanOptions{Prefix: prefix, Backward: newest}
	switch {
	case after == "":
	case newest:
		scan.To = append(append([]byte{}, prefix...), after...)
	default:
		scan.From = append(append(append([]byte{}, prefix...), after...), 0)
	}
	return scan
}
