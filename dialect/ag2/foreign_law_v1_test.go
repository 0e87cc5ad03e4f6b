package ag2_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// messagesAs returns the texts of a channel as an identity reads it over /v1; false
// if it may not.
func (d *dialects) messagesAs(name, channelID string) (shown bool, texts []string) {
	d.t.Helper()
	w := d.as(d.v1, name, "GET", "/v1/channels/"+channelID+"/messages", "")
	if w.Code != http.StatusOK {
		return false, nil
	}
	var page struct {
		Messages []struct {
			Content any `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
		d.t.Fatal(err)
	}
	for _, m := range page.Messages {
		if text, _ := m.Content.(string); text != "" {
			texts = append(texts, text)
		}
	}
	return true, texts
}

// tape records a stream until it has shown a text.
type tape struct {
	*httptest.ResponseRecorder
	last string
	end  func()
}

func (w tape) Write(b []byte) (int, error) {
	n, err := w.ResponseRecorder.Write(b)
	if strings.Contains(w.Body.String(), w.last) {
		w.end()
	}
	return n, err
}

func (tape) SetWriteDeadline(time.Time) error { return nil }

// streamAs returns the stream of a channel as an identity follows it over /v1, from
// its beginning until it shows a text; false if it may not.
func (d *dialects) streamAs(name, channelID, query, last string) (shown bool, stream string) {
	d.t.Helper()
	return d.follow(d.v1, name, "/v1/channels/"+channelID+"/events"+query, "", last)
}

// eventStreamAs does the same as streamAs over HPD.
func (d *dialects) eventStreamAs(name, session, last string) (shown bool, stream string) {
	d.t.Helper()
	return d.follow(d.hpd, name, "/hpd/agents/any/sessions/"+session+"/branches/main/events/live", "0", last)
}

func (d *dialects) follow(h http.Handler, name, path, after, last string) (shown bool, stream string) {
	d.t.Helper()
	ctx, end := context.WithTimeout(d.t.Context(), wait)
	defer end()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	req.Header.Set("X-As", name)
	req.Header.Set("Accept", "text/event-stream")
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	w := tape{httptest.NewRecorder(), last, end}
	func() {
		defer func() {
			r := recover()
			if err, ok := r.(error); r != nil && (!ok || !errors.Is(err, http.ErrAbortHandler)) { // HPD ends a stream this way
				panic(r)
			}
		}()
		h.ServeHTTP(w, req)
	}()
	if ctx.Err() == context.DeadlineExceeded {
		d.t.Errorf("%s as %s does not show %q: %s", path, name, last, w.Body)
	}
	return w.Code == http.StatusOK, w.Body.String()
}

// pages are the paths at which /v1 shows a channel, besides its messages and its
// stream.
var pages = []string{
	"", "/events", "/events?match=text", "/views/full_transcript", "/views/windowed_summary", "/views/threaded", "/export",
	"/export?form=messages", "/export?form=markdown", "/state",
}

// everywhereAs returns all that /v1 shows an identity of a channel with a label. It
// returns an error if a member does not see something, or a non-member does.
func (d *dialects) everywhereAs(name, channelID, law string, member bool) (shown string, err error) {
	for _, page := range pages {
		w := d.as(d.v1, name, "GET", "/v1/channels/"+channelID+page, "")
		if member != (w.Code == http.StatusOK) {
			return "", fmt.Errorf("%s takes part: %v; its page %q is answered with %d", name, member, page, w.Code)
		}
		shown += "\n" + page + ": " + w.Body.String()
	}
	for _, page := range []string{"/v1/channels/" + channelID + "/graph", "/v1/channels/" + channelID + "/path", "/v1/events?label=law=" + law, "/v1/channels?form=row&label=law=" + law} {
		shown += "\n" + page + ": " + d.as(d.v1, name, "GET", page, "").Body.String()
	}
	return shown, nil
}
