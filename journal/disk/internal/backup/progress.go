package backup

// Progress is told how far a long task is. Total is 0 while it is not known.
type Progress func(what string, done, total int64)

func (p Progress) Tell(what string, done, total int64) {
	if p != nil {
		p(what, done, total)
	}
}
