package journal

// State is whether an engine admits appends.
type State uint8

// States of an engine. Ready and Full come and go; the others are final.
const (
	Ready  State = iota // appends are admitted
	Full                // too little room on the disk; reads work
	Broken              // the storage failed; reads may work
	Closed
)

// String names the state.
func (s State) String() string {
	switch s {
	case Ready:
		return "ready"
	case Full:
		return "full"
	case Broken:
		return "failed"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// Health is an engine's state, and the error that Append returns in it.
type Health struct {
	State State
	Err   error
}

// Stats count what an engine did since it was opened.
type Stats struct {
	Batches  uint64 // made durable
	Records  uint64
	Bytes    uint64 // as Batch.Size counts them
	Groups   uint64 // commits; each made one or more batches durable
	Syncs    uint64 // fsyncs that appends waited for
	Unsynced int64  // bytes ordered and not yet durable, now
	Removals int    // drops whose removal is still running, now
}
