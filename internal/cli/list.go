package cli

import "fmt"

// list describes the table of a list command.
type list[T any] struct {
	none    string             // note that is printed if there are no rows
	name    func(row T) string // output of -q; nil means the text of the first column
	columns []column[T]
	narrow  []narrowingStep
	exact   bool // show invisible characters as code points
}

// column is a column of a list. Either text or cell returns its cells. The result of text is made printable.
type column[T any] struct {
	title string
	text  func(row T) string
	cell  func(p *printer, row T) string
	right bool // aligned to the right
	wide  bool // only with -o wide
}

// write writes the rows as a table, or only their names with -q.
func (l list[T]) write(p *printer, rows []T) {
	if len(rows) == 0 {
		p.addNote("%s", l.none)
		return
	}
	if p.quiet {
		l.writeNames(p, rows)
		return
	}
	t := table{p: p, rightAligned: map[int]bool{}, narrowingSteps: l.narrow, rows: make([][]string, len(rows))}
	for _, c := range l.columns {
		if c.wide && !p.wide {
			continue
		}
		t.rightAligned[len(t.header)] = c.right
		t.header = append(t.header, c.title)
		for i, row := range rows {
			t.rows[i] = append(t.rows[i], l.cell(p, c, row))
		}
	}
	t.write()
}

// cell returns the cell of a row.
func (l list[T]) cell(p *printer, c column[T], row T) string {
	switch {
	case c.cell != nil:
		return c.cell(p, row)
	case l.exact:
		return escapeInvisibleLine(c.text(row))
	}
	return toOneLine(c.text(row))
}

func (l list[T]) writeNames(p *printer, rows []T) {
	name := l.name
	if name == nil {
		name = l.columns[0].text
	}
	for _, row := range rows {
		fmt.Fprintln(p, toOneLine(name(row)))
	}
}
