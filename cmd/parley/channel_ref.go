package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/parley-hub/parley/channel"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

const (
	latestChannel = "@latest" // the newest channel
	titleLabel    = "title"   // the label that has a channel's title

	minIDPrefix   = 6  // shortest prefix of an id that is looked up
	maxTitle      = 20 // columns of a title in the list of candidates
	maxCandidates = 10 // channels that are listed if several match
)

// findChannel returns the id of the channel that a person named: by its id, an
// unambiguous prefix of it, its label title, or @latest.
func findChannel(ctx context.Context, hub *v1.Client, ref string) (string, error) {
	if channel.ValidID(ref) {
		return ref, nil // the hub reports whether it exists; its audit remains after deletion
	}
	if ref == latestChannel {
		newest, err := hub.Channels(ctx, url.Values{"newest": {"true"}, "limit": {"1"}})
		if err != nil {
			return "", err
		}
		if len(newest.Items) == 0 {
			return "", fault.New(fault.NotFound, "channel not found: there is none yet; open one with parley channels open")
		}
		return newest.Items[0].ID, nil
	}
	found, err := channelsNamed(ctx, hub, ref)
	switch {
	case err != nil:
		return "", err
	case len(found) == 1:
		return found[0].ID, nil
	case len(found) == 0 && len(ref) < minIDPrefix:
		return "", fault.New(fault.NotFound, "channel not found: no channel has the title %q, and for the beginning of an id it is too short; %d or more characters are needed", ref, minIDPrefix).
			Because(fault.NoChannel)
	case len(found) == 0:
		return "", fault.New(fault.NotFound, "channel not found: no id begins with %q, and no channel has that title", ref).
			Because(fault.NoChannel)
	}
	return "", ambiguous(ref, found)
}

// namedChannel returns the channel that a person named.
func namedChannel(ctx context.Context, hub *v1.Client, name string) (*v1.Channel, error) {
	id, err := findChannel(ctx, hub, name)
	if err != nil {
		return nil, err
	}
	return hub.Channel(ctx, id)
}

// channelsNamed finds channels by title or by a prefix of the id, at most
// maxCandidates of each.
func channelsNamed(ctx context.Context, hub *v1.Client, ref string) ([]v1.Channel, error) {
	if ref == "" {
		return nil, nil
	}
	limit := strconv.Itoa(maxCandidates + 1)
	titled, err := hub.Channels(ctx, url.Values{"label": {titleLabel + "=" + ref}, "newest": {"true"}, "limit": {limit}})
	if err != nil {
		return nil, err
	}
	found := titled.Items
	// In a home, the channel's own id follows a dot, and lists are ordered by it.
	own := ref[strings.LastIndexByte(ref, '.')+1:]
	if len(own) < minIDPrefix || len(own) >= envelope.IDLength {
		return found, nil
	}
	first := own + strings.Repeat("0", envelope.IDLength-len(own))
	if !envelope.ValidID(first) {
		return found, nil
	}
	q := url.Values{"limit": {limit}}
	if before := idBefore(first); before != "" {
		q.Set("after", before)
	}
	page, err := hub.Channels(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, ch := range page.Items {
		known := slices.ContainsFunc(found, func(other v1.Channel) bool { return other.ID == ch.ID })
		if _, id, inHome := strings.Cut(ch.ID, "."); !known && (strings.HasPrefix(ch.ID, ref) || inHome && strings.HasPrefix(id, ref)) {
			found = append(found, ch)
		}
	}
	return found, nil
}

// idBefore returns the id before another in their order; empty: there is none.
func idBefore(id string) string {
	digits := strings.TrimRight(id, "0")
	if digits == "" {
		return ""
	}
	last := strings.IndexByte(hexDigits, digits[len(digits)-1])
	return digits[:len(digits)-1] + hexDigits[last-1:last] + strings.Repeat("f", len(id)-len(digits))
}

const hexDigits = "0123456789abcdef"

// ambiguous lists the channels that match.
func ambiguous(ref string, found []v1.Channel) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%q is the name of several channels; say which by more of its id:", ref)
	for i, ch := range found {
		if i == maxCandidates {
			b.WriteString("\n  and more")
			break
		}
		fmt.Fprintf(&b, "\n  %s  %s  %s", ch.ID, ch.Manifest.Type, ch.State)
		if title := ch.Labels[titleLabel]; title != "" {
			fmt.Fprintf(&b, "  %s", ansi.Truncate(cell(title), maxTitle, "…"))
		}
	}
	return fault.New(fault.Invalid, "%s", b.String())
}
