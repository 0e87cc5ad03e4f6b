package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxStream is how much of a stream is read for its first event.
const maxStream = 1 << 20

// stream checks a stream of events through everything on the way: the first
// event must come at once, and comments must come with it, because a page that
// receives nothing for a while takes its stream for dead.
func stream(ctx context.Context, p Patient) Finding {
	const check = "stream"
	ctx, cancel := context.WithTimeout(ctx, p.FirstEvent)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.HubURL+"/v1/watch?topic=summary", nil)
	if err != nil {
		return Finding{check, Warning, err.Error(), "look at the hub's address"}
	}
	request.Header.Set("Accept", "text/event-stream")
	if p.Token != "" {
		request.Header.Set("Authorization", "Bearer "+p.Token)
	}
	late := Finding{
		check, Warning, fmt.Sprintf("no event came within %s", p.FirstEvent),
		"what stands between buffers answers: switch that off for it, for nginx with proxy_buffering off",
	}
	got, err := p.client().Do(request)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return late
	case err != nil:
		return Finding{check, Warning, err.Error(), "look at the hub's log"}
	}
	defer got.Body.Close()
	switch got.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return Finding{check, Warning, "only a key's holder gets one", "set PARLEY_TOKEN to the token of a key; parley keys add --role reader makes one"}
	default:
		return Finding{check, Warning, "/v1/watch answers " + got.Status, "look at the hub's log"}
	}
	comments, err := untilEvent(got.Body)
	if err != nil {
		return late
	}
	if !comments {
		return Finding{check, Warning, "comments are taken out on the way", "what stands between changes streams: let text/event-stream pass as it is, or pages take quiet streams for dead ones"}
	}
	if got.ProtoMajor < 2 {
		return Finding{check, Fine, "the first event and comments come at once; over " + got.Proto + " a browser opens six connections to a hub, and each visible tab of the console needs one", ""}
	}
	return Finding{check, Fine, "the first event and comments come at once, over " + got.Proto, ""}
}

// untilEvent reads up to the first event, and reports whether a comment came before.
func untilEvent(from io.Reader) (comments bool, err error) {
	lines := bufio.NewScanner(io.LimitReader(from, maxStream))
	for lines.Scan() {
		switch {
		case strings.HasPrefix(lines.Text(), ":"):
			comments = true
		case strings.HasPrefix(lines.Text(), "data:"):
			return comments, nil
		}
	}
	if err := lines.Err(); err != nil {
		return comments, err
	}
	return comments, io.ErrUnexpectedEOF
}
