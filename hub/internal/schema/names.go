// Package schema is the layout of a hub's data in the journal: the names of
// partitions and logs, the keys of indexes and claims, and the encoding of each
// record. It reads and writes nothing.
package schema

import (
	"strings"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/journal"
)

// Tenant names the partitions of one tenant.
type Tenant string

// Families of logs.
const (
	FamilyAgent   = "agent"   // in the directory, one log for each identity
	FamilyMeta    = "meta"    // a channel's metadata: the creation, then changes
	FamilyHistory = "history" // a channel's envelopes
	FamilySide    = "side"    // requests and bookkeeping that are not history
	FamilyTask    = "task"    // one log for each task
	FamilyPlace   = "place"   // in a task's own partition: where its log is
	FamilyAudit   = "audit"
	FamilyHome    = "home"    // in the directory, one log for each home
	FamilyContent = "content" // in a home, one log for each content
)

// only is the id of a family's log in a partition that has just one.
const only = "-"

// Prefixes of partitions.
const (
	channelPrefix = "channel/"
	homePrefix    = "home/"
	taskPrefix    = "task/"
)

// Directory returns the partition of identities and of everything that belongs to
// no channel.
func (t Tenant) Directory() journal.PartitionName {
	return journal.PartitionName{Tenant: string(t), Partition: "directory"}
}

// Owner returns the partition of an owner's tasks that belong to no channel.
func (t Tenant) Owner(owner string) journal.PartitionName {
	return journal.PartitionName{Tenant: string(t), Partition: "agent/" + Digest(owner)}
}

// Agent returns the log of an identity.
func (t Tenant) Agent(id string) journal.LogName { return t.Directory().In(FamilyAgent, id) }

// Audit returns the audit log of events that concern no channel and no owner.
func (t Tenant) Audit() journal.LogName { return AuditIn(t.Directory()) }

// AuditIn returns the audit log of a partition.
func AuditIn(p journal.PartitionName) journal.LogName { return p.In(FamilyAudit, only) }

// TaskIn returns the log of a task in a partition.
func TaskIn(p journal.PartitionName, id string) journal.LogName { return p.In(FamilyTask, id) }

// TaskPlace returns the log that holds the claim of a task's id and says where the
// task is.
func (t Tenant) TaskPlace(id string) journal.LogName { return t.taskPlace(Digest(id)) }

func (t Tenant) taskPlace(digest string) journal.LogName {
	return journal.PartitionName{Tenant: string(t), Partition: taskPrefix + digest}.In(FamilyPlace, only)
}

// PlaceOfTask returns the log that says where a task is, by the task's own log.
func (t Tenant) PlaceOfTask(log journal.LogName) journal.LogName {
	if _, digest, ok := strings.Cut(log.ID, "/"); ok && strings.HasPrefix(log.Partition, homePrefix) {
		return t.taskPlace(digest)
	}
	return t.TaskPlace(log.ID)
}

// MinterFloor returns the key of the value below which no id is minted.
func (t Tenant) MinterFloor() journal.ValueKey {
	return journal.ValueKey{Partition: t.Directory(), Name: "minter/floor"}
}

// Layout returns the key of the data's layout version.
func (t Tenant) Layout() journal.ValueKey {
	return journal.ValueKey{Partition: t.Directory(), Name: "layout/version"}
}

// LayoutNext returns the key of the last index key that an upgrade has processed.
func (t Tenant) LayoutNext() journal.ValueKey {
	return journal.ValueKey{Partition: t.Directory(), Name: "layout/next"}
}

// Checkpoint returns the key of a task's checkpoint.
func (t Tenant) Checkpoint(taskID string) journal.ValueKey {
	return journal.ValueKey{Partition: t.Directory(), Name: "checkpoint/" + Digest(taskID)}
}

// Home returns the partition of a home. It holds all channels of the home, so that
// a batch may write to several of them.
func (t Tenant) Home(id string) journal.PartitionName {
	return journal.PartitionName{Tenant: string(t), Partition: homePrefix + id}
}

// HomeLog returns the log that describes a home.
func (t Tenant) HomeLog(id string) journal.LogName { return t.Directory().In(FamilyHome, id) }

// InHome returns the id of a channel in a home.
func InHome(home, own string) string { return home + "." + own }

// Split splits a channel's id into its home, empty if it has none, and its own
// part, which increases with time.
func Split(id string) (home, own string) {
	if len(id) == 2*envelope.IDLength+1 && id[envelope.IDLength] == '.' {
		return id[:envelope.IDLength], id[envelope.IDLength+1:]
	}
	return "", id
}

