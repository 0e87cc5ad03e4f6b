// Package journal is the contract for many ordered, durable logs, and the
// types that its engines and callers share. It knows bytes, not what they mean:
// no engine ever reads a record's data, computes an index key or decides who
// may hold a claim.
//
// # Kinds of data
//
// Logs are the truth: records numbered 1, 2, 3, … without holes. Index entries
// and claims are derived from them: each record says which index keys it puts
// and removes and which claims it takes and releases, the engine applies that
// in the record's batch, and replaying all records in offset order gives the
// same set again (Engine.RebuildIndex). Values have no history: the last write
// wins. Durable values are written by batches; lazy ones by Engine.PutLazy.
// Snapshots are caches of what callers compute from logs; they are local to the
// engine and may be gone at any time.
//
// # Shards, partitions, offsets
//
// A log is named tenant/partition/family/id. A partition hashes to one shard
// (ShardOf, Engine.Shard). A batch touches one partition. Offsets count a shard's
// batches 1, 2, 3, …; each drop also takes an offset of its own. The index and
// the claims are one keyspace for each shard, so what several logs put there is
// found by one scan; ScanAll and IndexAll merge the scans of all shards. A name
// that must be unique in the whole store is a claim of the partition Directory,
// which is always in shard 0.
//
// # Two moments
//
// Engine.Append checks a batch against everything ordered before it and either
// refuses it, leaving no trace, or orders it: sequences and offset are final,
// and a Ticket tells how it ends. Readers and followers only ever see what is
// durable. After a ticket that failed or whose end is unknown, every later
// ticket of that shard is aborted and what is ordered falls back to what is
// durable; the shard's term goes up, so that callers can refuse to build on
// what was forgotten (Batch.Term).
//
// # What an engine promises besides
//
// Every method may be called by many goroutines at once, and after Close
// returns ErrClosed. Bytes passed in are not kept or changed after the call
// returned; bytes handed out belong to the caller. No lock that a reader or
// writer needs is held during an fsync. Every stored record carries a checksum
// that is verified when it is read.
package journal
