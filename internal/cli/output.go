package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
)

// The formats of the output.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// printer writes for a person.
type printer struct {
	io.Writer
	now      func() time.Time
	local    *time.Location
	width    int // of the terminal; 0 = unknown, or none
	coloured func() bool
	notes    *[]string // to be said after the data
}

// printer writes to w.
func (r *run) printer(w io.Writer) *printer {
	return &printer{w, r.Now, r.Local, r.width, r.color, &r.notes}
}

// print writes v in the format that was asked for; show writes it for a person.
func (r *run) print(v any, show func(p *printer)) error {
	if r.output == formatTable {
		var out bytes.Buffer
		show(r.printer(&out))
		_, err := r.Stdout.Write(out.Bytes())
		for _, note := range r.notes {
			r.say("%s", note)
		}
		return err
	}
	raw, err := encode(v)
	if err != nil {
		return err
	}
	if r.output == formatYAML {
		raw = toYAML(raw)
	}
	_, err = r.Stdout.Write(raw)
	return err
}

// encode returns v as indented JSON. Numbers and texts of raw parts stay as they are.
func encode(v any) ([]byte, error) {
	compact, err := rawjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	return escapeHidden([]byte(indented(compact) + "\n")), nil
}

// printError writes p to stderr: for a person, or with -o json for a program.
func (r *run) printError(p *problem.Problem) {
	if r.asJSON || r.output == formatJSON {
		raw, err := encode(struct {
			Error *problem.Problem `json:"error"`
		}{p})
		if err == nil {
			_, _ = r.Stderr.Write(raw)
			return
		}
	}
	fmt.Fprintln(r.Stderr, "Error: "+printable(p.Message))
	if p.Hint != "" {
		fmt.Fprintln(r.Stderr, "Hint: "+printable(p.Hint))
	}
}

// say tells a person something that is no data.
func (r *run) say(format string, args ...any) {
	if r.output == formatTable {
		fmt.Fprintf(r.Stderr, format+"\n", args...)
	}
}

// note is say for after the data that is being printed.
func (p *printer) note(format string, args ...any) {
	*p.notes = append(*p.notes, fmt.Sprintf(format, args...))
}

// hue is a meaning that a colour underlines; no meaning is in the colour alone.
type hue uint8

const (
	noHue hue = iota
	good
	bad
	care
	faint
)

func (p *printer) paint(h hue, s string) string {
	if !p.coloured() || h == noHue || s == "" {
		return s
	}
	style := lipgloss.NewStyle().TabWidth(lipgloss.NoTabConversion)
	switch h {
	case good:
		style = style.Foreground(lipgloss.Green)
	case bad:
		style = style.Foreground(lipgloss.Red)
	case care:
		style = style.Foreground(lipgloss.Yellow)
	case faint:
		style = style.Faint(true)
	}
	return style.Render(s)
}

// moment is a time as the tables show it; nothing for nil.
func (p *printer) moment(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.In(p.local).Format(time.DateTime)
}

// age is how long ago something was, in its largest unit.
func (p *printer) age(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	d := max(p.now().Sub(*t), 0)
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= unit.length {
			return strconv.Itoa(int(d/unit.length)) + unit.name
		}
	}
	return strconv.Itoa(int(d/time.Second)) + "s"
}

// table is rows of cells in columns as wide as their widest cell.
type table struct {
	p      *printer
	header []string
	rows   [][]string
	// right are the columns that are aligned to the right.
	right map[int]bool
	// whole are the rows whose last cell is there to be copied.
	whole map[int]bool
}

const gap = "  "

// add adds a row.
func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// addWhole adds a row whose last cell, a command, is never cut.
func (t *table) addWhole(cells ...string) {
	if t.whole == nil {
		t.whole = map[int]bool{}
	}
	t.whole[len(t.rows)] = true
	t.add(cells...)
}

// write writes the table. On a terminal the last column is cut to its width;
// where there is no room for its header it is left out, since lines that are
// broken in the middle cannot be read.
func (t *table) write() {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	shown := len(widths)
	last := shown - 1
	room := t.room(widths[:last])
	if room < len(t.header[last]) && len(t.whole) == 0 {
		shown = last
	}
	t.line(widths, t.header[:shown])
	for i, row := range t.rows {
		if shown > last && !t.whole[i] {
			row = append(slices.Clip(row[:last]), cut(row[last], max(room, len(t.header[last]))))
		}
		t.line(widths, row[:shown])
	}
}

// room is what the columns before the last one leave to it.
func (t *table) room(before []int) int {
	if t.p.width == 0 {
		return math.MaxInt
	}
	room := t.p.width
	for _, width := range before {
		room -= width + len(gap)
	}
	return room
}

func (t *table) line(widths []int, cells []string) {
	var out strings.Builder
	for i, cell := range cells {
		if i > 0 {
			out.WriteString(gap)
		}
		padding := strings.Repeat(" ", max(widths[i]-lipgloss.Width(cell), 0))
		if t.right[i] {
			cell, padding = padding+cell, ""
		}
		out.WriteString(cell + padding)
	}
	fmt.Fprintln(t.p, strings.TrimRight(out.String(), " "))
}

// cut shortens s to width cells.
func cut(s string, width int) string {
	if lipgloss.Width(s) <= width || width < 1 {
		return s
	}
	return lipgloss.NewStyle().Inline(true).MaxWidth(width-1).Render(s) + "…"
}

// fields is names with values below each other, for one thing.
type fields struct {
	indent string
	rows   [][2]string
}

// add adds a field, unless it is empty.
func (f *fields) add(name, value string) {
	if value != "" {
		f.rows = append(f.rows, [2]string{name, value})
	}
}

func (f *fields) write(w io.Writer) {
	width := 0
	for _, row := range f.rows {
		width = max(width, lipgloss.Width(row[0]))
	}
	hanging := "\n" + f.indent + strings.Repeat(" ", width) + gap
	for _, row := range f.rows {
		padding := strings.Repeat(" ", width-lipgloss.Width(row[0]))
		fmt.Fprintln(w, f.indent+row[0]+padding+gap+strings.ReplaceAll(row[1], "\n", hanging))
	}
}

// indentBy puts every line of s a step to the right.
func indentBy(indent, s string) string {
	return indent + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+indent)
}

// prettyJSON is JSON as a person reads it, printable; what is not JSON stays.
func prettyJSON(raw []byte) string { return printable(indented(raw)) }

// indented is JSON on many lines; what is not JSON stays.
func indented(raw []byte) string {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return string(raw)
	}
	return out.String()
}
