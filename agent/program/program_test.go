package program_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/agenttest"
	"github.com/parley-hub/parley/agent/program"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/schemas"
)

// role makes this test binary the program that a test runs.
const role = "PROGRAM_TEST_ROLE"

func TestMain(m *testing.M) {
	if as := os.Getenv(role); as != "" {
		play(as, os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// play does what the programs of the tests do.
func play(as string, args []string) {
	switch as {
	case "print": // its argument, whatever it reads
		fmt.Fprint(os.Stdout, args[0])
	case "binary":
		fmt.Fprint(os.Stdout, "\xff")
	case "echo": // the call's key and what it reads
		in, _ := io.ReadAll(os.Stdin)
		fmt.Fprintf(os.Stdout, "%s: %s", os.Getenv("PARLEY_CALL_KEY"), in)
	case "save": // what it reads to a file
		in, err := io.ReadAll(os.Stdin)
		if err == nil {
			err = os.WriteFile(args[0], in, 0o600)
		}
		fmt.Fprintf(os.Stdout, `{"text":"saved %v"}`, err)
	case "flood":
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("x", 4096)); err != nil {
				return
			}
		}
	case "fail":
		fmt.Fprint(os.Stderr, "the disk is full")
		os.Exit(3)
	case "family": // a child that stays, and perhaps itself
		child := exec.Command(os.Args[0], args[0])
		child.Env = append(os.Environ(), role+"=hold")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		if args[1] == "stay" {
			_ = child.Wait()
		}
		connect(args[0], "parent") // until the test has seen the child
		fmt.Fprint(os.Stdout, `{"text":"gone"}`)
	case "leave": // behind a child of another group
		if err := leave(args[0]); err != nil {
			panic(err)
		}
		connect(args[0], "parent")
		fmt.Fprint(os.Stdout, `{"text":"gone"}`)
	case "hold": // a connection, until it is ended
		connect(args[0], "child!")
	case "tool": // calls peers, then prints the result
		in, err := io.ReadAll(os.Stdin)
		if err != nil || !bytes.Contains(in, []byte(`"role":"tool"`)) {
			fmt.Fprint(os.Stdout, `{"calls":[{"id":"a","name":"peers","arguments":{"action":"list"}}]}`)
			return
		}
		fmt.Fprint(os.Stdout, `{"text":"asked the peers"}`)
	}
}

// connect identifies itself, and waits until the test closes the connection.
func connect(address, who string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, who)
	_, _ = io.Copy(io.Discard, conn)
}

