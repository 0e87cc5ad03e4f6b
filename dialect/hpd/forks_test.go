package hpd_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
)

// family returns a session with one answered input on main.
func family(t *spec.T, config hpd.Config) (r *rig, s, user string) {
	config.Producers = map[string]hpd.Producer{"echo": hpd.Echo{}}
	r = newRig(t, config)
	s = r.session()
	r.run("echo", s, "main", "first words")
	user = only(r.history(s, "main"), "MESSAGE_STARTED")[0]["messageId"].(string)
	return r, s, user
}

func (r *rig) fork(s, from, id, message string) answer {
	return r.do("POST", "/agents/x/sessions/"+s+"/branches/"+from+"/fork", object{"newBranchId": id, "fromMessageId": message})
}

func (r *rig) branch(s, id string) object {
	return r.do("GET", "/sessions/"+s+"/branches/"+id, nil).object()
}

func TestForks(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#64 hpd-events#65: messages up to and including the named one, with their ids", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{})
		run := only(r.history(s, "main"), "BRANCH_RUN_STARTED")[0]["runtimeRunId"].(string)
		a := r.fork(s, "main", "f", "m-"+run)
		t.Equal(a.status, 201)
		t.Equal(a.header.Get("Location"), "/hpd/sessions/"+s+"/branches/f")
		t.Equal(a.object()["messageCount"], any(2.0))
		started := only(r.history(s, "f"), "MESSAGE_STARTED")
		t.Equal(started[0]["messageId"], any(user))
		t.Equal(started[1]["messageId"], any("m-"+run))
		r.fork(s, "main", "g", user)
		t.Equal(len(only(r.history(s, "g"), "MESSAGE_STARTED")), 1)
	})
	spec.Check(t, "hpd-events#66 hpd-events#67: fresh event ids and numbers; run and turn events are not copied", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{})
		r.fork(s, "main", "f", user)
		old := map[any]bool{}
		for _, e := range r.history(s, "main") {
			old[e["eventId"]] = true
		}
		h := r.history(s, "f")
		for i, e := range h {
			t.False(old[e["eventId"]], "event %d has an id of its own", i)
			t.Equal(e["sequenceNumber"], any(float64(i+1)))
		}
		t.Equal(types(h), []string{
			"BRANCH_FORKED", "BRANCH_METADATA_UPDATED", "BRANCH_TREE_UPDATED",
			"MESSAGE_STARTED", "TEXT_MESSAGE_START", "TEXT_DELTA", "TEXT_MESSAGE_END", "MESSAGE_COMPLETED",
		})
	})
	spec.Check(t, "hpd-events#68: an unknown message is ForkMessageNotPresent; the rest is refused too", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{})
		a := r.fork(s, "main", "f", "m-99")
		t.Equal(a.status, 400)
		t.Equal(a.code(), "ForkMessageNotPresent")
		a = r.do("POST", "/agents/x/sessions/"+s+"/branches/main/fork", object{"newBranchId": "f"})
		t.Equal(a.status, 400)
		t.Equal(a.code(), "ForkBranchError")
		t.Equal(r.fork(s, "main", "main", user).status, 409)
		t.Equal(r.fork(s, "none", "f", user).status, 404)
		t.Equal(r.fork("none", "main", "f", user).status, 404)
		t.Equal(len(r.do("GET", "/sessions/"+s+"/branches", nil).list()), 1)
	})
	spec.Check(t, "hpd-events#69: ancestors by depth", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{})
		t.Equal(r.fork(s, "main", "f", user).object()["ancestors"], any(object{"0": "main"}))
		t.Equal(r.fork(s, "f", "ff", user).object()["ancestors"], any(object{"0": "main", "1": "f"}))
	})
	spec.Check(t, "hpd-events#70 hpd-events#71: the source is 0, forks count from 1, and all know how many", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{})
		r.fork(s, "main", "f", user)
		r.fork(s, "main", "g", user)
		for i, id := range []string{"main", "f", "g"} {
			t.Equal(r.branch(s, id)["siblingIndex"], any(float64(i)))
			t.Equal(r.branch(s, id)["totalSiblings"], any(3.0))
		}
	})
	spec.Check(t, "hpd-events#72 hpd-events#74: pointers, children and totals agree", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{})
		r.fork(s, "main", "f", user)
		r.fork(s, "main", "g", user)
		t.Equal(r.branch(s, "main")["nextSiblingId"], any("f"))
		t.Equal(r.branch(s, "f")["previousSiblingId"], any("main"))
		t.Equal(r.branch(s, "f")["nextSiblingId"], any("g"))
		t.Equal(r.branch(s, "g")["previousSiblingId"], any("f"))
		t.Equal(r.branch(s, "main")["childBranches"], any([]any{"f", "g"}))
		t.Equal(r.branch(s, "main")["totalForks"], any(2.0))
	})
	spec.Check(t, "hpd-events#73: every branch whose place changed is told", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{})
		r.fork(s, "main", "f", user)
		r.fork(s, "main", "g", user)
		for id, n := range map[string]int{"main": 3, "f": 2, "g": 1} {
			told := only(r.history(s, id), "BRANCH_TREE_UPDATED")
			t.Equal(len(told), n)
			t.Equal(told[n-1]["totalSiblings"], any(3.0))
		}
	})
	spec.Check(t, "hpd-events#82: siblings are sorted and include the source", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{})
		r.fork(s, "main", "f", user)
		r.fork(s, "main", "g", user)
		for _, id := range []string{"main", "f", "g"} {
			var ids []any
			for _, b := range r.do("GET", "/sessions/"+s+"/branches/"+id+"/siblings", nil).list() {
				ids = append(ids, b["id"])
			}
			t.Equal(ids, []any{"main", "f", "g"})
		}
	})
	t.Run("a fork survives a restart and goes on", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r, s, user := family(c, hpd.Config{})
		r.fork(s, "main", "f", user)
		before := r.do("GET", "/sessions/"+s+"/branches", nil).raw
		r.restart()
		c.Equal(string(r.do("GET", "/sessions/"+s+"/branches", nil).raw), string(before))
		r.run("echo", s, "f", "on")
		c.Equal(r.branch(s, "f")["messageCount"], any(3.0))
	})
}

