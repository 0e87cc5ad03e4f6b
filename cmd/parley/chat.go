package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

func (a *app) chat() *cobra.Command {
	var session, as string
	c := a.withHub(&cobra.Command{
		Use:   "chat AGENT [MESSAGE]",
		Short: "Talk to an agent",
		Long: `Talk to an agent, line by line, until the end of the input.

On a terminal the answer appears as it is written. Otherwise each line of the input
is answered with its answer. With a MESSAGE that alone is said. A session is kept by
the hub and goes on with --session; a hub that restarts is waited for, and nothing
is said twice.`,
		Example: `  parley chat helper "hello"
  echo hello | parley chat helper`,
		Args: cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		talk, err := a.openChat(ctx, hub, args[0], session, as)
		if err != nil {
			return err
		}
		if len(args) > 1 {
			return talk.say(ctx, args[1])
		}
		return talk.lines(ctx)
	})
	c.Flags().StringVar(&session, "session", "", "go on with the session of this `ID`")
	c.Flags().StringVar(&as, "as", "", "talk as the person or agent of this `NAME` (default: the key's own, or the hub's chat.user)")
	return c
}

// talk is a chat in a terminal.
type talk struct {
	app      *app
	hub      *v1.Client
	agent    string
	as       string
	session  string
	position string // of the last event
	terminal bool
}

func (a *app) openChat(ctx context.Context, hub *v1.Client, agent, session, as string) (*talk, error) {
	t := &talk{app: a, hub: hub, agent: agent, as: as, session: session, terminal: isTerminal(a.out) && a.output != "json"}
	if session != "" {
		known, _, err := hub.Chat(ctx, session, as)
		if err != nil {
			return nil, err
		}
		if t.terminal {
			t.recall(known)
		}
		return t, nil
	}
	made, err := hub.NewChat(ctx, agent, as)
	if err != nil {
		return nil, err
	}
	t.session = made.ID
	if t.terminal {
		fmt.Fprintf(a.err, "Session %s; go on with it later by --session. End with Ctrl+D.\n", t.session)
	}
	return t, nil
}

// recall shows the last messages.
func (t *talk) recall(known *v1.ChatSession) {
	const most = 6
	for _, m := range known.Messages[max(0, len(known.Messages)-most):] {
		if text, ok := m.Content.(string); ok {
			fmt.Fprintf(cleanWriter{t.app.out}, "%s> %s\n", t.name(m.Role), text)
		}
	}
}

func (t *talk) name(role string) string {
	if role == "assistant" {
		return t.agent
	}
	return "you"
}

// lines sends each line of the input.
func (t *talk) lines(ctx context.Context) error {
	input := bufio.NewScanner(t.app.in)
	input.Buffer(nil, 1<<20)
	file, ok := t.app.in.(*os.File)
	prompt := t.terminal && ok && isTerminal(file)
	for {
		if prompt {
			fmt.Fprint(t.app.out, "you> ")
		}
		if !input.Scan() || ctx.Err() != nil {
			break
		}
		if strings.TrimSpace(input.Text()) == "" {
			continue
		}
		if err := t.say(ctx, input.Text()); err != nil {
			if !prompt {
				return err
			}
			fmt.Fprintln(cleanWriter{t.app.err}, "parley:", err)
		}
	}
	if prompt {
		fmt.Fprintln(t.app.out)
	}
	return input.Err()
}

// say sends one message, and shows the answer while it is written. It follows the
// session's stream, which continues after a restart of the hub.
func (t *talk) say(ctx context.Context, text string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run := "chat_" + envelope.NewID()
	saying := v1.Saying{As: t.as, Agent: t.agent, Session: t.session, Run: run, Message: text}
	posted := make(chan struct{})
	begun := false
	shown := &shownReply{out: t.app.out, live: t.terminal, who: t.agent}
	var answer json.RawMessage
	err := t.hub.FollowChat(ctx, t.session, t.position, func() {
		if !begun {
			begun = true
			go func() {
				defer close(posted)
				if err := t.post(ctx, saying); err != nil {
					cancel(err)
				}
			}()
		}
	}, func(f v1.Frame) error {
		t.position = cmp.Or(f.ID, t.position)
		var about struct {
			Run    string          `json:"run_id"`
			At     int             `json:"at"`
			Text   string          `json:"text"`
			Answer json.RawMessage `json:"answer"`
		}
		if json.Unmarshal(f.Data, &about) != nil || about.Run != run {
			return nil
		}
		switch f.Name {
		case "delta":
			shown.add(about.At, about.Text)
		case "reset":
			shown.reset()
		case "ended":
			answer = about.Answer
			return v1.ErrStop
		}
		return nil
	})
	cause := context.Cause(ctx)
	if begun {
		cancel(nil)
		<-posted
	}
	switch {
	case err != nil:
		return err
	case answer == nil && cause != nil && !errors.Is(cause, context.Canceled):
		return cause
	case answer == nil:
		return nil // stopped
	}
	return t.answered(answer, shown)
}

// post starts the run, and retries while the hub is away: the run's id makes that
// safe.
func (t *talk) post(ctx context.Context, saying v1.Saying) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		_, err := t.hub.Say(ctx, saying)
		var refused *fault.Error
		if err == nil || ctx.Err() != nil || errors.As(err, &refused) && !fault.Retryable(err) {
			return err
		}
		select {
		case <-time.After(pause):
			t.hub.Relocate()
		case <-ctx.Done():
			return nil
		}
	}
}

func (t *talk) answered(raw json.RawMessage, shown *shownReply) error {
	var answer v1.ChatAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	if t.app.output == "json" {
		_, err := fmt.Fprintf(t.app.out, "%s\n", raw)
		return err
	}
	if !answer.Completed {
		shown.reset()
		return fmt.Errorf("%s did not answer: %s", t.agent, cmp.Or(answer.Outcome.Failure.Message, answer.Status))
	}
	return shown.end(answer.Reply)
}

// shownReply is the part of a reply that is on the screen.
type shownReply struct {
	out   io.Writer
	live  bool
	who   string
	text  string
	holed bool // a part was missed: the rest is shown at the end
}

func (s *shownReply) add(at int, text string) {
	if !s.live || s.holed || at != len(s.text) {
		s.holed = s.holed || at != len(s.text)
		return
	}
	if s.text == "" {
		fmt.Fprintf(s.out, "%s> ", clean(s.who))
	}
	fmt.Fprint(cleanWriter{s.out}, text)
	s.text += text
}

// reset leaves the shown text and begins a new line.
func (s *shownReply) reset() {
	if s.text != "" {
		fmt.Fprintln(s.out, " …")
	}
	s.text, s.holed = "", false
}

// end shows the rest of a reply.
func (s *shownReply) end(reply string) error {
	if !strings.HasPrefix(reply, s.text) {
		s.reset()
	}
	if s.live && s.text == "" {
		fmt.Fprintf(s.out, "%s> ", clean(s.who))
	}
	_, err := fmt.Fprintln(cleanWriter{s.out}, reply[len(s.text):])
	return err
}
