package agh

import (
	"github.com/parley-hub/parley/dialect/agh/wire"
)

// rejects bounds how many rejections of one sender are audited in a second.
type rejects struct {
	second int64
	n      int
	more   int64
}

// reject counts an envelope that is not accepted, and audits it: a bounded number for
// each sender and second. The next record has the number of those left out.
func (s *Server) reject(a *auditOf, session string, why wire.Reason) {
	now := s.cfg.Now()
	s.rejecting.Lock()
	if s.rejected == nil || len(s.rejected) > mostBudgets {
		s.rejected = map[string]*rejects{}
	}
	r := s.rejected[a.from]
	if r == nil {
		r = &rejects{}
		s.rejected[clone(a.from)] = r
	}
	if r.second != now.Unix() {
		r.second, r.n = now.Unix(), 0
	}
	r.n++
	quiet := r.n > s.cfg.Limits.AuditRejects
	var more int64
	if quiet {
		r.more++
	} else {
		more, r.more = r.more, 0
	}
	s.rejecting.Unlock()
	if quiet {
		s.counts.count(a, rejected)
		s.measure(a, rejected, string(why))
		s.countRemote(a, rejected)
		return
	}
	if more > 0 {
		counted := *a
		counted.unaudited = more
		a = &counted
	}
	s.audit(a, rejected, session, string(why))
}
