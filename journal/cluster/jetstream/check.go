package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// OldestServer is the oldest version of NATS that does not lose acknowledged messages.
const OldestServer = "2.15.2"

// maxClock is the difference between clocks above which Check returns a warning.
const maxClock = 500 * time.Millisecond

// Requirements are the requirements on the servers. Whether the servers sync every
// write is read through the system account or from their monitoring pages.
type Requirements struct {
	Replicas   int
	System     *nats.Conn // of the system account; nil: the monitoring pages are read
	Monitor    []string   // one address for each server, such as http://10.0.0.1:8222
	AssumeSync bool       // assume that every write is synced
}

// server is what a server reports about itself.
type server struct {
	name, version string
	id            string // only from a monitoring page
	syncs         bool
	apart         time.Duration // minimum difference between its clock and this one
}

// Check returns an error if acknowledged messages could be lost on the servers. The
// warnings are for the operator and refuse nothing.
func (l *Log) Check(ctx context.Context, r Requirements) (warnings []string, err error) {
	servers, err := l.askAll(ctx, r)
	if err != nil {
		return nil, err
	}
	if servers == nil {
		warnings = append(warnings, "that the servers sync every write is assumed (cluster.assume_sync), not known")
		servers = []server{{name: l.nc.ConnectedServerName(), version: l.nc.ConnectedServerVersion(), syncs: true}}
	} else if len(servers) < r.Replicas {
		return nil, fmt.Errorf("%d NATS servers answer, %d are needed for %d replicas; start more, or list all of them in cluster.monitor", len(servers), r.Replicas, r.Replicas)
	}
	for _, s := range servers {
		if older(s.version, OldestServer) {
			return nil, fmt.Errorf("NATS server %s is of version %s; use %s or newer", s.name, s.version, OldestServer)
		}
		if !s.syncs && !r.AssumeSync {
			return nil, fmt.Errorf("NATS server %s does not sync every write and can lose what it acknowledged; set `sync_interval: always` in its jetstream block", s.name)
		}
		if s.apart > maxClock {
			warnings = append(warnings, fmt.Sprintf("the clock of NATS server %s is %v apart from this one; at most %v is good", s.name, s.apart.Round(time.Millisecond), maxClock))
		}
	}
	return warnings, nil
}

// askAll queries every server. It returns nil if it cannot query them and AssumeSync
// is set.
func (l *Log) askAll(ctx context.Context, r Requirements) ([]server, error) {
	switch {
	case r.System != nil:
		return askSystem(ctx, r.System, r.Replicas)
	case len(r.Monitor) > 0:
		return askMonitors(ctx, r.Monitor)
	case r.AssumeSync:
		return nil, nil
	}
	return nil, errors.New("whether the NATS servers sync every write cannot be asked: list their monitoring addresses in cluster.monitor, or set cluster.assume_sync if you know that all have `sync_interval: always`")
}

// jsz is the part of a server's JetStream monitoring page that Check uses.
type jsz struct {
	Now    time.Time `json:"now"`
	Config struct {
		SyncAlways bool `json:"sync_always"`
	} `json:"config"`
	Disabled bool `json:"disabled"`
}

// server returns what the page reports about a server; asked is when it was requested,
// and the response has just arrived.
func (p *jsz) server(name, version string, asked time.Time) server {
	s := server{name: name, version: version, syncs: p.Config.SyncAlways && !p.Disabled}
	if !p.Now.IsZero() { // the page was made between asked and now
		s.apart = max(asked.Sub(p.Now), time.Until(p.Now), 0)
	}
	return s
}

// askSystem queries all servers at once, and waits for the expected number of answers.
func askSystem(ctx context.Context, nc *nats.Conn, most int) ([]server, error) {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection is gone then
	asked := time.Now()
	if err := nc.PublishRequest("$SYS.REQ.SERVER.PING.JSZ", inbox, []byte(`{"config":true}`)); err != nil {
		return nil, err
	}
	all := []server{}
	for len(all) < most {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break // servers that have not answered are not counted
		}
		var answer struct {
			Server struct {
				Name    string `json:"name"`
				Version string `json:"ver"`
			} `json:"server"`
			Data jsz `json:"data"`
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return nil, fmt.Errorf("the answer of a NATS server: %w", err)
		}
		if !answer.Data.Disabled {
			all = append(all, answer.Data.server(answer.Server.Name, answer.Server.Version, asked))
		}
	}
	return all, nil
}

// maxPage bounds a monitoring page.
const maxPage = 4 << 20

// askMonitors reads the monitoring pages of different servers.
func askMonitors(ctx context.Context, addresses []string) (all []server, err error) {
	known := map[string]string{} // addresses by id
	for _, address := range addresses {
		s, err := askMonitor(ctx, strings.TrimSuffix(address, "/"))
		if err != nil {
			return nil, fmt.Errorf("asking the NATS server at %s (cluster.monitor): %w", address, err)
		}
		if before, twice := known[s.id]; twice {
			return nil, fmt.Errorf("cluster.monitor: %s and %s are the same NATS server, %s; list the monitoring address of each server once", before, address, s.name)
		}
		known[s.id] = address
		all = append(all, s)
	}
	return all, nil
}

func askMonitor(ctx context.Context, address string) (server, error) {
	var about struct {
		ID      string `json:"server_id"`
		Name    string `json:"server_name"`
		Version string `json:"version"`
	}
	if err := fetch(ctx, address+"/varz", &about); err != nil {
		return server{}, err
	}
	var page jsz
	asked := time.Now()
	if err := fetch(ctx, address+"/jsz?config=true", &page); err != nil {
		return server{}, err
	}
	s := page.server(about.Name, about.Version, asked)
	s.id = about.ID
	return s, nil
}

func fetch(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w; give the monitoring port (`http` in the server's configuration, usually 8222), not the one for clients", err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s, and is not the monitoring port of a NATS server (`http` in its configuration)", url, response.Status)
	}
	page, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(page, into); err != nil {
		return fmt.Errorf("%s is not the monitoring port of a NATS server (`http` in its configuration): %w", url, err)
	}
	return nil
}

// older reports whether a version is older than another; a version that cannot be
// parsed counts as older.
func older(version, than string) bool {
	a, b := numbers(version), numbers(than)
	for i := range b {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func numbers(version string) (out [3]int) {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
	for i, part := range strings.SplitN(version, ".", 3) {
		n, err := strconv.Atoi(part)
		if err != nil {
			return [3]int{}
		}
		out[i] = n
	}
	return out
}
