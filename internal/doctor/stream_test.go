package doctor_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/doctor"
)

// What stands between a reader and a hub shows in its streams.
func TestStream(t *testing.T) {
	t.Parallel()
	hello := ": a watch\n\nevent: hello\ndata: {}\n\n"
	for name, tc := range map[string]struct {
		status int
		sends  string
		holds  bool // and nothing more
		want   doctor.Verdict
		says   string
	}{
		"fine":        {http.StatusOK, hello, true, doctor.Fine, "over HTTP/1.1 a browser opens six connections"},
		"buffered":    {http.StatusOK, "", true, doctor.Warning, "no event came within"},
		"cut":         {http.StatusOK, ": a watch\n", false, doctor.Warning, "no event came within"},
		"no comments": {http.StatusOK, "event: hello\ndata: {}\n\n", true, doctor.Warning, "comments are taken out"},
		"forbidden":   {http.StatusUnauthorized, "", false, doctor.Warning, "only a key's holder"},
		"no route":    {http.StatusNotFound, "", false, doctor.Warning, "/v1/watch answers 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/watch" {
					return
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.sends)
				_ = http.NewResponseController(w).Flush()
				if tc.holds {
					<-r.Context().Done()
				}
			}))
			defer hub.Close()
			wait := time.Minute
			if tc.holds && tc.sends == "" {
				wait = 10 * time.Millisecond
			}
			f := find(t, doctor.Patient{Dir: t.TempDir(), HubURL: hub.URL, Version: "v1", Token: "t", FirstEvent: wait}, "stream")
			if f.Verdict != tc.want || !strings.Contains(f.Found, tc.says) || (f.Remedy == "") != (tc.want == doctor.Fine) {
				t.Errorf("%+v", f)
			}
		})
	}
}
