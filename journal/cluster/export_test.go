package cluster

// Abandon ends what is being published, as the end of the process would.
func (e *Engine) Abandon() { e.abandon() }

// Reached tells how far a shard's log was applied.
func (e *Engine) Reached(shard int) uint64 { return e.shards[shard].seen.Load() }

// Trouble tells why a shard's log is not followed.
func (e *Engine) Trouble(shard int) error { return e.shards[shard].troubled() }
