package hub_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
)

const contentPiece = 512 << 10

// noise returns n bytes that do not repeat.
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
			"a cut reader":      {hub.ContentInfo{}, io.MultiReader(bytes.NewReader(data), iotest.ErrReader(io.ErrUnexpectedEOF)), fault.Invalid},
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
		for range 2 { // a refused content is not counted, and a stored one is, also after a restart
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
