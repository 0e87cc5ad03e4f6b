package hpd_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
)

// atEveryWrite runs do once for each batch that it writes, with a power loss
// before that batch, and then once without one. Check inspects what the next
// process shows.
func atEveryWrite(t *testing.T, prepare, do func(r *rig), check func(c *spec.T, r *rig, whole bool)) {
	t.Helper()
	for writes := int64(0); ; writes++ {
		r := newRig(t, hpd.Config{RecursiveDelete: true, Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
		prepare(r)
		var n atomic.Int64
		faults := r.engine.Faults()
		crashed := atomic.Bool{}
		r.armed.Store(func() {
			if n.Add(1) == writes+1 {
				crashed.Store(true)
				faults.Crash()
			}
		})
		do(r)
		r.armed.Store(func() {})
		whole := !crashed.Load()
		r.crash()
		check(&spec.T{T: t}, r, whole)
		if whole {
			t.Logf("%d writes", writes)
			return
		}
	}
}

// A session and a branch exist completely or not at all.
func TestCreationIsOneBatch(t *testing.T) {
	t.Parallel()
	first := []string{"BRANCH_CREATED", "BRANCH_METADATA_UPDATED", "BRANCH_TREE_UPDATED"}
	t.Run("a session", func(t *testing.T) {
		t.Parallel()
		atEveryWrite(t, func(*rig) {}, func(r *rig) {
			r.do("POST", "/sessions", object{"sessionId": "s", "metadata": object{"k": 1}})
		}, func(c *spec.T, r *rig, whole bool) {
			got := r.do("GET", "/sessions/s", nil)
			listed := r.do("GET", "/sessions", nil).list()
			if got.status == 404 {
				c.False(whole, "it was made")
				c.Equal(len(listed), 0)
				c.Equal(r.do("POST", "/sessions", object{"sessionId": "s"}).status, 201)
				return
			}
			c.Equal(got.object()["metadata"], any(object{"k": 1.0}))
			c.Equal(listed, []object{got.object()})
			c.Equal(types(r.history("s", "main")), first)
		})
	})
	t.Run("a branch", func(t *testing.T) {
		t.Parallel()
		atEveryWrite(t, func(r *rig) { r.do("POST", "/sessions", object{"sessionId": "s"}) }, func(r *rig) {
			r.do("POST", "/agents/a/sessions/s/branches", object{"branchId": "b", "description": "d"})
		}, func(c *spec.T, r *rig, whole bool) {
			got := r.do("GET", "/sessions/s/branches/b", nil)
			if got.status == 404 {
				c.False(whole, "it was made")
				return
			}
			c.Equal(got.object()["description"], any("d"))
			c.Equal(types(r.history("s", "b")), first)
		})
	})
}

// told returns the last tree fields in a branch's log, without the members of every
// event.
func told(r *rig, branch string) object {
	list := only(r.history("s", branch), "BRANCH_TREE_UPDATED")
	last := list[len(list)-1]
	for _, name := range []string{"version", "type", "eventId", "sessionId", "branchId", "kind", "sequenceNumber", "timestamp"} {
		delete(last, name)
	}
	return last
}

// checkTree compares the tree fields in the log of every branch with those that are
// shown.
func checkTree(c *spec.T, r *rig) {
	c.Helper()
	for _, b := range r.do("GET", "/sessions/s/branches", nil).list() {
		want := object{}
		for _, name := range []string{"forkedFrom", "forkedAtMessageId", "forkedAtMessageIndex", "siblingIndex", "totalSiblings", "isOriginal", "originalBranchId", "previousSiblingId", "nextSiblingId", "childBranches"} {
			if b[name] != nil {
				want[name] = b[name]
			}
		}
		c.Equal(told(r, b["id"].(string)), want)
	}
}

// Tree updates that a crash left out are written when the session is next
// used.
func TestTreeAfterACrash(t *testing.T) {
	t.Parallel()
	fork := func(r *rig, id string) answer {
		first := only(r.history("s", "main"), "MESSAGE_STARTED")[0]["messageId"]
		return r.do("POST", "/agents/a/sessions/s/branches/main/fork", object{"newBranchId": id, "fromMessageId": first})
	}
	prepare := func(r *rig) {
		r.do("POST", "/sessions", object{"sessionId": "s"})
		r.run("echo", "s", "main", "hi")
		fork(r, "b")
		fork(r, "c")
	}
	t.Run("a fork", func(t *testing.T) {
		t.Parallel()
		atEveryWrite(t, prepare, func(r *rig) { fork(r, "d") }, func(c *spec.T, r *rig, whole bool) {
			checkTree(c, r)
			if made := r.do("GET", "/sessions/s/branches/d", nil); made.status == 200 {
				c.Equal(made.object()["siblingIndex"], any(3.0))
				c.Equal(made.object()["messageCount"], any(1.0))
			} else {
				c.False(whole, "it was forked")
				c.Equal(fork(r, "d").status, 201)
				checkTree(c, r)
			}
		})
	})
	t.Run("a deletion", func(t *testing.T) {
		t.Parallel()
		atEveryWrite(t, prepare, func(r *rig) { r.do("DELETE", "/sessions/s/branches/b", nil) }, func(c *spec.T, r *rig, whole bool) {
			checkTree(c, r)
			gone := r.do("GET", "/sessions/s/branches/b", nil).status == 404
			c.True(gone || !whole, "it was deleted")
		})
	})
}

// An input is stored completely or not at all, and its run ends once.
func TestInputAfterACrash(t *testing.T) {
	t.Parallel()
	prepare := func(r *rig) { r.do("POST", "/sessions", object{"sessionId": "s"}) }
	var accepted bool
	atEveryWrite(t, prepare, func(r *rig) { accepted = r.input("echo", "s", "main", "hi there").status == 202 }, func(c *spec.T, r *rig, _ bool) {
		history := r.history("s", "main")
		names := types(history)
		if len(names) == 3 {
			c.False(accepted, "what was accepted is durable")
			return
		}
		c.Equal(names[3:10], []string{
			"BRANCH_RUN_STARTED", "MESSAGE_TURN_STARTED", "MESSAGE_STARTED", "TEXT_MESSAGE_START", "TEXT_DELTA", "TEXT_MESSAGE_END", "MESSAGE_COMPLETED",
		})
		c.Equal(strings.Count(strings.Join(names, " "), "BRANCH_RUN_COMPLETED"), 1)
		c.Equal(names[len(names)-1], "BRANCH_RUN_COMPLETED")
		c.Equal(string(r.do("GET", "/agents/echo/sessions/s/branches/main/runs/active", nil).raw), "null")
	})
}
