package hub

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/parley-hub/parley/journal"
)

// Where things are in the journal. A channel has a partition of its own, so
// that an envelope and all that it causes are one batch.

const tenant = "main"

// directory is the partition of identities and of what belongs to no channel.
var directory = journal.PartitionName{Tenant: tenant, Partition: "directory"}

// Families of logs.
const (
	familyAgent   = "agent"   // in directory, one log for each identity
	familyMeta    = "meta"    // a channel's metadata: the creation, then changes
	familyHistory = "history" // a channel's envelopes
	familySide    = "side"    // requests and bookkeeping that are not history
	familyTask    = "task"    // one log for each task
	familyAudit   = "audit"
)

// only is the id of a family's log where there is just one.
const only = "-"

const minterFloor = "minter/floor"

const channelPrefix = "channel/"

func channelPartition(id string) journal.PartitionName {
	return journal.PartitionName{Tenant: tenant, Partition: channelPrefix + id}
}

// Index keys. Ids are minted in increasing order, so that a scan by id is a
// scan by age.
const (
	indexChannel = "channel/" // + channel: every channel
	indexMember  = "member/"  // + agent / channel: every channel it takes part in
	indexTurn    = "turn/"    // + agent / channel: the same, while it has not ended
	indexOwned   = "owned/"   // + creator / channel: what it opened, while it has not ended
	indexLabel   = "label/"   // + hash of key and value / channel
	indexCause   = "cause/"   // + channel / hash of sender and cause: sequence of the answer
	indexDue     = "due/"     // + kind / time / channel or task
	indexAudit   = "audit/"   // + id: the record
)

func key(prefix string, parts ...string) []byte {
	k := []byte(prefix)
	for i, part := range parts {
		if i > 0 {
			k = append(k, '/')
		}
		k = append(k, part...)
	}
	return k
}

// lastPart is what follows the last slash of an index key.
func lastPart(k []byte) string {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i] == '/' {
			return string(k[i+1:])
		}
	}
	return string(k)
}

// digest shortens what others chose freely to a part of fixed size.
func digest(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		sum.Write(size[:])
		sum.Write([]byte(part))
	}
	return hex.EncodeToString(sum.Sum(nil)[:20])
}

// Claims.

func claimName(name string) string { return "name/" + digest(name) }

func claimKey(channelID, sender, idempotencyKey string) string {
	return "key/" + digest(channelID, sender, idempotencyKey)
}

// Deadline kinds, each swept at its own pace.
const (
	dueInvite      = "invite"
	dueTTL         = "ttl"
	dueExpectation = "expectation"
	dueTask        = "task"
	dueAdapter     = "adapter"
)

func dueKey(kind string, at time.Time, id string) []byte {
	return key(indexDue, kind, fmt.Sprintf("%016x", max(at.UnixNano(), 0)), id)
}

func encodeUint(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func decodeUint(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}
