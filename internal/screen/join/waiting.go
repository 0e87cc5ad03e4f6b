// Package join lets a person take part in a channel from a terminal: typed
// lines are posted, or are commands, and a screen for bubbletea shows the
// rest. The screen's model makes no calls itself; a Hub makes them.
package join

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/screen"
	"github.com/parley-hub/parley/request"
)

// Waiting is what waits for an identity.
type Waiting struct {
	Turns       []v1.Turn    `json:"turns"`
	Requests    []v1.Request `json:"requests"`
	Invitations []v1.Channel `json:"invitations"`
}

// WhatWaits returns what waits for an identity.
func WhatWaits(ctx context.Context, hub *v1.Client, id string) (*Waiting, error) {
	turns, err := hub.Turns(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	requests, err := hub.Requests(ctx, url.Values{"state": {string(request.Open)}, "for": {id}, "sort": {"due"}})
	if err != nil {
		return nil, err
	}
	pending, err := hub.Channels(ctx, url.Values{"state": {"pending"}, "agent": {id}, "newest": {"true"}})
	if err != nil {
		return nil, err
	}
	w := &Waiting{Turns: turns.Items, Requests: []v1.Request{}, Invitations: []v1.Channel{}}
	for _, r := range requests.Items {
		if r.Kind != "turn" && r.Kind != "invite" { // they are listed as what they are
			w.Requests = append(w.Requests, r)
		}
	}
	for _, ch := range pending.Items {
		if slices.Contains(ch.PendingAcks, id) {
			ch.Names = pending.Names
			w.Invitations = append(w.Invitations, ch)
		}
	}
	return w, nil
}

// Lines returns in words what waits for the person of that name.
func (l *Waiting) Lines(name string, now time.Time) []string {
	if len(l.Turns)+len(l.Requests)+len(l.Invitations) == 0 {
		return []string{fmt.Sprintf("Nothing waits for %s.", name)}
	}
	var lines []string
	for _, t := range l.Turns {
		lines = append(lines, fmt.Sprintf("turn        %s  %s, %s  (parley join %s %s)", t.Channel, screen.Cell(cmp.Or(t.Title, t.Type)), screen.Ago(now, t.Since), name, t.Channel))
	}
	for i := range l.Requests {
		r := &l.Requests[i]
		lines = append(lines, fmt.Sprintf("request     %s  %s  (%s)", screen.Cell(r.ID), screen.Cell(r.Title), answerWith(r)))
	}
	for i := range l.Invitations {
		ch := &l.Invitations[i]
		lines = append(lines, fmt.Sprintf("invitation  %s  %s of %s  (parley join %s %s, then /accept or /decline)", ch.ID, ch.Manifest.Type, People(ch), name, ch.ID))
	}
	return lines
}

// answerWith returns the command that answers a request.
func answerWith(r *v1.Request) string {
	ids := make([]string, len(r.Choices))
	for i, c := range r.Choices {
		ids[i] = screen.Cell(c.ID)
	}
	return strings.TrimSpace("/answer " + screen.Cell(r.ID) + " " + strings.Join(ids, "|"))
}

// People returns who takes part in a channel, by name.
func People(ch *v1.Channel) string {
	names := make([]string, len(ch.Participants))
	for i, p := range ch.Participants {
		names[i] = screen.Cell(ch.Name(p.Agent))
	}
	return strings.Join(names, ", ")
}
