package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

const (
	// Width and Height are the smallest size that every screen is drawn for.
	Width  = 80
	Height = 24

	shortID     = 12 // least characters of an id in a list
	minFlexible = 8  // least columns of what is shortened
)

// Column is one column of a list.
type Column struct {
	Title string
	Kind  Kind
}

// Kind says how a column is treated if a list would be too wide.
type Kind int

// Kinds of columns.
const (
	Fixed    Kind = iota
	Flexible      // shortened if the list would be too wide
	IDs           // of channels: as much as distinguishes them
	Wide          // only where every column is shown
)

// Table returns a line of titles and one for each row, none wider than width as
// long as the fixed columns leave room.
func Table(width int, columns []Column, rows [][]string) []string {
	var kept []Column
	short := make([][]string, len(rows))
	for i, c := range columns {
		if c.Kind == Wide {
			continue
		}
		kept = append(kept, c)
		list := make([]string, len(rows))
		for n, row := range rows {
			list[n] = row[i]
		}
		if c.Kind == IDs {
			Shorten(list)
		}
		for n := range rows {
			short[n] = append(short[n], list[n])
		}
	}
	titles := make([]string, len(kept))
	for i, c := range kept {
		titles[i] = c.Title
	}
	widths := fit(width, kept, short)
	lines := make([]string, 0, len(rows)+1)
	for _, cells := range append([][]string{titles}, short...) {
		var b strings.Builder
		for i, text := range cells {
			text = ansi.Truncate(text, widths[i], "…")
			b.WriteString(text)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(text)+2))
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// fit returns the width of each column: the widest flexible ones are shortened.
func fit(width int, columns []Column, rows [][]string) []int {
	widths := make([]int, len(columns))
	total := 2 * (len(columns) - 1)
	for i, c := range columns {
		widths[i] = ansi.StringWidth(c.Title)
		for _, row := range rows {
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
		total += widths[i]
	}
	for ; total > width; total-- {
		widest := -1
		for i, c := range columns {
			if c.Kind == Flexible && widths[i] > max(minFlexible, len(c.Title)) && (widest < 0 || widths[i] > widths[widest]) {
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

// Shorten shortens each id to what distinguishes it from the others of a list.
// A prefix is accepted wherever an id is asked for; in a home the channel's
// own id counts.
func Shorten(list []string) {
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
