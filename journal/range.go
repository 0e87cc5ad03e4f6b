package journal

// Range is the part of a log ending at last that the options choose, both ends
// inclusive; it is empty when from is above to. It is the engine's side of
// ReadOptions.
func (o ReadOptions) Range(last uint64) (from, to uint64) {
	from, to = max(o.From, 1), last
	if o.To != 0 {
		to = min(o.To, last)
	}
	return from, to
}

// Recreated is the gap that answers a read of an incarnation that is gone.
func Recreated(log LogName, opts ReadOptions, head Head) *GapError {
	gap := &GapError{
		Reason: LogDropped, Log: log,
		Want: Position{Epoch: head.Epoch, Incarnation: opts.Incarnation, Seq: max(opts.From, 1) - 1},
	}
	if head.Exists() {
		gap.Head = head.Position()
	}
	return gap
}
