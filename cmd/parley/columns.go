package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/screen"
)

const screenWidth = screen.Width // width of a list, unless the terminal is wider

// column is a column of a list.
type column struct {
	title string
	kind  screen.Kind
}

const (
	fixed    = screen.Fixed
	flexible = screen.Flexible
	ids      = screen.IDs
	wide     = screen.Wide
)

// wideOutput reports whether lists show every column in full.
func (a *app) wideOutput() bool { return a.output == "wide" || a.allColumns }

// writeColumns writes rows below their titles: in full with -o wide, else within the
// width of a screen.
func (a *app) writeColumns(w io.Writer, columns []column, rows [][]string) error {
	width, list := a.width(), make([]screen.Column, len(columns))
	for i, c := range columns {
		list[i] = screen.Column{Title: c.title, Kind: c.kind}
		if a.wideOutput() {
			list[i].Kind = fixed
		}
	}
	for _, line := range screen.Table(width, list, rows) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// width returns how wide lists may be.
func (a *app) width() int {
	if file, ok := a.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return max(width, screenWidth)
		}
	}
	return screenWidth
}

// ago returns how long ago a time was.
func ago(at time.Time) string { return screen.Ago(time.Now(), at) }

// rowColumns are the columns of a channel in lists.
var rowColumns = []column{
	{"CHANNEL", ids},
	{"TYPE", flexible},
	{"STATE", fixed},
	{"TURN", flexible},
	{"LAST", fixed},
	{"TITLE", flexible},
	{"PARTICIPANTS", wide},
	{"EVENTS", wide},
	{"CREATED", wide},
}

func rowCells(r *v1.Row, names map[string]string) []string {
	turn, last := "-", r.CreatedAt
	if r.Turn != nil {
		turn = nameOf(r.Turn.Person, names)
		if r.Turn.Overdue {
			turn += " (overdue)"
		}
	}
	if r.Last != nil {
		last = r.Last.At
	}
	who := make([]string, len(r.Participants))
	for i, p := range r.Participants {
		who[i] = nameOf(p, names)
	}
	title := cell(r.Title)
	if title == "" {
		title = strings.Join(who, ", ")
	}
	return []string{
		r.ID, cell(r.Type), r.State, turn, ago(last), title,
		strings.Join(who, ", "), fmt.Sprint(r.Length), r.CreatedAt.Format(time.RFC3339),
	}
}

func nameOf(p v1.Person, names map[string]string) string {
	switch {
	case p.Name != "":
		return cell(p.Name)
	case names[p.ID] != "":
		return cell(names[p.ID])
	}
	return cell(p.ID)
}
