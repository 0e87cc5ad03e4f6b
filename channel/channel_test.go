package channel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/channel"
)

func TestParticipants(t *testing.T) {
	t.Parallel()
	m := sample()
	if diff := cmp.Diff([]string{"agt-a", "agt-b"}, m.IDs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"agt-a"}, m.Others("agt-b")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"agt-a", "agt-b"}, m.Others("agt-x")); diff != "" {
		t.Error(diff)
	}
	p, ok := m.Participant("agt-b")
	if !ok || p != m.Participants[1] {
		t.Errorf("agt-b is %+v, %v", p, ok)
	}
	if m.Has("agt-x") || !m.Has("agt-a") {
		t.Error("membership is wrong")
	}
	if got := m.Manifest.Key(); got != (channel.Key{Type: "conversation", Version: 1}) {
		t.Errorf("key is %+v", got)
	}
}

func TestClone(t *testing.T) {
	t.Parallel()
	m := sample()
	m.PendingAcks, m.RejectedBy = []string{"agt-b"}, []string{"agt-a"}
	c := m.Clone()
	if diff := cmp.Diff(m, c); diff != "" {
		t.Fatal(diff)
	}
	c.Participants[0].Agent, c.PendingAcks[0], c.RejectedBy[0], c.Labels["intent"] = "x", "x", "x", "x"
	want := sample()
	want.PendingAcks, want.RejectedBy = []string{"agt-b"}, []string{"agt-a"}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Fatalf("a change of the copy reached the original:\n%s", diff)
	}
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	all := []channel.Lifecycle{channel.Unset, channel.Pending, channel.Active, channel.Closing, channel.Closed, channel.Expired}
	legal := map[string][]string{
		"": {"pending", "active"}, "pending": {"active", "closed", "expired"},
		"active": {"closing", "closed", "expired"}, "closing": {"closed", "expired"},
	}
	for _, l := range all {
		var next []string
		for _, n := range all {
			if l.CanBecome(n) {
				next = append(next, n.String())
			}
		}
		if diff := cmp.Diff(legal[l.String()], next); diff != "" {
			t.Errorf("from %q:\n%s", l, diff)
		}
		if want := l == channel.Closed || l == channel.Expired; l.Terminal() != want {
			t.Errorf("%q terminal: %v", l, l.Terminal())
		}
		parsed, err := channel.ParseLifecycle(l.String())
		if l != channel.Unset && (err != nil || parsed != l) {
			t.Errorf("%q reads as %v, %v", l, parsed, err)
		}
	}
	for _, bad := range []string{"", "invited", "Active"} {
		if _, err := channel.ParseLifecycle(bad); err == nil {
			t.Errorf("%q is a state", bad)
		}
	}
	for l, want := range map[channel.Lifecycle]string{-1: "lifecycle(-1)", 6: "lifecycle(6)", 9: "lifecycle(9)"} {
		if got := l.String(); got != want {
			t.Errorf("an unknown state is %q, not %q", got, want)
		}
	}
}
