package branch

import (
	"regexp"
	"strings"

	"github.com/parley-hub/parley/fault"
)

// Row says everything about one event type that does not depend on its payload.
type Row struct {
	Type        string
	Family      string
	Channel     Channel
	Kind        Kind
	Direction   Direction
	Persistence Persistence
	Source      Source
}

// Rows lists the built-in types in the order of the docs page.
func Rows() []Row { return append([]Row(nil), rows...) }

// Table is the built-in rows and those of registered custom types. It is
// changed while a process starts, and only read afterwards.
type Table struct {
	rows   map[string]Row
	custom []Row
	Policy Policy
}

// NewTable returns the built-in rows under the default policy.
func NewTable() *Table {
	t := &Table{rows: make(map[string]Row, len(rows))}
	for _, row := range rows {
		t.rows[row.Type] = row
	}
	return t
}

// customFamily is the family of every registered custom type.
const customFamily = "custom"

var typeName = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,127}$`)

// ValidType reports whether a name can be an event's type on the wire.
func ValidType(name string) bool { return typeName.MatchString(name) }

// Register adds a custom type that producers may publish. A name that is
// taken, by a built-in type, its thread name or another custom one, is refused.
func (t *Table) Register(name string, persist bool) error {
	if !ValidType(name) {
		return fault.New(fault.Invalid, "event type %q is not valid; it has 1 to 128 capital letters, digits and underscores, a letter first", name)
	}
	if _, taken := t.rows[Canonical(name)]; taken {
		return fault.New(fault.Conflict, "event type %s is registered already; choose another name", name)
	}
	row := Row{Type: name, Family: customFamily, Channel: Synchronous, Kind: ContentKind, Direction: Downstream, Persistence: Live, Source: Producer}
	if persist {
		row.Persistence = Durable
	}
	t.rows[name] = row
	t.custom = append(t.custom, row)
	return nil
}

// Lookup finds a type by its wire name.
func (t *Table) Lookup(name string) (Row, bool) {
	row, ok := t.rows[name]
	return row, ok
}

// Custom lists the registered custom types in the order of registration.
func (t *Table) Custom() []Row { return append([]Row(nil), t.custom...) }

// aliases are the other names of built-in types.
var aliases = map[string]string{
	"BIDIRECTIONAL_EVENT_PROCESSED": RequestEventProcessed,
	"HISTORY_REDUCTION_CACHE":       CompactionCache,
}

const (
	branchPrefix = "BRANCH_"
	threadPrefix = "THREAD_"
)

// Canonical returns the name under which a type is in the table: upper case,
// with the thread surface's names and older ones translated.
func Canonical(name string) string {
	name = strings.ToUpper(name)
	if other, ok := aliases[name]; ok {
		return other
	}
	if rest, ok := strings.CutPrefix(name, threadPrefix); ok && renamed[branchPrefix+rest] {
		return branchPrefix + rest
	}
	return name
}

// ThreadType returns a type's name on the thread surface.
func ThreadType(name string) string {
	if renamed[name] {
		return threadPrefix + strings.TrimPrefix(name, branchPrefix)
	}
	return name
}

// renamed are the types whose name differs on the thread surface.
var renamed = func() map[string]bool {
	found := map[string]bool{}
	for _, row := range rows {
		if strings.HasPrefix(row.Type, branchPrefix) {
			found[row.Type] = true
		}
	}
	return found
}()

// logPrefix is the prefix of the type of every envelope of a branch's log.
const logPrefix = "hpd."

// LogType returns the type of the envelope that holds an event.
func LogType(name string) string {
	if known, ok := logTypes[name]; ok {
		return known
	}
	return logPrefix + name
}

// logTypes are the log types of the built-in types, computed once.
var logTypes = func() map[string]string {
	found := make(map[string]string, len(rows))
	for _, row := range rows {
		found[row.Type] = logPrefix + row.Type
	}
	return found
}()

// WireType returns the name of the event that an envelope of this type holds;
// it returns false if it is not an event of this dialect.
func WireType(logType string) (string, bool) {
	name, ok := strings.CutPrefix(logType, logPrefix)
	return name, ok && name != ""
}
