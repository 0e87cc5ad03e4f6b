package journal

import "hash/fnv"

// Directory is the name of the partition that is always in shard 0.
const Directory = "directory"

// ShardOf is the shard of a partition in an engine with so many shards: the
// FNV-1a hash of the partition's name, 64 bits, modulo the number of shards. The
// tenant does not count. It is the same for every engine, and never changes.
func ShardOf(p PartitionName, shards int) int {
	if shards <= 1 || p.Partition == Directory {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Partition))
	return int(h.Sum64() % uint64(shards))
}
