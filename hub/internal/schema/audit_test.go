package schema_test

import (
	"testing"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/hub/internal/schema"
)

// Both ways to write a record give the same bytes.
func TestEncodeSortedAudit(t *testing.T) {
	t.Parallel()
	const at, kind = "2026-01-02T03:04:05.000006Z", "tide"
	for _, list := range [][]schema.AuditField{
		nil,
		{{Name: "a", Text: "first"}},
		{{Name: "channel", Text: ""}, {Name: "message", Text: "say \"high\" \xff"}, {Name: "size", IsNumber: true, Number: 7}},
		{{Name: "zone", IsNumber: true}},
	} {
		fields := map[string]any{}
		for _, f := range list {
			if fields[f.Name] = f.Text; f.IsNumber {
				fields[f.Name] = int(f.Number)
			}
		}
		want, err := schema.EncodeAudit(at, kind, fields)
		if err != nil {
			t.Fatal(err)
		}
		got, err := schema.EncodeSortedAudit(at, kind, list)
		if err != nil || string(got) != string(want) {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}

// EncodeOpened writes the same bytes as EncodeAudit does for these fields.
func TestEncodeOpened(t *testing.T) {
	t.Parallel()
	const at = "2026-01-02T03:04:05.000006Z"
	m := &channel.Metadata{
		ID: "c1", Creator: "a", Manifest: &channel.Manifest{Type: "tide \"high\"", Version: 3},
		Participants: []channel.Participant{{Agent: "a"}, {Agent: "b"}},
	}
	alone := *m
	alone.Participants = nil
	for _, m := range []*channel.Metadata{m, &alone} {
		for _, by := range []*schema.AuditBy{nil, {}, {Agents: []string{"a", "b\xff"}}, {Connection: "\xff", Key: "k", Role: "operator"}} {
			fields := map[string]any{
				"channel_id": m.ID, "manifest_type": m.Manifest.Type, "manifest_version": m.Manifest.Version,
				"creator_id": m.Creator, "participants": m.IDs(),
			}
			if by != nil {
				fields["by"] = by.Map()
			}
			want, err := schema.EncodeAudit(at, schema.AuditOpened, fields)
			if err != nil {
				t.Fatal(err)
			}
			got, err := schema.EncodeOpened(at, m, by)
			if err != nil || string(got) != string(want) {
				t.Errorf("got %s, %v; want %s", got, err, want)
			}
		}
	}
}