func newProgram(t *testing.T, as string, o program.Options, args ...string) *program.Program {
	t.Helper()
	o.Env = append(os.Environ(), role+"="+as)
	p, err := program.New(append([]string{os.Args[0]}, args...), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ask(t *testing.T, p *program.Program, prompt *agent.Prompt) (*agent.Response, error) {
	t.Helper()
	return p.Respond(t.Context(), prompt)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	routing := &agent.Prompt{Tools: []*agent.Tool{{Name: agent.HandoffTool}, {Name: agent.FinishTool}}}
	for _, test := range []struct {
		name, printed string
		prompt        *agent.Prompt
		want          agent.Response
	}{
		{"a text", `{"text":"hello"}`, &agent.Prompt{}, agent.Response{Text: "hello"}},
		{"silence", "{}\n", &agent.Prompt{}, agent.Response{}},
		{
			"calls", `{"text":"hm","calls":[{"id":"1","name":"a","arguments":{"x":1.0}},{"name":"b"}]}`, &agent.Prompt{},
			agent.Response{Text: "hm", Calls: []turn.Call{{ID: "1", Name: "a", Arguments: `{"x":1.0}`}, {Name: "b"}}},
		},
		{
			"a handoff", `{"text":"over","handoff":{"target":"bob","reason":"taxes"}}`, routing,
			agent.Response{Text: "over", Calls: []turn.Call{{Name: "handoff", Arguments: `{"target":"bob","reason":"taxes"}`}}},
		},
		{
			"a finish", `{"finish":{"reason":"done"}}`, routing,
			agent.Response{Calls: []turn.Call{{Name: "finish", Arguments: `{"reason":"done"}`}}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if err := schemas.Validate("agent-answer", []byte(test.printed)); err != nil {
				t.Error(err)
			}
			got, err := ask(t, newProgram(t, "print", program.Options{}, test.printed), test.prompt)
			if err != nil || fmt.Sprint(*got) != fmt.Sprint(test.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestWhatIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, printed, says string }{
		{"nothing", " \n", "printed nothing"},
		{"no JSON", "hello", `print one JSON object such as {"text":"hello"}`},
		{"two", `{"text":"a"}{"text":"b"}`, "is not an answer"},
		{"an unknown key", `{"txt":"a"}`, "txt"},
		{"a key twice", `{"text":"a","text":"b"}`, "is not an answer"},
		{"two ends", `{"handoff":{"target":"b"},"finish":{}}`, "both handoff and finish"},
		{"a call without a name", `{"calls":[{}]}`, "calls[0] has no name"},
		{"arguments that are a list", `{"calls":[{"name":"a","arguments":[]}]}`, "not an object"},
		{"a handoff in a conversation", `{"handoff":{"target":"b"}}`, "only a workflow channel takes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := ask(t, newProgram(t, "print", program.Options{}, test.printed), &agent.Prompt{})
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// A program that prints without end is ended, and a failed one is reported
// with its exit code; its standard error is not sent to the hub.
func TestBounds(t *testing.T) {
	t.Parallel()
	if _, err := ask(t, newProgram(t, "flood", program.Options{Output: 10_000}), &agent.Prompt{}); fault.CodeOf(err) != fault.TooLarge ||
		!strings.Contains(err.Error(), "more than 10000 bytes") {
		t.Errorf("got %v", err)
	}
	var stderr bytes.Buffer
	_, err := ask(t, newProgram(t, "fail", program.Options{Stderr: &stderr}), &agent.Prompt{})
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "exit status 3") || strings.Contains(err.Error(), "disk") {
		t.Errorf("got %v", err)
	}
	if stderr.String() != "the disk is full" {
		t.Errorf("standard error: %q", stderr.String())
	}
	// A turn larger than a pipe, which the program does not read.
	large := &agent.Prompt{System: strings.Repeat("x", 1<<20)}
	if got, err := ask(t, newProgram(t, "print", program.Options{}, `{"text":"ok"}`), large); err != nil || got.Text != "ok" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := program.New([]string{"no-such-command-at-all"}, program.Options{}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
	if _, err := program.New(nil, program.Options{}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
}

// held returns where a program and its child connect. The child's connection is
// returned, and the program's is closed once the child is there.
func held(t *testing.T) (address string, child <-chan net.Conn) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	found := make(chan net.Conn, 1)
	go func() {
		var parents []net.Conn
		there := false
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			who := make([]byte, len("parent"))
			if _, err := io.ReadFull(conn, who); err == nil && string(who) == "parent" {
				parents = append(parents, conn)
			} else if err == nil {
				found <- conn
				there = true
			}
			if there {
				for _, parent := range parents {
					_ = parent.Close()
				}
			}
		}
	}()
	return listener.Addr().String(), found
}

// dead waits until the other side of a connection has ended.
func dead(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the child is still there: %v", err)
	}
}

// However the program ends, the processes that it started end too.
func TestTheWholeGroupEnds(t *testing.T) {
	t.Parallel()
	t.Run("when the context ends", func(t *testing.T) {
		t.Parallel()
		address, conns := held(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		p := newProgram(t, "family", program.Options{}, address, "stay")
		go func() {
			_, err := p.Respond(ctx, &agent.Prompt{})
			ended <- err
		}()
		conn := <-conns
		defer conn.Close()
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		dead(t, conn)
	})
	t.Run("when its time is over", func(t *testing.T) {
		t.Parallel()
		address, conns := held(t)
		// The child may connect late, or never, on a busy machine: every
		// process that connected must be gone.
		_, err := ask(t, newProgram(t, "family", program.Options{Timeout: time.Second}, address, "stay"), &agent.Prompt{})
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "did not end within 1s") {
			t.Errorf("got %v", err)
		}
		select {
		case conn := <-conns:
			defer conn.Close()
			dead(t, conn)
		default:
		}
	})
	t.Run("when it has answered", func(t *testing.T) {
		t.Parallel()
		address, conns := held(t)
		got, err := ask(t, newProgram(t, "family", program.Options{}, address, "go"), &agent.Prompt{})
		if err != nil || got.Text != "gone" {
			t.Errorf("got %+v, %v", got, err)
		}
		conn := <-conns
		defer conn.Close()
		dead(t, conn)
	})
}

// A program takes part in a channel: its input matches the schema, its calls
// run, and it is asked again with their results.
func TestInAChannel(t *testing.T) {
	t.Parallel()
	network := agenttest.New()
	file := t.TempDir() + "/turn.json"
	talk(t, network, "scribe", newProgram(t, "save", program.Options{}, file), "take this down", "saved <nil>")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := schemas.Validate("agent-turn", raw); err != nil {
		t.Errorf("%s: %v", raw, schemas.Problems(err))
	}
	for _, part := range []string{
		`"agent":{"id":"id-scribe","name":"scribe"}`, `"type":"consulting"`, `{"id":"id-ines-scribe","name":"ines-scribe"}`,
		`"input":"take this down"`, `"depth":0`, `"name":"delegate"`,
	} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("no %s in %s", part, raw)
		}
	}
	talk(t, network, "asker", newProgram(t, "tool", program.Options{}), "who is there?", "asked the peers")
}

func talk(t *testing.T, network *agenttest.Network, name string, model agent.Model, say, want string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	a := agent.New(network.Join(name), model, agent.Options{RoutingTools: true})
	go func() { ended <- a.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	person := agent.NewHuman(network.Join("ines-"+name), agent.HumanOptions{})
	defer person.Disconnect()
	m, err := person.Open(ctx, agent.Opening{Type: "consulting", Participants: []string{"id-" + name}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := person.Send(ctx, m.ID, say, turn.Address{}); err != nil {
		t.Fatal(err)
	}
	reply, err := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(reply.Data), want) {
		t.Errorf("got %s, want %q", reply.Data, want)
	}
}
