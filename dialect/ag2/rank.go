package ag2

// Ranks besides those of what is urgent and what has time.
const (
	unranked = -1 // keeps its place
	ordinary = 1  // of envelope.Normal
)

// insert puts a frame behind all others. Only a delivery goes before others,
// and only before deliveries of lower rank.
func (q *outbound) insert(i item) {
	q.show(&i)
	q.bytes += i.size()
	if i.tail != nil {
		i.rank = q.rankOf(&i)
		q.ranked += special(&i)
	}
	if q.items == nil {
		q.items = emptyList()
	}
	q.items = append(q.items, i)
	last := len(q.items) - 1
	at := last
	for at > q.head && i.overtakes(&q.items[at-1]) {
		q.items[at] = q.items[at-1]
		at--
	}
	if at != last {
		q.items[at] = i
	}
	if !q.writing {
		q.writing = q.start(q.write)
	}
}

// rankOf is a delivery's priority, lowered to that of the last one before it of
// the same reader and channel: whoever acknowledges one of a channel
// acknowledges all before it, so none may overtake another.
func (q *outbound) rankOf(i *item) int {
	if i.rank == unranked || i.rank == ordinary && q.ranked == 0 {
		return i.rank
	}
	for at := len(q.items) - 1; at >= q.head; at-- {
		other := &q.items[at]
		if other.tail != nil && other.rank != unranked && other.channel == i.channel && string(other.tail) == string(i.tail) {
			return min(i.rank, other.rank)
		}
	}
	return i.rank
}

// special counts deliveries that are neither ordinary nor fixed.
func special(i *item) int {
	if i.tail == nil || i.rank == ordinary || i.rank == unranked {
		return 0
	}
	return 1
}

func (i *item) overtakes(other *item) bool {
	return i.tail != nil && other.tail != nil && other.rank != unranked && other.rank < i.rank
}
