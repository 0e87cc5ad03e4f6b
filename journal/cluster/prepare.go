package cluster

import (
	"github.com/parley-hub/parley/journal/cluster/internal/frame"
	"github.com/parley-hub/parley/journal/cluster/port"
	"github.com/parley-hub/parley/journal/disk"
)

// prepared is a message of a log with everything that can be computed about it before
// its turn. Preparing takes as long as applying, and is done while earlier messages are
// applied. Whether the message is the next one, and fits, is decided in its turn.
type prepared struct {
	port.Message
	frame  frame.Message
	err    error // of decoding; the message is foreign
	before *frame.Chain
	chain  frame.Chain // the chain it must have if it follows before
	group  *disk.Group // checked; nil: not checked
}

// prepare prepares consecutive messages.
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

// checked returns the group of a body, or nil if it is invalid, which is found again in
// its turn.
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

// follows reports whether the message follows the one with the given chain.
func (p *prepared) follows(chain frame.Chain) bool {
	want := p.chain
	if p.before == nil || *p.before != chain {
		want = chain.Next(p.frame.Kind, p.frame.Term, p.frame.Body)
	}
	return p.frame.Chain == want
}
