package profile

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/parley-hub/parley/identity"
)

// brief is the part of a resume that a search needs, if it is small: 8 bytes for
// each capability, and a short summary.
type brief struct {
	capabilities []uint64 // hashes, sorted
	summary      string
	partial      bool // too many capabilities: the resume must be read
	long         bool // a long summary: the resume must be read
}

// maxBriefSummary bounds the summaries that are kept in memory.
const maxBriefSummary = 1 << 10

// briefSeed makes hashes that clients cannot compute.
var briefSeed = maphash.MakeSeed()

func newBrief(r *identity.Resume) brief {
	var b brief
	if b.long = len(r.Summary) > maxBriefSummary; !b.long {
		b.summary = strings.Clone(r.Summary)
	}
	if b.partial = len(r.ClaimedCapabilities)+len(r.Observed) > 2*identity.MaxCapabilities; b.partial {
		return b
	}
	all := r.Capabilities()
	b.capabilities = make([]uint64, len(all))
	for i, capability := range all {
		b.capabilities[i] = maphash.String(briefSeed, capability)
	}
	slices.Sort(b.capabilities)
	return b
}

// Decide answers a search if the brief suffices. Otherwise rest is the part of the
// search that needs the resume.
func (r *Record) Decide(q identity.Query) (match bool, rest *identity.Query) {
	if !(identity.Query{Kind: q.Kind}).Matches(r.Passport, &identity.Resume{}) {
		return false, nil
	}
	if q.Capability != "" && !r.brief.partial {
		if _, has := slices.BinarySearch(r.brief.capabilities, maphash.String(briefSeed, q.Capability)); !has {
			return false, nil
		}
		q.Capability = ""
	}
	if q.Text != "" && !r.brief.long {
		if !(identity.Query{Text: q.Text}).Matches(r.Passport, &identity.Resume{Summary: r.brief.summary}) {
			return false, nil
		}
		q.Text = ""
	}
	if q.Capability == "" && q.Text == "" {
		return true, nil
	}
	return false, &q
}