func TestDeletes(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#59 hpd-events#60: a deleted session is gone, its streams end well and its runs are cancelled", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g}})
		s := r.session()
		w := r.watch("/agents/g/sessions/"+s+"/branches/main/events/live", nil)
		r.input("g", s, "main", "x")
		run := <-g.started
		shown := make(chan struct{})
		var batches atomic.Int64
		r.armed.Store(func() { // the run's end is the first batch; the deletion waits until it was seen
			if batches.Add(1) > 1 {
				<-shown
			}
		})
		go func() {
			defer close(shown)
			seen := w.until("BRANCH_RUN_COMPLETED")
			t.Equal(seen[len(seen)-1]["cancelled"], any(true))
		}()
		t.Equal(r.do("DELETE", "/sessions/"+s, nil).status, 204)
		<-shown
		for range w.events {
		}
		t.NoError(w.err)
		t.True(run.Publish(t.Context()) != nil, "the run is over")
		for _, path := range []string{"", "/branches", "/branches/main", "/branches/main/events"} {
			t.Equal(r.do("GET", "/sessions/"+s+path, nil).status, 404)
		}
		t.Equal(r.do("DELETE", "/sessions/"+s, nil).status, 404)
		t.Equal(len(r.do("GET", "/sessions", nil).list()), 0)
		t.Equal(r.do("POST", "/sessions", object{"sessionId": s}).status, 201)
		t.Equal(len(r.history(s, "main")), 3)
	})
	spec.Check(t, "hpd-events#76 hpd-events#77: main is protected, and a branch with forks", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{})
		a := r.do("DELETE", "/sessions/"+s+"/branches/main", nil)
		t.Equal(a.status, 400)
		t.Equal(a.code(), "ProtectedBranch")
		t.Equal(r.do("DELETE", "/sessions/none/threads/main", nil).code(), "ProtectedThread")
		r.fork(s, "main", "f", user)
		r.fork(s, "f", "ff", user)
		a = r.do("DELETE", "/sessions/"+s+"/branches/f", nil)
		t.Equal(a.status, 400)
		t.Equal(a.code(), "HasChildren")
		t.Equal(r.do("DELETE", "/sessions/"+s+"/branches/none", nil).status, 404)
	})
	spec.Check(t, "hpd-events#78: recursive deletion is off unless it is switched on", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{})
		r.fork(s, "main", "f", user)
		a := r.do("DELETE", "/sessions/"+s+"/branches/f?recursive=true", nil)
		t.Equal(a.status, 400)
		t.Equal(a.code(), "RecursiveDeleteDisabled")
	})
	spec.Check(t, "hpd-events#79 hpd-events#80: the subtree goes, the rest is indexed anew", func(t *spec.T) {
		r, s, user := family(t, hpd.Config{RecursiveDelete: true})
		for _, id := range []string{"f", "g", "h"} {
			r.fork(s, "main", id, user)
		}
		r.fork(s, "g", "gg", user)
		t.Equal(r.do("DELETE", "/sessions/"+s+"/branches/g?recursive=true", nil).status, 204)
		t.Equal(r.do("GET", "/sessions/"+s+"/branches/gg", nil).status, 404)
		t.Equal(len(r.do("GET", "/sessions/"+s+"/branches", nil).list()), 3)
		t.Equal(r.branch(s, "h")["siblingIndex"], any(2.0))
		t.Equal(r.branch(s, "h")["previousSiblingId"], any("f"))
		t.Equal(r.branch(s, "f")["nextSiblingId"], any("h"))
		t.Equal(r.branch(s, "main")["childBranches"], any([]any{"f", "h"}))
		told := only(r.history(s, "h"), "BRANCH_TREE_UPDATED")
		t.Equal(told[len(told)-1]["siblingIndex"], any(2.0))
	})
	spec.Check(t, "hpd-events#81: not while a run is active", func(t *spec.T) {
		g := newGate()
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"g": g}})
		s := r.session()
		r.do("POST", "/agents/x/sessions/"+s+"/branches", object{"branchId": "b"})
		r.input("g", s, "b", "x")
		<-g.started
		a := r.do("DELETE", "/sessions/"+s+"/branches/b", nil)
		t.Equal(a.status, 409)
		t.False(slices.Contains([]string{"BranchRunActive"}, a.code()), "it is no run state")
	})
}

