package natsproc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-hub/parley/internal/freeport"
)

// Cluster is servers that know each other, through proxies unless Direct.
type Cluster struct {
	servers []*process
	routes  []route
	args    []string
}

// route is the way from one server to another.
type route struct {
	*Proxy
	from, to int
}

type process struct {
	config config
	cmd    *exec.Cmd
	in     io.Closer
}

// Options of a cluster.
type Options struct {
	Servers int
	Dir     string
	Folders []string // of the servers; nil: under Dir
	NoSync  bool     // leave sync_interval as it is by default
	Direct  bool     // without proxies between the servers, which take time of this process: they cannot be cut off
	Args    []string // with which this program calls ServeIfTold
}

// Start starts servers, and waits until they can make streams.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{args: o.Args}
	err := c.start(ctx, o)
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	ports, free, err := freeport.Take(ctx, 3*o.Servers+1)
	defer free()
	if err != nil {
		return err
	}
	address := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[3*i+2]) }
	for i := range o.Servers {
		p := &process{config: config{
			Name: fmt.Sprintf("n%d", i), Dir: filepath.Join(o.Dir, fmt.Sprintf("n%d", i)), NoSync: o.NoSync,
			Port: ports[3*i], Monitor: ports[3*i+1], Route: ports[3*i+2],
		}}
		if !o.Direct {
			p.config.Dead = fmt.Sprintf("127.0.0.1:%d", ports[3*o.Servers])
		}
		if o.Folders != nil {
			p.config.Dir = o.Folders[i]
		}
		for j := range o.Servers {
			if i == j {
				continue
			}
			if o.Direct {
				p.config.Routes = append(p.config.Routes, address(j))
				continue
			}
			between, err := NewProxy(ctx, address(j))
			if err != nil {
				return err
			}
			c.routes = append(c.routes, route{between, i, j})
			p.config.Routes = append(p.config.Routes, between.Address())
		}
		c.servers = append(c.servers, p)
	}
	free() // proxies have ports of their own by now
	for i := range c.servers {
		if err := c.Again(i); err != nil {
			return err
		}
	}
	return c.Ready(ctx)
}

// Ready waits until the servers have a leader that knows all of them.
func (c *Cluster) Ready(ctx context.Context) error {
	for {
		for i := range c.servers {
			var page struct {
				Meta struct {
					Size int `json:"cluster_size"`
				} `json:"meta_cluster"`
			}
			if c.page(ctx, i, "jsz", &page) == nil && page.Meta.Size == len(c.servers) && c.Routes(ctx, i) == len(c.servers)-1 {
				if i == len(c.servers)-1 {
					return nil
				}
				continue
			}
			break
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return errors.Join(errors.New("the servers do not find each other"), err)
		}
	}
}

// Routes counts the servers that one is connected with; -1 if it does not answer.
func (c *Cluster) Routes(ctx context.Context, i int) int {
	var page struct {
		Routes []struct {
			Name string `json:"remote_name"`
		} `json:"routes"`
	}
	if c.page(ctx, i, "routez", &page) != nil {
		return -1
	}
	names := map[string]bool{}
	for _, r := range page.Routes {
		names[r.Name] = true
	}
	return len(names)
}

func (c *Cluster) page(ctx context.Context, i int, name string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/%s", c.servers[i].config.Monitor, name), nil)
	if err != nil {
		return err
	}
	request.Close = true // so that nothing of it is left running
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	return json.NewDecoder(io.LimitReader(answer.Body, 4<<20)).Decode(into)
}

// Address returns the address of one server, for clients.
func (c *Cluster) Address(i int) string {
	return fmt.Sprintf("127.0.0.1:%d", c.servers[i].config.Port)
}

// URL returns the URL of one server.
func (c *Cluster) URL(i int) string {
	return fmt.Sprintf("nats://127.0.0.1:%d", c.servers[i].config.Port)
}

// URLs returns the URLs of all servers, in one text.
func (c *Cluster) URLs() string {
	var all []string
	for i := range c.servers {
		all = append(all, c.URL(i))
	}
	return strings.Join(all, ",")
}

// Name returns the name of a server.
func (c *Cluster) Name(i int) string { return c.servers[i].config.Name }

// Again starts a server that was ended, with what it had stored.
func (c *Cluster) Again(i int) error {
	p := c.servers[i]
	text, err := json.Marshal(p.config)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = exec.CommandContext(context.Background(), self, c.args...) //nolint:gosec // itself
	p.cmd.Env = append(os.Environ(), environment+"="+string(text))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		return err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return fmt.Errorf("server %d does not start: %w", i, err)
	}
	return nil
}

// Kill ends a server as the loss of its machine would, apart from its disk.
func (c *Cluster) Kill(i int) {
	p := c.servers[i]
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_ = p.in.Close()
	p.cmd = nil
}

// Cut cuts a server off from the others.
func (c *Cluster) Cut(i int, off bool) {
	for _, r := range c.routes {
		if r.from == i || r.to == i {
			r.Proxy.Cut(off)
		}
	}
}

// Stop ends all of them.
func (c *Cluster) Stop() {
	for i := range c.servers {
		c.Kill(i)
	}
	for _, r := range c.routes {
		r.Close()
	}
}
