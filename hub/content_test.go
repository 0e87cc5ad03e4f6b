package hub_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
)

const contentPiece = 512 << 10

// noise is n bytes that do not repeat.
func noise(n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	_, _ = source.Read(b)
	return b
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (r *rig) putContent(home hub.Home, data []byte) hub.ContentInfo {
	r.t.Helper()
	info, err := r.PutContent(ctx, home.ID, hub.ContentInfo{Name: "notes.bin", Type: "application/octet-stream", By: "alice"}, bytes.NewReader(data))
	if err != nil {
		r.t.Fatal(err)
	}
	return info
}

func (r *rig) readContent(home hub.Home, id string) (hub.ContentInfo, []byte) {
	r.t.Helper()
	info, from, err := r.Content(ctx, home.ID, id)
	if err != nil {
		r.t.Fatal(err)
	}
	data, err := io.ReadAll(from)
	if err = errors.Join(err, from.Close()); err != nil {
		r.t.Fatal(err)
	}
	return info, data
}

// contents lists a home's content in pages of two.
func (r *rig) contents(home hub.Home, newest bool) (ids []string) {
	r.t.Helper()
	for page := (hub.ContentPage{Limit: 2, Newest: newest}); ; {
		list, next, err := r.Contents(ctx, home.ID, page)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, info := range list {
			ids = append(ids, info.ID)
		}
		if page.After = next; next == "" {
			return ids
		}
	}
}

// logsOf counts the logs of a family in a partition.
func (r *rig) logsOf(partition, family string) int {
	r.t.Helper()
	page, err := r.stored.Logs(ctx, journal.PartitionName{Tenant: "main", Partition: partition}, journal.LogsOptions{Family: family})
	if err != nil {
		r.t.Fatal(err)
	}
	return len(page.Logs)
}

func TestContent(t *testing.T) {
	t.Parallel()
	stored(t, "is read whole and in ranges, before and after a restart", byHand, func(t *testing.T, r *rig) {
		home, other := r.home("hpd", "s"), r.home("hpd", "other")
		var ids []string
		sizes := []int{0, 1, contentPiece - 1, contentPiece, contentPiece + 1, 2*contentPiece + 7}
		for _, n := range sizes {
			info := r.putContent(home, noise(n))
			if info.Size != int64(n) || info.SHA256 != digest(noise(n)) || info.Name != "notes.bin" || info.Type != "application/octet-stream" || info.By != "alice" || info.CreatedAt.IsZero() {
				t.Errorf("%d bytes: %+v", n, info)
			}
			ids = append(ids, info.ID)
		}
		for range 2 {
			for i, n := range sizes {
				info, data := r.readContent(home, ids[i])
				if !bytes.Equal(data, noise(n)) || info.SHA256 != digest(data) {
					t.Errorf("%d bytes read as %d", n, len(data))
				}
			}
			_, from, err := r.Content(ctx, home.ID, ids[5])
			if err != nil {
				t.Fatal(err)
			}
			if err := iotest.TestReader(from, noise(sizes[5])); err != nil {
				t.Error(err)
			}
			for _, at := range []int{0, 5, contentPiece - 3, contentPiece, 2*contentPiece + 1} {
				if _, err := from.Seek(int64(at), io.SeekStart); err != nil {
					t.Fatal(err)
				}
				part := make([]byte, 6)
				if _, err := io.ReadFull(from, part); err != nil || !bytes.Equal(part, noise(sizes[5])[at:at+6]) {
					t.Errorf("range at %d: %v", at, err)
				}
			}
			if got := r.contents(home, false); !equalIDs(got, ids) {
				t.Errorf("listed %v, want %v", got, ids)
			}
			if got := r.contents(home, true); !equalIDs(got, reversed(ids)) {
				t.Errorf("newest first %v, want %v", got, reversed(ids))
			}
			if got := r.contents(other, false); len(got) != 0 {
				t.Errorf("another home lists %v", got)
			}
			if _, _, err := r.Content(ctx, other.ID, ids[0]); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("in another home: %v", err)
			}
			r.restart()
		}
	})
	stored(t, "is dropped, and the audit says by whom", byHand, func(t *testing.T, r *rig) {
		home := r.home("hpd", "s")
		keep, drop := r.putContent(home, noise(3)), r.putContent(home, noise(2*contentPiece))
		_, from, err := r.Content(ctx, home.ID, drop.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.DropContent(ctx, home.ID, drop.ID, &hub.Caller{Key: "k1", Role: hub.RoleOperator}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(from); fault.CodeOf(err) != fault.Gap {
			t.Errorf("a reader of dropped content: %v", err)
		}
		for range 2 {
			if _, _, err := r.Content(ctx, home.ID, drop.ID); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("dropped content: %v", err)
			}
			if err := r.DropContent(ctx, home.ID, drop.ID, nil); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("dropped again: %v", err)
			}
			if got := r.contents(home, false); !equalIDs(got, []string{keep.ID}) {
				t.Errorf("listed %v", got)
			}
			r.restart()
		}
		list := r.audit("content_dropped")
		if len(list) != 1 || list[0]["content_id"] != drop.ID || fmt.Sprint(list[0]["by"]) != "map[key:k1 role:operator]" {
			t.Errorf("audit: %v", list)
		}
	})
	stored(t, "that is not what it was said to be is refused whole", byHand, func(t *testing.T, r *rig) {
		home := r.home("hpd", "s")
		data := noise(contentPiece + 5)
		for name, tc := range map[string]struct {
			info hub.ContentInfo
			from io.Reader
			code fault.Code
		}{
			"another size":      {hub.ContentInfo{Size: 7}, bytes.NewReader(data), fault.Invalid},
			"another sum":       {hub.ContentInfo{SHA256: digest(nil)}, bytes.NewReader(data), fault.Invalid},
			"not a sum":         {hub.ContentInfo{SHA256: "abc"}, bytes.NewReader(data), fault.Invalid},
			"a negative size":   {hub.ContentInfo{Size: -1}, bytes.NewReader(data), fault.Invalid},
			"a name of bytes":   {hub.ContentInfo{Name: "\xff"}, bytes.NewReader(data), fault.Invalid},
			"a long name":       {hub.ContentInfo{Name: strings.Repeat("n", 17<<10)}, bytes.NewReader(data), fault.TooLarge},
			"a broken reader":   {hub.ContentInfo{}, io.MultiReader(bytes.NewReader(data), iotest.ErrReader(errors.New("cut"))), fault.Invalid},
			"a size beyond all": {hub.ContentInfo{Size: 1 << 40}, bytes.NewReader(data), fault.TooLarge},
		} {
			if _, err := r.PutContent(ctx, home.ID, tc.info, tc.from); fault.CodeOf(err) != tc.code {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := r.PutContent(ctx, "00", hub.ContentInfo{}, bytes.NewReader(data)); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("in no home: %v", err)
		}
		if n, listed := r.logsOf("home/"+home.ID, "content"), r.contents(home, false); n != 0 || len(listed) != 0 {
			t.Errorf("%d logs and %v are left", n, listed)
		}
		info, err := r.PutContent(ctx, home.ID, hub.ContentInfo{Size: int64(len(data)), SHA256: strings.ToUpper(digest(data))}, bytes.NewReader(data))
		if err != nil || info.SHA256 != digest(data) {
			t.Errorf("as it was said to be: %+v, %v", info, err)
		}
	})
}

func equalIDs(a, b []string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func reversed(ids []string) (out []string) {
	for i := len(ids) - 1; i >= 0; i-- {
		out = append(out, ids[i])
	}
	return out
}

func TestContentLimits(t *testing.T) {
	t.Parallel()
	small := byHand
	small.Limits = hub.Limits{Content: contentPiece + 10, ContentHome: 2 * contentPiece, ContentHub: 3 * contentPiece}
	stored(t, "one, those of a home and all are bounded", small, func(t *testing.T, r *rig) {
		one, two := r.home("hpd", "1"), r.home("hpd", "2")
		refused := func(home hub.Home, size int, text string) {
			t.Helper()
			_, err := r.PutContent(ctx, home.ID, hub.ContentInfo{}, bytes.NewReader(noise(size)))
			if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "("+text+")") {
				t.Errorf("%d bytes: %v, want %s", size, err, text)
			}
		}
		refused(one, contentPiece+11, "limits.content")
		first := r.putContent(one, noise(contentPiece+10))
		for range 2 { // what was refused is not counted, and what was stored is, also after a restart
			refused(one, contentPiece, "limits.content_total")
			r.restart()
		}
		r.putContent(two, noise(contentPiece))
		three := r.home("hpd", "3")
		refused(three, contentPiece, "limits.content_hub")
		if err := r.DropContent(ctx, one.ID, first.ID, nil); err != nil {
			t.Fatal(err)
		}
		refused(two, contentPiece, "limits.content_total")
		r.putContent(three, noise(contentPiece))
	})
	runs(t, "empty content counts too", hub.Options{Limits: hub.Limits{ContentHome: 4 << 10}}, func(t *testing.T, r *rig) {
		home := r.home("hpd", "s")
		for range 4 {
			r.putContent(home, nil)
		}
		if _, err := r.PutContent(ctx, home.ID, hub.ContentInfo{}, strings.NewReader("")); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("the fifth: %v", err)
		}
	})
}