func (r *rig) upload(path, field, name, data string) answer {
	r.t.Helper()
	var buf bytes.Buffer
	form := multipart.NewWriter(&buf)
	if part, err := form.CreateFormFile(field, name); err == nil {
		_, _ = part.Write([]byte(data))
	}
	_ = form.Close()
	return r.send("POST", path, buf.String(), map[string]string{"Content-Type": form.FormDataContentType()})
}

func TestContent(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#135: upload, list, download, delete", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		s := r.session()
		for _, base := range []string{"/sessions/" + s + "/branches/main/content", "/sessions/" + s + "/content", "/sessions/" + s + "/threads/main/content"} {
			a := r.upload(base, "file", "notes.html", "<b>hello</b>")
			t.Equal(a.status, 201)
			id := a.object()["contentId"].(string)
			t.Equal(a.object()["sizeBytes"], any(12.0))
			t.Equal(a.object()["name"], any("notes.html"))
			t.Equal(a.object()["contentType"], any("application/octet-stream"))
			t.True(strings.HasSuffix(a.header.Get("Location"), "/content/"+id), "where it is")
			t.Equal(len(r.do("GET", base, nil).list()), 1)
			got := r.do("GET", base+"/"+id, nil)
			t.Equal(string(got.raw), "<b>hello</b>")
			t.Equal(got.header.Get("X-Content-Type-Options"), "nosniff")
			t.Contains(got.header.Get("Content-Disposition"), "attachment", "notes.html")
			t.Equal(r.do("DELETE", base+"/"+id, nil).status, 204)
			t.Equal(r.do("GET", base+"/"+id, nil).status, 404)
			t.Equal(r.do("DELETE", base+"/"+id, nil).status, 404)
			t.Equal(len(r.do("GET", base, nil).list()), 0)
		}
		t.Equal(r.upload("/sessions/none/branches/main/content", "file", "x", "y").status, http.StatusNotFound)
	})
	spec.Check(t, "hpd-events#136 hpd-events#137: no form, no file, an empty file", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		base := "/sessions/" + r.session() + "/branches/main/content"
		a := r.do("POST", base, "{}")
		t.Equal(a.status, 400)
		t.Equal(a.code(), "InvalidContentType")
		for _, a := range []answer{r.upload(base, "other", "x", "y"), r.upload(base, "file", "x", "")} {
			t.Equal(a.status, 400)
			t.Equal(a.code(), "NoFileProvided")
		}
	})
	t.Run("an upload that breaks off is refused and not stored", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, hpd.Config{})
		base := "/sessions/" + r.session() + "/content"
		cut := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nhalf"
		a := r.send("POST", base, cut, map[string]string{"Content-Type": "multipart/form-data; boundary=b"})
		if a.status != 400 || a.code() != "UploadContentError" || len(r.do("GET", base, nil).list()) != 0 {
			t.Errorf("%d %s", a.status, a.raw)
		}
	})
	spec.Check(t, "hpd-events#138: agent definitions", func(t *spec.T) {
		r := newRig(t, hpd.Config{})
		a := r.do("POST", "/agents", `{"name":"n","config":{"b":1,"a":null,"provider":{"providerKey":"k"}},"metadata":{"m":1}}`)
		t.Equal(a.status, 201)
		id := a.object()["id"].(string)
		t.Equal(a.header.Get("Location"), "/hpd/agents/"+id)
		t.Contains(string(r.do("GET", "/agents/"+id, nil).raw), `"config":{"b":1,"a":null,"provider":{"providerKey":"k"}}`)
		list := r.do("GET", "/agents", nil).list()
		t.Equal(len(list), 1)
		t.Equal(list[0]["config"], nil)
		t.Equal(r.do("PUT", "/agents/"+id, `{"config":{"c":2}}`).object()["config"], any(object{"c": 2.0}))
		t.Equal(r.do("POST", "/agents", `{"name":"n"}`).code(), "config")
		t.Equal(r.do("PUT", "/agents/"+id, `{"config":5}`).code(), "config")
		t.Equal(r.input(id, r.session(), "main", "x").code(), "NoProducer")
		t.Equal(r.do("DELETE", "/agents/"+id, nil).status, 204)
		for _, method := range []string{"GET", "DELETE"} {
			t.Equal(r.do(method, "/agents/"+id, nil).status, 404)
		}
		t.Equal(r.do("PUT", "/agents/"+id, `{"config":{}}`).status, 404)
	})
}
