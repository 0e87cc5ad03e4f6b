package api

import (
	"bufio"
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view"
)

// exportForms are the forms of a download, with media type and file name extension.
var exportForms = map[string][2]string{
	"jsonl":    {"application/jsonl", ".jsonl"},
	"messages": {"application/json", ".messages.json"},
	"markdown": {"text/markdown; charset=utf-8", ".md"},
	"bundle":   {"application/jsonl", ".bundle.jsonl"},
}

// exportChannel downloads what the caller may see of a channel.
func (a *API) exportChannel(c *call) error {
	form := c.URL.Query().Get("form")
	form = cmp.Or(form, "jsonl")
	kind, ok := exportForms[form]
	if !ok {
		return fault.New(fault.Invalid, "form=%q is none of jsonl, messages, markdown and bundle", form)
	}
	m, err := a.see(c)
	if err != nil {
		return err
	}
	if form == "bundle" {
		return a.exportBundle(c, m)
	}
	as, err := a.viewer(c)
	if err != nil {
		return err
	}
	if form == "messages" {
		return a.exportMessages(c, kind)
	}
	var eyes []string
	if as != "" {
		eyes = []string{as}
	}
	sees, err := a.sight(c.Context(), m.ID, eyes)
	if err != nil {
		return err
	}
	at, err := a.hub.Position(c.Context(), m.ID)
	if err != nil {
		return err
	}
	title, err := a.title(c.Context(), m, sees)
	if err != nil {
		return err
	}
	if err := c.answer.Begin(c.Context(), a.cfg.Limits.Write); err != nil {
		return err
	}
	c.download(m, kind)
	out := c.answer.Pieces(c.Request, c.ResponseWriter, a.cfg.Limits.Write)
	if form == "markdown" {
		fmt.Fprintf(out, "# %s\n\n%s, %s, opened %s by %s\n", markdownText(title), m.ID, m.Manifest.Type, envelope.FormatTime(m.CreatedAt), markdownText(a.hub.Name(m.Creator)))
	}
	texts := a.texts(m)
	for e, err := range a.hub.Log(c.Context(), m.ID, 1, at.Seq) {
		if err != nil || !a.stands(c.who) {
			return nil // the answer has begun, so it can only end early
		}
		c.answer.Read(perEntry)
		if sees != nil && !sees(e) {
			continue
		}
		var data []byte
		if form == "markdown" {
			for _, one := range texts(e) {
				data = fmt.Appendf(data, "\n## %s\n\n%d · %s · %s\n\n%s\n", markdownText(a.hub.Name(one.by)), e.Seq, envelope.FormatTime(e.CreatedAt), e.Type, quoted(one.text))
			}
		} else {
			at.Seq = e.Seq
			if data, err = appendEvent(nil, e, at.String()); err != nil {
				return nil
			}
			data = append(data, '\n')
		}
		if _, err := out.Write(data); err != nil {
			return nil
		}
	}
	_ = out.End("")
	return nil
}

// exportMessages downloads canonical messages as GET …/messages returns them.
func (a *API) exportMessages(c *call, kind [2]string) error {
	m, as, err := a.eyes(c)
	if err != nil {
		return err
	}
	in, release, err := a.viewLog(c, m, as, 0)
	if err != nil {
		return err
	}
	defer release()
	c.answer.EndTurn() // so that a slow reader does not hold up others
	c.download(m, kind)
	out := bufio.NewWriter(c.ResponseWriter)
	separator := "[\n"
	for _, e := range view.Messages(in) {
		text, err := e.MarshalJSON()
		if err != nil {
			return nil
		}
		fmt.Fprintf(out, "%s%s", separator, text)
		separator = ",\n"
	}
	if separator == "[\n" {
		_, _ = out.WriteString("[")
	}
	_, _ = out.WriteString("]\n")
	_ = out.Flush()
	return nil
}

// download begins an answer that a browser stores. The file name is made from the id
// only, because a title may hold anything.
func (c *call) download(m *channel.Metadata, kind [2]string) {
	c.Header().Set("Content-Type", kind[0])
	c.Header().Set("Content-Disposition", `attachment; filename="channel-`+m.ID+kind[1]+`"`)
	c.Header().Set("Cache-Control", "no-store")
	c.WriteHeader(http.StatusOK)
}

// markdownText returns a name as one line in which nothing is Markdown syntax.
func markdownText(text string) string {
	var b strings.Builder
	for _, r := range oneLineOf(text, titleLength) {
		if strings.ContainsRune("\\`*_{}[]()#+-!<>|~&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// quoted returns a text as a Markdown quotation that the text cannot end or turn
// into a heading.
func quoted(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}
