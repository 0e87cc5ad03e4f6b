package doctor_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/doctor"
)

// find returns what one check found.
func find(t *testing.T, p doctor.Patient, check string) doctor.Finding {
	t.Helper()
	findings := doctor.Examine(t.Context(), p)
	for _, f := range findings {
		if f.Check == check {
			if (f.Verdict == doctor.Fine) != (f.Remedy == "") {
				t.Errorf("%+v: what is not fine has a remedy, and nothing else", f)
			}
			return f
		}
	}
	t.Fatalf("no check %q in %+v", check, findings)
	return doctor.Finding{}
}

func TestHub(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second) // as exact as the header is
	for name, tc := range map[string]struct {
		ready  int
		late   time.Duration // by which its clock is behind
		health string
		check  string
		want   doctor.Verdict
		says   string
	}{
		"ready":             {200, 0, `{"version":"v1"}`, "hub", doctor.Fine, "is ready"},
		"not ready":         {503, 0, ``, "hub", doctor.Failed, "503"},
		"a wrong token":     {401, 0, ``, "hub", doctor.Failed, "does not accept the token in PARLEY_TOKEN"},
		"same time":         {200, 0, `{"version":"v1"}`, "hub's clock", doctor.Fine, "agrees"},
		"another time":      {200, time.Hour, `{"version":"v1"}`, "hub's clock", doctor.Warning, "1h0m0s apart"},
		"a time to come":    {200, -time.Minute, `{"version":"v1"}`, "hub's clock", doctor.Warning, "1m0s apart"},
		"same version":      {200, 0, `{"version":"v1"}`, "hub's version", doctor.Fine, "parley v1"},
		"another version":   {200, 0, `{"version":"v0"}`, "hub's version", doctor.Warning, "parley v0"},
		"without a key":     {200, 0, "401", "hub's version", doctor.Warning, "only a key's holder"},
		"names":             {200, 0, `{"version":"v1","agents":[{"passport":{"name":"bob"}}]}`, "agents' names", doctor.Fine, "none looks like an id"},
		"a name like an id": {200, 0, `{"agents":[{"passport":{"name":"0123456789abcdef0123456789abcdef","agent_id":"x"}}]}`, "agents' names", doctor.Warning, "is the name of x"},
		"names, no key":     {200, 0, "401", "agents' names", doctor.Warning, "only a key's holder"},
		"no health at all":  {200, 0, "404", "hub's version", doctor.Warning, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", now.Add(-tc.late).UTC().Format(http.TimeFormat))
				switch {
				case r.URL.Path == "/readyz":
					w.WriteHeader(tc.ready)
				case tc.health == "401":
					w.WriteHeader(http.StatusUnauthorized)
				case tc.health == "404":
					w.WriteHeader(http.StatusNotFound)
				default:
					_, _ = w.Write([]byte(tc.health))
				}
			}))
			defer hub.Close()
			f := find(t, doctor.Patient{Dir: t.TempDir(), HubURL: hub.URL, Version: "v1", Token: "t", Now: func() time.Time { return now }}, tc.check)
			if f.Verdict != tc.want || !strings.Contains(f.Found, tc.says) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, tc := range map[string]struct {
		patient doctor.Patient
		check   string
		want    doctor.Verdict
		says    string
	}{
		"port free":      {doctor.Patient{Dir: dir, Listen: "127.0.0.1:0"}, "port", doctor.Fine, "is free"},
		"port taken":     {doctor.Patient{Dir: dir, Listen: taken.Addr().String()}, "port", doctor.Failed, "cannot be listened on"},
		"no folder yet":  {doctor.Patient{Dir: filepath.Join(dir, "a", "b"), Listen: "127.0.0.1:0"}, "disk space", doctor.Fine, "MiB free"},
		"a file instead": {doctor.Patient{Dir: filepath.Join(file, "data"), Listen: "127.0.0.1:0"}, "data folder", doctor.Failed, "cannot be written"},
		"disk full":      {doctor.Patient{Dir: dir, Listen: "127.0.0.1:0", MinFree: 1 << 60}, "disk space", doctor.Failed, "MiB free"},
		"clock":          {doctor.Patient{Dir: dir, Listen: "127.0.0.1:0"}, "clock", doctor.Fine, "Z"},
		"files":          {doctor.Patient{Dir: dir, Listen: "127.0.0.1:0", Connections: 1}, "file limit", doctor.Fine, "enough for"},
		"too few files":  {doctor.Patient{Dir: dir, Listen: "127.0.0.1:0", Connections: 1 << 40}, "file limit", doctor.Warning, "1099511627776 are configured"},
		"version":        {doctor.Patient{Dir: dir, Listen: "127.0.0.1:0", Version: "v7"}, "version", doctor.Fine, "parley v7"},
	} {
		if f := find(t, tc.patient, tc.check); f.Verdict != tc.want || !strings.Contains(f.Found, tc.says) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("it left %v behind (%v)", left, err)
	}
}

func TestWorst(t *testing.T) {
	t.Parallel()
	for want, list := range map[doctor.Verdict][]doctor.Finding{
		doctor.Fine:    {{Verdict: doctor.Fine}},
		doctor.Warning: {{Verdict: doctor.Fine}, {Verdict: doctor.Warning}},
		doctor.Failed:  {{Verdict: doctor.Failed}, {Verdict: doctor.Warning}},
	} {
		if got := doctor.Worst(list); got != want {
			t.Errorf("%v: %s", list, got)
		}
	}
}
