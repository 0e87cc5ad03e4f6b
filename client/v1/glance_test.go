package v1_test

import (
	"encoding/json"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
)

func TestChannelsAtAGlance(t *testing.T) {
	t.Parallel()
	base, stop := startHub("alice", "bob")
	t.Cleanup(stop)
	c, err := v1.New(base, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ch, err := c.OpenChannel(t.Context(), v1.Opening{Type: "consulting", Creator: "alice", Participants: []string{"bob"}, Intent: "review"})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := c.Rows(t.Context(), nil)
	if err != nil || len(rows.Items) != 1 || rows.Items[0].ID != ch.ID || rows.Items[0].Title != "review" || rows.Items[0].Turn == nil || rows.Items[0].Turn.Name != "alice" {
		t.Errorf("rows: %+v %v", rows, err)
	}
	turns, err := c.Turns(t.Context(), "alice", nil)
	if err != nil || len(turns.Items) != 1 || turns.Items[0].Channel != ch.ID {
		t.Errorf("turns: %+v %v", turns, err)
	}
	sum, err := c.Summary(t.Context())
	if err != nil || sum.Channels.Active != 1 || sum.Agents.Registered != 2 {
		t.Errorf("summary: %+v %v", sum, err)
	}
	who, err := c.Session(t.Context())
	if err != nil || who.Hub.Version == "" || who.Hub.Epoch == "" {
		t.Errorf("session: %+v %v", who, err)
	}
	var told []string
	err = c.Watch(t.Context(), []string{"rows:" + ch.ID}, func(f v1.Frame) error {
		told = append(told, f.Name)
		if f.Name == "hello" {
			var hello struct{ Watch string }
			if err := json.Unmarshal(f.Data, &hello); err != nil {
				return err
			}
			return c.ChangeWatch(t.Context(), hello.Watch, []string{"summary"})
		}
		if f.Name == "summary" {
			return v1.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Errorf("told %v: %v", told, err)
	}
}
