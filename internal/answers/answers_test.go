package answers_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/internal/turns"
)

func refused(err error) bool {
	return fault.CodeOf(err) == fault.Unavailable && strings.Contains(err.Error(), "limits.answers")
}

func TestSharesAreBounded(t *testing.T) {
	t.Parallel()
	b := answers.New(400)
	first, second := b.For("a", nil), b.For("a", nil)
	if err := first.Hold(300); err != nil {
		t.Fatalf("an answer that is alone: %v", err)
	}
	if err := second.Hold(1); !refused(err) {
		t.Errorf("more than one key's share: %v", err)
	}
	if err := b.For("b", nil).Hold(100); err != nil {
		t.Errorf("another key: %v", err)
	}
	if err := b.For("c", nil).Hold(1); !refused(err) {
		t.Errorf("more than all: %v", err)
	}
	if err := first.Keep(10); err != nil || first.Used() != 10 {
		t.Errorf("less than before: %v, %d held", err, first.Used())
	}
	if err := second.Hold(90); err != nil {
		t.Errorf("after it was given back: %v", err)
	}
	first.Close()
	second.Close()
	if held := b.Used(); held != 100 {
		t.Errorf("%d are held, not 100", held)
	}
}

func TestRoomIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := answers.New(400)
		first, second := b.For("a", nil), b.For("a", nil)
		if err := first.Hold(100); err != nil {
			t.Fatal(err)
		}
		if err := second.Wait(t.Context(), 1, time.Second); !refused(err) {
			t.Errorf("nothing was given back: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- second.Wait(t.Context(), 1, time.Minute) }()
		synctest.Wait()
		first.Release()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// watched is a reader that looks at what its answer holds and whose turn it is
// while it is written to.
type watched struct {
	*httptest.ResponseRecorder
	during func()
}

func (w watched) Write(p []byte) (int, error) {
	w.during()
	return w.ResponseRecorder.Write(p)
}

// Pieces and whole files count while they are written, and hold no turn then.
func TestPiecesCountWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*answers.Answer, *http.Request, http.ResponseWriter) error{
		"pieces": func(a *answers.Answer, r *http.Request, w http.ResponseWriter) error {
			out := a.Pieces(r, w, time.Second)
			for range 40 {
				if _, err := out.Write(make([]byte, 8<<10)); err != nil {
					return err
				}
			}
			return out.End("!")
		},
		"file": func(a *answers.Answer, r *http.Request, w http.ResponseWriter) error {
			out := a.Paced(r, w, time.Second)
			for range 5 {
				if _, err := out.Write(make([]byte, 64<<10)); err != nil {
					return err
				}
			}
			_, err := out.Write([]byte("!"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, g := answers.New(1<<20), turns.New(256<<10)
				a := b.For("a", g.For("a"))
				writes := 0
				w := watched{httptest.NewRecorder(), func() {
					writes++
					if b.Used() == 0 {
						t.Error("what is written does not count")
					}
					wake := g.For("a")
					if c := wake.Take(); c != nil {
						<-c
					}
					wake.Leave() // somebody of the same key had its turn
				}}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				began := time.Now()
				if err := a.Begin(r.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
				if err := write(a, r, w); err != nil {
					t.Fatal(err)
				}
				a.Close()
				if n := w.Body.Len(); n != 320<<10+1 || writes < 5 || b.Used() != 0 {
					t.Errorf("%d bytes in %d writes, %d held at the end", n, writes, b.Used())
				}
				if took := time.Since(began); took < 3*time.Second { // of a faked clock: 64 KiB a second
					t.Errorf("320 KiB were read in %s", took)
				}
			})
		})
	}
}

// An answer without room for its first piece is refused before it begins; one
// that has begun is ended only if no room is freed in time.
func TestPiecesWithoutRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := answers.New(256 << 10)
		other := b.For("a", nil)
		if err := other.Hold(64 << 10); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		w := httptest.NewRecorder()
		out := b.For("a", nil).Pieces(r, w, time.Second)
		if _, err := out.Write(make([]byte, 64<<10)); !refused(err) || out.Begun() || w.Body.Len() > 0 {
			t.Errorf("the first piece: %v, %d bytes", err, w.Body.Len())
		}
		other.Release()
		out = b.For("a", nil).Pieces(r, w, time.Second)
		if _, err := out.Write(make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
		if err := other.Hold(64 << 10); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(500*time.Millisecond, other.Release)
		if _, err := out.Write(make([]byte, 64<<10)); err != nil {
			t.Errorf("a piece that waited for room: %v", err)
		}
		if err := other.Hold(64 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(make([]byte, 64<<10)); !refused(err) || !out.Begun() {
			t.Errorf("nothing was given back: %v", err)
		}
	})
}
