package backup

// Progress is a function that receives the progress of a long task. Total is 0
// while it is not known.
type Progress func(what string, done, total int64)

func (p Progress) Tell(what string, done, total int64) {
	if p != nil {
		p(what, done, total)
	}
}
