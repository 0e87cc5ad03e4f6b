package branch

// Channel is an event's lane: a hint for routing and rendering that says
// nothing about persistence.
type Channel uint8

// Channels. The zero value is unset: the type's own.
const (
	Synchronous Channel = iota + 1
	Streaming
	Interactive
	ControlChannel
)

var channelNames = []string{"", "Synchronous", "Streaming", "Interactive", "Control"}

func (c Channel) String() string { return nameOf(channelNames, int(c)) }

// Kind is what an event is about.
type Kind uint8

// Kinds. The zero value is unset: the type's own.
const (
	ContentKind Kind = iota + 1
	LifecycleKind
	ControlKind
	DiagnosticKind
)

var kindNames = []string{"", "Content", "Lifecycle", "Control", "Diagnostic"}

func (k Kind) String() string { return nameOf(kindNames, int(k)) }

// Direction is which way an event travels.
type Direction uint8

// Directions. The zero value is unset: the type's own.
const (
	Downstream Direction = iota + 1
	Upstream
)

var directionNames = []string{"", "Downstream", "Upstream"}

func (d Direction) String() string { return nameOf(directionNames, int(d)) }

// Source is who may send an event of a type.
type Source uint8

// Sources.
const (
	// Server makes it; from anyone else it is refused.
	Server Source = iota + 1
	// Client sends it as an input or as an answer.
	Client
	// Producer publishes it during its run.
	Producer
	// Asker is a producer's question: it is asked, not published, so that
	// somebody waits for the answer before the question is shown.
	Asker
)

var sourceNames = []string{"", "server", "client", "producer", "producer, as a request"}

func (s Source) String() string { return nameOf(sourceNames, int(s)) }

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}

// ParseChannel reads a channel by name.
func ParseChannel(name string) (Channel, bool) {
	i, ok := indexFold(channelNames, name)
	return Channel(i), ok
}

// ParseKind reads a kind by name.
func ParseKind(name string) (Kind, bool) {
	i, ok := indexFold(kindNames, name)
	return Kind(i), ok
}

// ParseDirection reads a direction by name.
func ParseDirection(name string) (Direction, bool) {
	i, ok := indexFold(directionNames, name)
	return Direction(i), ok
}