// A power loss at any batch leaves the whole content or nothing of it.
func TestContentInACrash(t *testing.T) {
	t.Parallel()
	const pieces = 3
	for lost := range pieces + 1 { // the batch that is not durable; the last one ends it
		runs(t, fmt.Sprintf("batch %d is lost", lost+1), byHand, func(t *testing.T, r *rig) {
			home := r.home("hpd", "s")
			whole := r.putContent(home, noise(9))
			piece := 0
			from := readFunc(func(p []byte) (int, error) {
				switch piece++; {
				case piece == lost+1:
					r.hold() // until the crash
				case piece > pieces:
					return 0, io.EOF
				}
				return copy(p, noise(contentPiece)), nil
			})
			answer := make(chan error, 1)
			go func() {
				if lost == pieces {
					// What ends it is in a batch of its own.
					from = endAfter(pieces, func() { r.hold() })
				}
				_, err := r.PutContent(ctx, home.ID, hub.ContentInfo{}, from)
				answer <- err
			}()
			r.settle()
			r.engine.Faults().Crash()
			if err := <-answer; !fault.Retryable(err) {
				t.Errorf("answered %v", err)
			}
			r.restart()
			if got := r.contents(home, false); !equalIDs(got, []string{whole.ID}) {
				t.Errorf("listed %v", got)
			}
			if n := r.logsOf("home/"+home.ID, "content"); n != 1 {
				t.Errorf("%d logs after opening", n)
			}
			if _, data := r.readContent(home, whole.ID); !bytes.Equal(data, noise(9)) {
				t.Error("what was complete is damaged")
			}
		})
	}
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// endAfter reads as so many pieces, and calls last before it ends.
func endAfter(pieces int, last func()) readFunc {
	left := pieces * contentPiece
	return func(p []byte) (int, error) {
		if left == 0 {
			last()
			return 0, io.EOF
		}
		n := min(len(p), left)
		left -= n
		return n, nil
	}
}

func TestContentGivenUp(t *testing.T) {
	t.Parallel()
	runs(t, "what is not complete after an hour is removed, and cannot be completed", hub.Options{}, func(t *testing.T, r *rig) {
		home := r.home("hpd", "s")
		resume := make(chan struct{})
		sent := 0
		from := readFunc(func(p []byte) (int, error) {
			if sent++; sent == 2 {
				<-resume
			}
			if sent > 3 {
				return 0, io.EOF
			}
			return len(p), nil
		})
		answer := make(chan error, 1)
		go func() {
			_, err := r.PutContent(ctx, home.ID, hub.ContentInfo{}, from)
			answer <- err
		}()
		r.pass(59 * time.Minute)
		if n := r.logsOf("home/"+home.ID, "content"); n != 1 {
			t.Errorf("%d logs before the hour", n)
		}
		r.pass(7 * time.Minute)
		if n := r.logsOf("home/"+home.ID, "content"); n != 0 {
			t.Errorf("%d logs after the hour", n)
		}
		close(resume)
		if err := <-answer; fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("completed too late: %v", err)
		}
		r.settle()
		if n := r.logsOf("home/"+home.ID, "content"); n != 0 || len(r.contents(home, false)) != 0 {
			t.Errorf("%d logs are left", n)
		}
	})
}

