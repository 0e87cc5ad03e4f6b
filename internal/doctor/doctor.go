// Package doctor examines the machine a hub runs on, in small checks that each
// say what they found and what to do about it. It changes nothing but a file of
// its own, which it removes.
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/internal/openfiles"
)

// Verdict is how a check ended.
type Verdict string

const (
	Fine    Verdict = "fine"
	Warning Verdict = "warning"
	Failed  Verdict = "failed"
)

// Finding is what a check found, and what to do about it unless it is fine.
type Finding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`
	Remedy  string  `json:"remedy,omitempty"`
}

// Patient is the machine, and perhaps the hub, to examine.
type Patient struct {
	Dir     string // the data folder; it need not exist yet
	MinFree int64  // bytes that data.min_free wants
	Listen  string // where a hub listens or would
	HubURL  string // a hub that should answer; empty: none is expected
	// Connections is how many a hub may have open, as configured.
	Connections int
	Version     string
	Token       string       // for that hub; may be empty
	HTTP        *http.Client // nil: http.DefaultClient
	// Hint is what to do about a request that failed; nil or empty: nothing is known.
	Hint func(error) string

	FirstEvent time.Duration    // until the first event of a stream must be there; 0: a second
	Now        func() time.Time // nil: time.Now
}

func (p Patient) client() *http.Client {
	if p.HTTP == nil {
		return http.DefaultClient
	}
	return p.HTTP
}

// Examine runs every check.
func Examine(ctx context.Context, p Patient) []Finding {
	if p.Now == nil {
		p.Now = time.Now
	}
	p.FirstEvent = cmp.Or(p.FirstEvent, time.Second)
	findings := []Finding{version(p), clock(p.Now()), fileLimit(p.Connections)}
	if dir, err := os.MkdirTemp(existing(p.Dir), ".parley-doctor-"); err != nil {
		findings = append(findings, Finding{
			"data folder", Failed, fmt.Sprintf("%s cannot be written: %v", p.Dir, err),
			"choose another folder with --data, or give this user the right to write there",
		})
	} else {
		findings = append(findings, space(p), sync(dir))
		_ = os.RemoveAll(dir)
	}
	if p.HubURL != "" {
		return append(findings, reach(ctx, p)...)
	}
	return append(findings, port(ctx, p))
}

// Worst returns the worst verdict among findings.
func Worst(findings []Finding) Verdict {
	for _, v := range []Verdict{Failed, Warning} {
		if slices.ContainsFunc(findings, func(f Finding) bool { return f.Verdict == v }) {
			return v
		}
	}
	return Fine
}

// existing returns dir, or the nearest path above it that exists. If that is
// not a folder, dir cannot be made.
func existing(dir string) string {
	for {
		if _, err := os.Lstat(dir); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return dir
		}
		dir = up
	}
}

func version(p Patient) Finding {
	return Finding{"version", Fine, fmt.Sprintf("parley %s, %s, %s/%s, %d cores", p.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU()), ""}
}

// firstRelease is a time in the past: a clock before it is wrong.
var firstRelease = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func clock(now time.Time) Finding {
	if now.Before(firstRelease) {
		return Finding{"clock", Failed, "it is " + now.UTC().Format(time.RFC3339) + ", which cannot be", "set the clock; deadlines and time stamps depend on it"}
	}
	return Finding{"clock", Fine, now.UTC().Format(time.RFC3339), ""}
}

// fileLimit compares how many files may be open with the connections that are
// configured: each is one, and the store needs some.
func fileLimit(connections int) Finding {
	limit, ok := openfiles.Limit()
	if !ok {
		return Finding{"file limit", Fine, "this system has no limit for each process", ""}
	}
	found := fmt.Sprintf("%d open files, which is enough for %d connections besides the store", limit, openfiles.Connections(limit))
	if openfiles.Connections(limit) < connections {
		return Finding{
			"file limit", Warning, fmt.Sprintf("%s; %d are configured (http.max_connections)", found, connections),
			fmt.Sprintf("raise it to %d (ulimit -n, LimitNOFILE=), or a hub accepts fewer", connections+openfiles.Store),
		}
	}
	return Finding{"file limit", Fine, found, ""}
}

func space(p Patient) Finding {
	usage, err := vfs.Default.GetDiskUsage(existing(p.Dir))
	if err != nil {
		return Finding{"disk space", Warning, err.Error(), "look at the file system of " + p.Dir}
	}
	free := int64(min(usage.AvailBytes, math.MaxInt64))
	found := fmt.Sprintf("%d MiB free", free>>20)
	if free < p.MinFree {
		return Finding{"disk space", Failed, found, fmt.Sprintf("make room: below %d MiB (data.min_free) posts are refused", p.MinFree>>20)}
	}
	return Finding{"disk space", Fine, found, ""}
}

// tooFast is less than any disk takes to make bytes durable; memory takes
// less.
const tooFast = 15 * time.Microsecond

// sync measures how long the disk takes to make a write durable. A disk that
// takes no time at all does not do it.
func sync(dir string) Finding {
	file, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return Finding{"fsync", Failed, err.Error(), "look at the data folder's disk"}
	}
	defer file.Close()
	block := make([]byte, 4096)
	var took []time.Duration
	for range 20 {
		start := time.Now()
		if _, err := file.Write(block); err != nil {
			return Finding{"fsync", Failed, err.Error(), "look at the data folder's disk"}
		}
		if err := file.Sync(); err != nil {
			return Finding{"fsync", Failed, err.Error(), "look at the data folder's disk: it does not keep what it is given"}
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	median := took[len(took)/2]
	found := fmt.Sprintf("%s for each, in the middle of 20", median.Round(time.Microsecond))
	switch {
	case median < tooFast:
		return Finding{"fsync", Warning, found, "no disk is that fast: this one may lose what it acknowledged (tmpfs, eatmydata, write cache); keep the data folder elsewhere"}
	case median > 50*time.Millisecond:
		return Finding{"fsync", Warning, found, "posts wait for this: a faster disk makes a faster hub"}
	}
	return Finding{"fsync", Fine, found, ""}
}

// port checks whether a hub could listen.
func port(ctx context.Context, p Patient) Finding {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.Listen)
	if err != nil {
		return Finding{"port", Failed, fmt.Sprintf("%s cannot be listened on: %v", p.Listen, err), "stop what uses it, or choose another with --listen"}
	}
	_ = listener.Close()
	return Finding{"port", Fine, p.Listen + " is free", ""}
}

// reach asks a running hub whether it is ready, what it runs and what time it
// has.
func reach(ctx context.Context, p Patient) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	got, err := ask(ctx, p, "/readyz")
	if err != nil {
		remedy := ""
		if p.Hint != nil {
			remedy = p.Hint(err)
		}
		return []Finding{{"hub", Failed, fmt.Sprintf("%s does not answer: %v", p.HubURL, err), cmp.Or(remedy, "start it with parley serve, or name another with --hub")}}
	}
	if strings.HasPrefix(string(got.body), "Client sent an HTTP request to an HTTPS server") {
		return []Finding{{"hub", Failed, p.HubURL + " speaks TLS, and was asked without", "name it with https://"}}
	}
	if strings.HasPrefix(strings.TrimSpace(string(got.body)), "<") {
		return []Finding{{"hub", Failed, fmt.Sprintf("%s is no hub's address: /readyz answers %s, with a page", p.HubURL, got.status), "name another with --hub"}}
	}
	if got.code == http.StatusUnauthorized && p.Token != "" {
		return []Finding{{"hub", Failed, p.HubURL + " does not accept the token in PARLEY_TOKEN", "set PARLEY_TOKEN to a key's token that this hub knows, or unset it; parley keys add makes one"}}
	}
	if got.code != http.StatusOK {
		return []Finding{{"hub", Failed, fmt.Sprintf("%s answers %s", p.HubURL, got.status), "look at " + p.HubURL + "/readyz and the hub's log"}}
	}
	return []Finding{{"hub", Fine, p.HubURL + " is ready", ""}, skew(got, p.Now()), hubVersion(ctx, p), names(ctx, p), stream(ctx, p)}
}

// answer is what a hub says to a request.
type answer struct {
	code         int
	status, date string
	body         []byte
}

// ask makes a request and reads a bounded answer.
func ask(ctx context.Context, p Patient, path string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.HubURL+path, nil)
	if err != nil {
		return answer{}, err
	}
	if p.Token != "" {
		request.Header.Set("Authorization", "Bearer "+p.Token)
	}
	got, err := p.client().Do(request)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(got.Body, 8<<20))
	return answer{code: got.StatusCode, status: got.Status, date: got.Header.Get("Date"), body: raw}, err
}

// maxSkew is more than the answer's travel time and rounding to seconds explain.
const maxSkew = 3 * time.Second

func skew(got answer, now time.Time) Finding {
	theirs, err := http.ParseTime(got.date)
	if err != nil {
		return Finding{"hub's clock", Warning, "the hub does not say what time it has", "look at what stands between you and the hub"}
	}
	apart := now.Sub(theirs)
	if apart.Abs() > maxSkew {
		return Finding{"hub's clock", Warning, fmt.Sprintf("it is %s apart from this one", apart.Abs().Round(time.Second)), "let both machines set their clocks from the network"}
	}
	return Finding{"hub's clock", Fine, "it agrees with this one", ""}
}

func hubVersion(ctx context.Context, p Patient) Finding {
	got, err := ask(ctx, p, "/v1/health")
	var health struct {
		Version string `json:"version"`
	}
	switch {
	case err != nil:
		return Finding{"hub's version", Warning, err.Error(), "look at the hub's log"}
	case got.code == http.StatusUnauthorized || got.code == http.StatusForbidden:
		return Finding{"hub's version", Warning, "only a key's holder is told", "set PARLEY_TOKEN to the token of a key; parley keys add --role reader makes one"}
	case got.code != http.StatusOK || json.Unmarshal(got.body, &health) != nil:
		return Finding{"hub's version", Warning, "/v1/health answers " + got.status, "look at the hub's log"}
	case health.Version != p.Version:
		return Finding{"hub's version", Warning, "parley " + health.Version, "this command is " + p.Version + "; use the same for both"}
	}
	return Finding{"hub's version", Fine, "parley " + health.Version, ""}
}

// shapedLikeID matches names that could be taken for somebody's id.
var shapedLikeID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// maxPages bounds how much of a directory is examined.
const maxPages = 1000

// names looks for agents whose name looks like an id: hubs refuse such names now,
// but older ones did not.
func names(ctx context.Context, p Patient) Finding {
	var odd []string
	after := ""
	for range maxPages {
		got, err := ask(ctx, p, "/v1/agents?limit=50&after="+url.QueryEscape(after))
		switch {
		case err != nil:
			return Finding{"agents' names", Warning, err.Error(), "look at the hub's log"}
		case got.code == http.StatusUnauthorized || got.code == http.StatusForbidden:
			return Finding{"agents' names", Warning, "only a key's holder is told", "set PARLEY_TOKEN to the token of a key; parley keys add --role reader makes one"}
		}
		var page struct {
			Agents []struct {
				Passport struct {
					Name string `json:"name"`
					ID   string `json:"agent_id"`
				} `json:"passport"`
			} `json:"agents"`
			Next string `json:"next"`
		}
		if got.code != http.StatusOK || json.Unmarshal(got.body, &page) != nil {
			return Finding{"agents' names", Warning, "/v1/agents answers " + got.status, "look at the hub's log"}
		}
		for _, a := range page.Agents {
			if shapedLikeID.MatchString(a.Passport.Name) {
				odd = append(odd, a.Passport.Name+" is the name of "+a.Passport.ID)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(odd) > 0 {
		return Finding{
			"agents' names", Warning, fmt.Sprintf("%d look like ids: %s", len(odd), strings.Join(odd[:min(len(odd), 5)], ", ")),
			"remove them with parley agents remove ID and register them under other names: where a name is somebody's id, the id wins",
		}
	}
	return Finding{"agents' names", Fine, "none looks like an id", ""}
}
