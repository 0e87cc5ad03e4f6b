package cluster

import (
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/journal/disk"
)

// prepared is a message of a log with what can be found out about it before its turn:
// that takes as long as applying it, and is done while those before it are applied.
// Whether it is the next message, and fits, is decided in its turn.
type prepared struct {
	port.Message
	frame  frame.Message
	err    error // why it is none of ours
	before *frame.Chain
	chain  frame.Chain // that it has to have if it follows before
	group  *disk.Group // that was checked; nil: it was not
}

// prepare prepares messages that follow each other.
func (s *shard) prepare(messages []port.Message) []prepared {
	var before *frame.Chain
	all := make([]prepared, len(messages))
	for i, m := range messages {
		p := &all[i]
		p.Message = m
		if p.frame, p.err = frame.Decode(m.Data); p.err != nil {
			continue
		}
		if before != nil {
			p.before, p.chain = before, before.Next(p.frame.Kind, p.frame.Term, p.frame.Body)
		}
		before = &p.frame.Chain
		if p.frame.Kind == frame.Group {
			p.group = s.checked(p.frame.Body)
		}
	}
	return all
}

// checked is the group of a body; nil when it is none, which is found out again in its
// turn.
func (s *shard) checked(body []byte) *disk.Group {
	b, err := frame.DecodeGroup(body)
	if err != nil {
		return nil
	}
	g := groupOf(b)
	if s.store().Check(&g) != nil {
		return nil
	}
	return &g
}

func groupOf(b frame.GroupBody) disk.Group {
	return disk.Group{First: b.First, Count: b.Count, Hints: b.Hints, Batch: b.Batch}
}

// follows reports whether the message follows one with a chain.
func (p *prepared) follows(chain frame.Chain) bool {
	want := p.chain
	if p.before == nil || *p.before != chain {
		want = chain.Next(p.frame.Kind, p.frame.Term, p.frame.Body)
	}
	return p.frame.Chain == want
}