// Backup, check, salvage and the removal of a partition know nothing of content,
// and need not.
func TestContentIsData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newRigOn(t, byHand, 1, filepath.Join(dir, "data"))
	home := r.home("hpd", "s")
	data := noise(2*contentPiece + 3)
	info := r.putContent(home, data)
	holds := func(store string) {
		t.Helper()
		e, err := disk.Open(store, disk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		h, err := hub.Open(ctx, e, r.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		_, from, err := h.Content(ctx, home.ID, info.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(from); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v", filepath.Base(store), len(got), err)
		}
	}
	backup := filepath.Join(dir, "backup")
	if _, err := r.stored.Checkpoint(ctx, backup); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(dir, "restored")
	if err := repair.Restore(backup, restored, disk.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	holds(restored)
	salvaged := filepath.Join(dir, "salvaged")
	if _, err := repair.Salvage(restored, salvaged, disk.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	holds(salvaged)
	report, err := repair.Check(salvaged, disk.Options{}, nil)
	if err != nil || !report.OK() {
		t.Errorf("check: %+v, %v", report, err)
	}
	if err := r.stored.RebuildIndex(ctx); err != nil {
		t.Fatal(err)
	}
	if got := r.contents(home, false); !equalIDs(got, []string{info.ID}) {
		t.Errorf("after a rebuild of the index: %v", got)
	}
	ticket, err := r.stored.DropPartition(context.Background(), journal.PartitionName{Tenant: "main", Partition: "home/" + home.ID}, "audit")
	if err == nil {
		err = ticket.Wait(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := r.contents(home, false); len(got) != 0 || r.logsOf("home/"+home.ID, "content") != 0 {
		t.Errorf("after its partition was dropped: %v", got)
	}
}

func TestContentGoesWithItsHome(t *testing.T) {
	t.Parallel()
	small := byHand
	small.Limits = hub.Limits{ContentHub: 2 * contentPiece}
	small.Adapters = withBoard.Adapters
	stored(t, "what is stored, and what is being stored", small, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		home, other := r.home("hpd", "s"), r.home("hpd", "other")
		r.putContent(home, noise(contentPiece))
		pieces, deleted := 0, false
		remove := func() {
			if deleted {
				return
			}
			deleted = true
			if err := r.DeleteHome(ctx, home.ID, nil); err != nil {
				t.Fatal(err)
			}
		}
		_, err := r.PutContent(ctx, home.ID, hub.ContentInfo{}, readFunc(func(p []byte) (int, error) {
			if pieces++; pieces == 1 {
				remove() // before its first piece is stored
			}
			return len(p), nil
		}))
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("stored in a home that is gone: %v", err)
		}
		if n := r.logsOf("home/"+home.ID, "content"); n != 0 {
			t.Errorf("%d logs in a home that is gone", n)
		}
		r.putContent(other, noise(contentPiece+contentPiece/2)) // there is room again
		deleted, home = false, r.home("hpd", "s")
		_, err = r.Seed(ctx, hub.Opening{Creator: a.id, Type: "board", Home: home.ID}, notes(900, func(i int) error {
			if i == 800 { // after its first batch
				remove()
			}
			return nil
		}))
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("seeded in a home that is gone: %v", err)
		}
		if n := r.logsOf("home/"+home.ID, "history"); n != 0 {
			t.Errorf("%d histories in a home that is gone", n)
		}
	})
}