// ChannelLogs names the logs and values of one channel. Tenant.Channel is the only
// function that decides where a channel is stored.
type ChannelLogs struct {
	tenant Tenant
	name   string // the channel's id after the prefix of its partition
}

// Channel returns the names of a channel's logs. A channel without a home has a
// partition of its own; either way an envelope and everything that it causes are
// one batch.
func (t Tenant) Channel(id string) ChannelLogs {
	if home, _ := Split(id); home != "" {
		return ChannelLogs{t, homePrefix + id}
	}
	return ChannelLogs{t, channelPrefix + id}
}

func (l ChannelLogs) inHome() bool { return strings.HasPrefix(l.name, homePrefix) }

// Partition returns the partition in which the channel is stored.
func (l ChannelLogs) Partition() journal.PartitionName {
	name := l.name
	if l.inHome() {
		name = name[:len(homePrefix)+envelope.IDLength]
	}
	return journal.PartitionName{Tenant: string(l.tenant), Partition: name}
}

// Channel returns the channel's id. It shares its memory with the names.
func (l ChannelLogs) Channel() string {
	if l.inHome() {
		return l.name[len(homePrefix):]
	}
	return l.name[len(channelPrefix):]
}

// log returns the id of the channel's log in each family.
func (l ChannelLogs) log() string {
	if l.inHome() {
		return l.name[len(homePrefix)+envelope.IDLength+1:]
	}
	return only
}

// History returns the log of the channel's envelopes.
func (l ChannelLogs) History() journal.LogName { return l.Partition().In(FamilyHistory, l.log()) }

// Meta returns the log of the channel's metadata.
func (l ChannelLogs) Meta() journal.LogName { return l.Partition().In(FamilyMeta, l.log()) }

// Side returns the log of the hub's bookkeeping and of the adapter's side envelopes.
func (l ChannelLogs) Side() journal.LogName { return l.Partition().In(FamilySide, l.log()) }

// Audit returns the log of the channel's audit records.
func (l ChannelLogs) Audit() journal.LogName { return AuditIn(l.Partition()) }

// Task returns the log of one of the channel's tasks. In a home its id begins with
// the channel, to distinguish the tasks of one channel from those of others.
func (l ChannelLogs) Task(id string) journal.LogName {
	if l.log() != only {
		id = l.log() + "/" + Digest(id)
	}
	return TaskIn(l.Partition(), id)
}

// Cursor returns the key of the cursor of a participant's reader. The name for the
// unnamed reader is a prefix of the other names.
func (l ChannelLogs) Cursor(agent, reader string) journal.ValueKey {
	name := "cursor/" + agent
	if l.log() != only {
		name = "cursor/" + l.log() + "/" + agent
	}
	if reader != "" {
		name += "/" + reader
	}
	return journal.ValueKey{Partition: l.Partition(), Name: name}
}

// CursorsOf returns the prefix of the names of a channel's cursors.
func (l ChannelLogs) CursorsOf() string {
	if l.log() != only {
		return "cursor/" + l.log() + "/"
	}
	return "cursor/"
}

// TasksAfter returns a name that sorts before the logs of the tasks of a home's
// channel; TaskOf reports whether a log is one of them.
func (l ChannelLogs) TasksAfter() journal.LogName {
	return TaskIn(l.Partition(), l.log()+"/"+strings.Repeat("!", digestLength))
}

// TaskOf reports whether a log belongs to one of the channel's tasks.
func (l ChannelLogs) TaskOf(log journal.LogName) bool {
	return log.Of() == l.Partition() && log.Family == FamilyTask && strings.HasPrefix(log.ID, l.log()+"/")
}

// ChannelOf returns the channel that a log belongs to, if it belongs to one. A
// home's audit belongs to none.
func ChannelOf(log journal.LogName) (id string, ok bool) {
	if home, ok := strings.CutPrefix(log.Partition, homePrefix); ok {
		switch log.Family {
		case FamilyHistory, FamilyMeta, FamilySide:
			return InHome(home, log.ID), true
		case FamilyTask:
			own, _, ok := strings.Cut(log.ID, "/")
			return InHome(home, own), ok
		}
		return "", false
	}
	id, ok = strings.CutPrefix(log.Partition, channelPrefix)
	return id, ok && id != ""
}
