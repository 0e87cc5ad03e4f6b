package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/server/chat"
	"github.com/parley-hub/parley/server/config"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "parley.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := config.Config{
		Data: config.Data{Dir: "./parley-data", MinFree: 512 << 20, Snapshots: 1 << 30, RecentCommits: 4 << 20},
		HTTP: config.HTTP{
			Listen: "127.0.0.1:7440", MaxConnections: 20480, MaxHeader: 64 << 10,
			HeaderTimeout: 10 * time.Second, BodyTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		},
		Log:      config.Log{Level: "info", Format: "auto"},
		Shutdown: config.Shutdown{Timeout: 10 * time.Second},
		Limits: config.Limits{
			Answers: 256 << 20, Body: 2 << 20, Import: 1 << 30, Event: 1 << 20, Record: 16 << 10, Profile: 64 << 10, ProfileCache: 16 << 20, RecentEvents: 16 << 20, Page: 1000, PageBytes: 4 << 20, View: 64 << 20, Search: 8 << 20, Followers: 10_000, FollowerWrite: 10 * time.Second, KeepAlive: 15 * time.Second, Agents: 100_000, Participants: 1000,
			InFlight: 65536, LoadedChannels: 200_000, Endpoints: 16, Transient: 100_000, Replay: 4096, Held: 16, Inbox: 4096, States: 64, Deadlines: 64, OpenRequests: 64, AskedRequests: 1000, OpenTasks: 256, OpenTasksOwner: 64, Lists: 32 << 20, Reads: 64 << 20, RuleGlobs: 4096, GraphConditions: 16384, GraphValues: 1024, ContextVars: 16384,
			Document: 64 << 10, Documents: 100_000, Content: 64 << 20, ContentTotal: 1 << 30, ContentHub: 10 << 30,
		},
		Agents:  config.Agents{Runs: 16, Money: "0", PriceInput: "0", PriceOutput: "0"},
		Console: config.Console{Enabled: true, Session: 12 * time.Hour, Sessions: 1000},
		Hub: config.Hub{
			InviteAckTimeout: 25 * time.Second, TTLSweepInterval: 30 * time.Second, ExpectationSweepInterval: 10 * time.Second,
			RestartGrace: time.Minute, HoldFor: 30 * time.Second, IdempotencyWindow: 24 * time.Hour, EvictAfter: 10 * time.Minute,
		},
		Bridge:  config.Bridge{MaxHops: 8},
		Tracing: config.Tracing{Percent: 100, Queue: 8192, Timeout: 10 * time.Second},
		Cluster: config.Cluster{Name: "parley", Shards: 12, Replicas: 3, Suspect: 1200 * time.Millisecond, GroupBytes: 1 << 20},
	}
	if diff := cmp.Diff(want, config.Core.Default()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestLaterSourcesWin(t *testing.T) {
	t.Parallel()
	file := write(t, "http:\n  listen: 127.0.0.1:1\n  hosts: [a.example, b.example:8443]\nlog.level: warn\nlimits:\nshutdown:\n  timeout: 3s\ndata: {min_free: 0}\n")
	got, err := everything.Load(config.Sources{
		File:    file,
		Environ: []string{"PARLEY_LOG_LEVEL=error", "PARLEY_HTTP_LISTEN=127.0.0.1:2", "PARLEY_SCALE=9", "PARLEY_TOKEN=t", "PARLEY_SERVICE_HOST=10.0.0.1", "PARLEY_PORT_7440_TCP=tcp://10.0.0.1:7440", "PARLEY_HUB=http://127.0.0.1:7440", "HOME=/", "PARLEY_HTTP_ORIGINS=https://a, https://b"},
		Flags:   map[string]string{"http.listen": "127.0.0.1:3", "http.insecure": "true"},
		Named:   map[string]string{"http.listen": "--listen", "http.insecure": "--insecure"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := everything.Default()
	want.HTTP.Listen = "127.0.0.1:3"
	want.HTTP.Hosts = []string{"a.example", "b.example:8443"}
	want.HTTP.Origins = []string{"https://a", "https://b"}
	want.HTTP.Insecure = true
	want.Log.Level = "error"
	want.Shutdown.Timeout = 3 * time.Second
	want.Data.MinFree = 0
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}

	origins := map[string]string{}
	for _, e := range got.Effective {
		if e.Origin != "default" {
			origins[e.Key+" = "+e.Text()] = strings.ReplaceAll(e.Origin, file, "FILE")
		}
	}
	if diff := cmp.Diff(map[string]string{
		"http.listen = 127.0.0.1:3":              "flag --listen",
		"http.insecure = true":                   "flag --insecure",
		"http.hosts = a.example, b.example:8443": "file FILE:3",
		"http.origins = https://a, https://b":    "environment PARLEY_HTTP_ORIGINS",
		"log.level = error":                      "environment PARLEY_LOG_LEVEL",
		"shutdown.timeout = 3s":                  "file FILE:7",
		"data.min_free = 0":                      "file FILE:8",
	}, origins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	if len(got.Effective) != len(everything) {
		t.Errorf("%d effective values of %d keys", len(got.Effective), len(everything))
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		src  config.Sources
		file string
		want []string
	}{
		{name: "unknown key", file: "http:\n  listn: x\n", want: []string{"FILE:2: unknown key http.listn; did you mean http.listen?"}},
		{name: "nothing like it", file: "foo:\n  bar: x\n", want: []string{"FILE:2: unknown key foo.bar; parley config reference lists them"}},
		{name: "swapped letters", file: "ag2:\n  alolw_none: never\n", want: []string{"did you mean ag2.allow_none?"}},
		{name: "bare last part", file: "listen: x\n", want: []string{"FILE:1: unknown key listen; did you mean http.listen?"}},
		{name: "value where a section is", file: "data: x\n", want: []string{"unknown key data; did you mean data.dir?"}},
		{name: "section where a value is", file: "log:\n  level:\n    a: b\n", want: []string{"FILE:3: unknown key log.level.a; did you mean log.level?"}},
		{name: "every mistake at once", file: "http:\n  listn: x\n  max_header: big\n", src: config.Sources{Environ: []string{"PARLEY_LOG_LEVEL=loud"}}, want: []string{
			"unknown key http.listn", `http.max_header: "big" is refused: a size looks like 512MiB`, `environment PARLEY_LOG_LEVEL: log.level: "loud" is refused: it is one of debug, info, warn, error`,
		}},
		{name: "more than will do", file: "limits:\n  open_tasks: 481\n  deadlines: 4097\n", want: []string{
			`limits.open_tasks: "481" is refused: it is at most 440`, `limits.deadlines: "4097" is refused: it is at most 4096`,
		}},
		{name: "no YAML", file: "a: [", want: []string{"FILE: yaml: "}},
		{name: "a key twice", file: "log:\n  level: info\n  level: warn\n", want: []string{"already defined at line 2"}},
		{name: "list for one value", file: "http:\n  listen: [a, b]\n", want: []string{"http.listen: a list is given; one value is expected"}},
		{name: "missing value", file: "http:\n  listen:\n", want: []string{"http.listen: the value is missing"}},
		{name: "list of numbers", file: "http:\n  hosts: [1]\n", want: []string{"http.hosts: 1 is not a text without commas"}},
		{name: "fraction", file: "limits:\n  inbox: 1.5\n", want: []string{"limits.inbox: the fraction 1.5 is given; a whole number is expected"}},
		{name: "section for one value", file: "http:\n  listen: {}\nlog:\n  level: 2.5\nag2:\n  trust_clients: 0.5\n", want: []string{
			"http.listen: a section is given; a text is expected", "log.level: the fraction 2.5 is given; one of debug, info, warn, error is expected",
			"ag2.trust_clients: the fraction 0.5 is given; true or false is expected",
		}},
		{name: "no address", file: "http:\n  listen: nonsense\n", want: []string{`FILE:2: http.listen: "nonsense" is refused: it is not an address to listen on; it looks like 127.0.0.1:7440`}},
		{name: "a scheme in a host", file: "http:\n  hosts: [hub.example, https://hub.example]\n", want: []string{`"https://hub.example" is not a host, which looks like hub.example`}},
		{name: "a path in an origin", file: "http:\n  origins: [https://desk.example/app]\n", want: []string{`"https://desk.example/app" is not an origin, which looks like https://desk.example`}},
		{name: "an event no client takes", file: "limits:\n  event: 64MiB\n", want: []string{`limits.event: "64MiB" is refused: it is at most 1MiB`}},
		{name: "zero", file: "limits:\n  inbox: 0\n", want: []string{`limits.inbox: "0" is refused: it must be more than 0`}},
		{name: "negative", file: "limits:\n  inbox: -1\n", want: []string{"it must be more than 0"}},
		{name: "negative size", file: "limits:\n  body: -1\n", want: []string{"a size looks like"}},
		{name: "no number", file: "limits:\n  inbox: many\n", want: []string{"it is a whole number"}},
		{name: "duration without unit", file: "shutdown:\n  timeout: 5\n", want: []string{"a duration looks like 25s"}},
		{name: "zero duration", file: "shutdown:\n  timeout: 0s\n", want: []string{"it must be more than 0"}},
		{name: "no bool", file: "ag2:\n  trust_clients: perhaps\n", want: []string{"it is true or false"}},
		{name: "certificate alone", file: "tls:\n  cert: a.pem\n", want: []string{"tls.cert and tls.key belong together"}},
		{name: "no such file", src: config.Sources{File: "no-such.yaml"}, want: []string{"configuration file: stat no-such.yaml"}},
		{name: "environment", src: config.Sources{Environ: []string{"PARLEY_HTTP_LISTN=x"}}, want: []string{"environment: unknown setting PARLEY_HTTP_LISTN; did you mean PARLEY_HTTP_LISTEN?"}},
		{name: "environment, section alone", src: config.Sources{Environ: []string{"PARLEY_DATA=x"}}, want: []string{"unknown setting PARLEY_DATA; did you mean PARLEY_DATA_DIR?"}},
		{name: "environment, a slip in the section", src: config.Sources{Environ: []string{"PARLEY_LIMTS_BODY=4MiB"}}, want: []string{"environment: unknown setting PARLEY_LIMTS_BODY; did you mean PARLEY_LIMITS_BODY?"}},
		{name: "environment, no section", src: config.Sources{Environ: []string{"PARLEY_LISTEN=x"}}, want: []string{"unknown setting PARLEY_LISTEN; did you mean PARLEY_HTTP_LISTEN?"}},
		{name: "flag", src: config.Sources{Flags: map[string]string{"htp.listen": "x"}, Named: map[string]string{"htp.listen": "--set"}}, want: []string{"flag --set: unknown key htp.listen; did you mean http.listen?"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.file != "" {
				tc.src.File = write(t, tc.file)
			}
			_, err := everything.Load(tc.src)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if text := strings.ReplaceAll(err.Error(), tc.src.File, "FILE"); tc.file != "" && !strings.Contains(text, want) {
					t.Errorf("error %q lacks %q", text, want)
				} else if tc.file == "" && !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

// What browsers and clients send is accepted in every form that they send it in.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for key, cases := range map[string]map[string]bool{
		"http.listen": {
			"127.0.0.1:7440": true, ":0": true, "[::1]:7440": true, "localhost:80": true, "hub.internal:65535": true, "0.0.0.0:1": true, "[fe80::1%eth0]:1": true,
			"": false, "7440": false, "127.0.0.1": false, "127.0.0.1:65536": false, "127.0.0.1:x": false, "127.0.0.1:": false, "::1:7440": false,
			"http://127.0.0.1:7440": false, "127.0.0.1:7440/": false, "a b:1": false,
		},
		"http.origins": {
			"https://desk.example": true, "https://Desk.Example/": true, "http://localhost:3000": true, "http://[::1]:3000": true, "app://desk": true, "": true,
			"desk.example": false, "https://": false, "https://desk.example/app": false, "https://desk.example//": false, "https://a@desk.example": false,
			"https://desk.example?x": false, "https://desk.example:x": false, "*": false, "https://*.example": false, "null": false, "//desk.example": false,
		},
		"http.hosts": {
			"hub.example": true, "hub.example:8443": true, "10.0.0.1": true, "[::1]": true, "[::1]:80": true, "::1": true, "my_host": true, "a, b:1": true,
			"https://hub.example": false, "hub.example/": false, "hub.example:": false, "hub.example:http": false, "a:b:c": false, "[::1": false, "*": false, "a b": false,
		},
		"tracing.otlp": {
			"": true, "http://127.0.0.1:4318": true, "http://[::1]:4318/": true, "https://collector.example/v1/traces": true,
			"127.0.0.1:4318": false, "grpc://collector:4317": false, "http://": false, "http://user:word@collector": false, "http://collector/?token=x": false,
		},
	} {
		for text, want := range cases {
			_, err := everything.Load(config.Sources{Flags: map[string]string{key: text}, Named: map[string]string{key: "--set"}})
			if (err == nil) != want {
				t.Errorf("%s=%q: %v", key, text, err)
			}
		}
	}
}

func TestHugeFileIsRefused(t *testing.T) {
	t.Parallel()
	_, err := everything.Load(config.Sources{File: write(t, strings.Repeat("# comment\n", 1<<17))})
	if err == nil || !strings.Contains(err.Error(), "the limit is 1048576") {
		t.Errorf("got %v", err)
	}
}

// A file written from the effective values says the same again.
func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	first, err := everything.Load(config.Sources{File: write(t, "http: {hosts: [a, b], idle_timeout: 90m}\nlimits: {body: 1000001}\n")})
	if err != nil {
		t.Fatal(err)
	}
	var again strings.Builder
	for _, e := range first.Effective {
		again.WriteString(e.Key + `: "` + e.Text() + "\"\n")
	}
	second, err := everything.Load(config.Sources{File: write(t, again.String())})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Config, second.Config); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Bytes{
		"0": 0, "17": 17, "17B": 17, "1KB": 1000, "1KiB": 1024, "3 MiB": 3 << 20, "2GiB": 2 << 30, "1TB": 1e12, "8388607TiB": 8388607 << 40,
	} {
		if got, err := config.ParseBytes(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "KiB", "9223372036854775808", "8388608TiB", "1 XB", "0x10"} {
		if got, err := config.ParseBytes(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := config.Bytes(rapid.Int64Min(0).Draw(t, "bytes"))
		if got, err := config.ParseBytes(want.String()); err != nil || got != want {
			t.Fatalf("%d is written as %s and read as %d, %v", want, want, got, err)
		}
	})
}

// everything are the settings of the command.
var everything = config.Core.With(ag2.Section.Keys(), hpd.Section.Keys(), agh.Section.Keys(), chat.Section.Keys())

func TestReferencePageIsCurrent(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	if err := everything.WriteReference(&want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("docs/config.md is not the output of `parley config reference`; run make docs")
	}
	for _, row := range everything.Reference() {
		if row.Meaning == "" || strings.Contains(row.Meaning, "|") || !strings.Contains(row.Key, ".") {
			t.Errorf("%+v cannot stand in the table", row)
		}
	}
}
