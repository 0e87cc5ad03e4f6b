package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/agh/wire"
)

// What may stand on standard input of the tools, however odd: each line has one
// verdict, and only what cannot be read at all is an error.
func TestAGHToolsOddInput(t *testing.T) {
	t.Parallel()
	tool := func(in string, args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"agh"}, args...), streams{in: strings.NewReader(in), out: &out, err: &errs}, nil)
		return code, out.String(), errs.String()
	}
	const head = `{"protocol":"agh-network/v0","id":"m-1","workspace_id":"ws","kind":"say","channel":"dock","surface":"thread","thread_id":"thread_tide","from":"crane.s01","ts":1776366000,"body":{"text":"`
	line := func(size int) string { return head + strings.Repeat("x", size-len(head)-len(`"}}`)) + `"}}` }
	fits, over, small := line(wire.MaxBytes), line(wire.MaxBytes+1), line(300)
	const fine, unread = "fine", "unread"
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":                       {"", nil},
		"blank lines":                   {"\n \n\r\n\t\n", nil},
		"no line break at the end":      {small, []string{fine}},
		"line breaks of other systems":  {small + "\r\n\r\n" + small + "\r\n", []string{fine, fine}},
		"the largest":                   {fits + "\n" + small + "\n", []string{fine, fine}},
		"the largest, with CRLF":        {fits + "\r\n" + small + "\r\n", []string{fine, fine}},
		"one byte too many":             {over + "\n" + small, []string{unread, fine}},
		"one byte too many, with CRLF":  {over + "\r\n" + small, []string{unread, fine}},
		"far too many":                  {strings.Repeat("x", 5<<20) + "\n" + small, []string{unread, fine}},
		"invalid UTF-8, a BOM, no JSON": {"\xff\xfe\n\ufeff" + small + "\n{\nnull\n[]\n", []string{unread, unread, unread, unread, unread}},
		"a zero byte":                   {"\x00\n" + small, []string{unread, fine}},
	} {
		code, out, errs := tool(c.in, "validate", "--now", "1776366000")
		var got []string
		for row := range strings.Lines(out) {
			var v struct {
				ID   *string
				OK   bool
				Code string
			}
			if err := json.Unmarshal([]byte(row), &v); err != nil {
				t.Fatalf("%s: %s: %v", name, row, err)
			}
			switch {
			case v.OK && v.ID != nil && *v.ID == "m-1":
				got = append(got, fine)
			case !v.OK && v.ID == nil && v.Code == "malformed":
				got = append(got, unread)
			default:
				got = append(got, row)
			}
		}
		if code != 0 || strings.Join(got, " ") != strings.Join(c.want, " ") || errs != "" {
			t.Errorf("%s: exit %d, %v, want %v; %s", name, code, got, c.want, errs)
		}
		code, out, _ = tool(c.in, "verify")
		if code != 0 || strings.Count(out, "\n") != len(c.want) || strings.Count(out, `"state":"unverified"`) != strings.Count(strings.Join(c.want, " "), fine) {
			t.Errorf("%s: verify: exit %d, %.300s", name, code, out)
		}
	}
	for _, c := range []struct {
		in   string
		args []string
		code int
		out  string
	}{
		{"", []string{"jcs"}, 1, ""},
		{" \n", []string{"jcs"}, 1, ""},
		{"1e400", []string{"jcs"}, 1, ""},
		{"[1] [2]", []string{"jcs"}, 1, ""},
		{"\"\xff\"", []string{"jcs"}, 1, ""},
		{`"\ud800"`, []string{"jcs"}, 1, ""},
		{"\ufeff1", []string{"jcs"}, 1, ""},
		{" \r\n-0 \r\n", []string{"jcs"}, 0, "0"},
		{"", []string{"digest"}, 1, ""},
		{"{}", []string{"digest"}, 1, ""},
		{`{"id":" lift-load","summary":"Lift one load.","outcome":"The load stands on the quay.","version":null,"examples":[" "]}` + "\r\n", []string{"digest"}, 0, "sha256:ee37844f021db568e388a9fcb0fa5c476512cc19e1f2713b6e0c9ca4f0b2e898\n"},
		{"", []string{"validate", "--now", "soon"}, 2, ""},
		{"", []string{"validate", "--strict", "--lenient"}, 2, ""},
		{"", []string{"validate", "file.jsonl"}, 2, ""},
		{"", []string{"route-token"}, 2, ""},
		{"", []string{"route-token", "Bad"}, 1, ""},
		{"", []string{"direct-id", "--workspace", "w", "--channel", "c", "a", "a"}, 1, ""},
	} {
		if code, out, errs := tool(c.in, c.args...); code != c.code || out != c.out || (errs == "") != (code == 0) {
			t.Errorf("%q %v: exit %d, %q, %q", c.in, c.args, code, out, errs)
		}
	}
}
