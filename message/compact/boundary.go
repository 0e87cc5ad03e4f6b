package compact

import (
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
)

// Boundary returns the index of the first message that compaction would keep.
// It reads only the messages that the decision needs, so an invalid one that is
// not needed is not refused.
func Boundary(messages any, policy Policy) (int, error) {
	list, ok := value.Values(value.Of(messages))
	if !ok {
		return 0, message.ErrNotContainer
	}
	return boundary(len(list), policy, func(i int) (message.Type, error) { return message.TypeOf(list[i]) })
}

func boundary(n int, policy Policy, typeAt func(int) (message.Type, error)) (int, error) {
	cut := n - int(min(int64(n), policy.RecentMessages))
	if !policy.PreserveToolBoundaries {
		return cut, nil
	}
	return safe(cut, n, typeAt)
}

// safe moves a cut backwards until no call is separated from its result: first
// over results, then over the calls they answer.
func safe(cut, n int, typeAt func(int) (message.Type, error)) (int, error) {
	for cut > 0 && cut < n {
		t, err := typeAt(cut)
		if err != nil {
			return 0, err
		}
		if t != message.TypeToolResult {
			break
		}
		cut--
	}
	for cut > 0 {
		t, err := typeAt(cut - 1)
		if err != nil {
			return 0, err
		}
		if t != message.TypeToolCall {
			break
		}
		cut--
	}
	return cut, nil
}

// typesOf reads the types of envelopes.
func typesOf(envelopes []message.Envelope) func(int) (message.Type, error) {
	return func(i int) (message.Type, error) { return envelopes[i].Type, nil }
}
