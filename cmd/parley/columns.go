package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	v1 "github.com/parley-hub/parley/client/v1"
)

const (
	screenWidth = 80 // columns that a list fits, unless a terminal has more
	shortID     = 12 // characters of an id that a list shows at least
	minFlexible = 8  // columns that are left of what is shortened
)

// column is one of a list's.
type column struct {
	title string
	kind  columnKind
}

type columnKind int

const (
	fixed    columnKind = iota
	flexible            // shortened where the list would be too wide
	ids                 // of channels: as much as tells them apart
	wide                // only with -o wide and --all-columns
)

// wideOutput reports whether lists show every column in full.
func (a *app) wideOutput() bool { return a.output == "wide" || a.allColumns }

// writeColumns writes rows below their titles: all of it with -o wide, else in
// the width of a screen.
func (a *app) writeColumns(w io.Writer, columns []column, rows [][]string) error {
	if a.wideOutput() {
		return table(w, func(w io.Writer) {
			fmt.Fprintln(w, strings.Join(titles(columns), "\t"))
			for _, row := range rows {
				fmt.Fprintln(w, strings.Join(row, "\t"))
			}
		})
	}
	var kept []column
	short := make([][]string, len(rows))
	for i, c := range columns {
		if c.kind == wide {
			continue
		}
		kept = append(kept, c)
		list := make([]string, len(rows))
		for n, row := range rows {
			list[n] = row[i]
		}
		if c.kind == ids {
			shorten(list)
		}
		for n := range rows {
			short[n] = append(short[n], list[n])
		}
	}
	widths := fit(a.width(), kept, short)
	line := func(cells []string) error {
		var b strings.Builder
		for i, text := range cells {
			text = ansi.Truncate(text, widths[i], "…")
			b.WriteString(text)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(text)+2))
			}
		}
		_, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
		return err
	}
	if err := line(titles(kept)); err != nil {
		return err
	}
	for _, row := range short {
		if err := line(row); err != nil {
			return err
		}
	}
	return nil
}

func titles(columns []column) []string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.title
	}
	return list
}

// width is how wide lists may be.
func (a *app) width() int {
	if file, ok := a.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return max(width, screenWidth)
		}
	}
	return screenWidth
}

// fit is how wide each column is: the widest flexible ones give way.
func fit(width int, columns []column, rows [][]string) []int {
	widths := make([]int, len(columns))
	total := 2 * (len(columns) - 1)
	for i, c := range columns {
		widths[i] = ansi.StringWidth(c.title)
		for _, row := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
		total += widths[i]
	}
	for ; total > width; total-- {
		widest := -1
		for i, c := range columns {
			if c.kind == flexible && widths[i] > max(minFlexible, len(c.title)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// shorten leaves of each id what tells it from the others of a list. A prefix is
// as good as an id wherever one is asked for; in a home the channel's own id
// counts.
func shorten(list []string) {
	own := make([]string, len(list))
	for i, id := range list {
		own[i] = id[strings.LastIndexByte(id, '.')+1:]
	}
	for i, id := range own {
		n := min(shortID, len(id))
		for j, other := range own {
			for i != j && id != other && n < len(id) && strings.HasPrefix(other, id[:n]) {
				n++
			}
		}
		list[i] = id[:n]
	}
}

// ago is how long something is past.
func ago(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return span(time.Since(at)) + " ago"
}

// span is a time in its largest unit.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// rowCells are the columns of a channel in lists.
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
