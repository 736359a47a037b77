package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// The output formats.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// printer writes for a user.
type printer struct {
	io.Writer
	now      func() time.Time
	local    *time.Location
	width    int // maximum width of a line; 0 is no limit
	coloured func() bool
	notes    *[]string // to print after the data
}

// printer returns a printer for w.
func (r *run) printer(w io.Writer) *printer {
	return &printer{w, r.Now, r.Local, r.width, r.color, &r.notes}
}

// print writes v in the selected format; show writes it for a user.
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

// encode returns v as indented JSON. Numbers and strings of raw parts stay as they are.
func encode(v any) ([]byte, error) {
	compact, err := wirejson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	return escapeHidden([]byte(indented(compact) + "\n")), nil
}

// printError writes p to stderr: for a user, or with -o json for a program.
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
	out := r.printer(r.Stderr)
	out.text("", "Error: "+printable(p.Message))
	if p.Hint != "" {
		out.text("", "Hint: "+printable(p.Hint))
	}
}

// say writes a message for a user, which is no data.
func (r *run) say(format string, args ...any) {
	if r.output == formatTable {
		r.printer(r.Stderr).text("", fmt.Sprintf(format, args...))
	}
}

// note is say after the data that is being printed.
func (p *printer) note(format string, args ...any) {
	*p.notes = append(*p.notes, fmt.Sprintf(format, args...))
}

// hue is a meaning that a colour emphasizes. No meaning is in the colour alone.
type hue uint8

const (
	noHue hue = iota
	hueGood
	hueBad
	hueWarning
	hueFaint
)

func (p *printer) paint(h hue, s string) string {
	if !p.coloured() || h == noHue || s == "" {
		return s
	}
	style := lipgloss.NewStyle().TabWidth(lipgloss.NoTabConversion)
	switch h {
	case hueGood:
		style = style.Foreground(lipgloss.Green)
	case hueBad:
		style = style.Foreground(lipgloss.Red)
	case hueWarning:
		style = style.Foreground(lipgloss.Yellow)
	case hueFaint:
		style = style.Faint(true)
	}
	return style.Render(s)
}

// moment formats a time for tables; "" for nil.
func (p *printer) moment(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.In(p.local).Format(time.DateTime)
}

// clock shortens a moment: today to the time, otherwise without year and seconds.
func (p *printer) clock(moment string) string {
	day, clock, ok := strings.Cut(moment, " ")
	switch {
	case !ok:
		return moment
	case day == p.now().In(p.local).Format(time.DateOnly):
		return clock
	}
	return moment[len("2006-"):len("2006-01-02 15:04")]
}

// age formats how long ago something was, in its largest unit.
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

// table is rows of cells in aligned columns. Empty columns are left out.
type table struct {
	p      *printer
	header []string
	rows   [][]string
	// right are the right-aligned columns.
	right map[int]bool
	// narrow are the steps that make the table narrower, in order, when it is wider than the terminal.
	narrow []narrowing
}

// narrowing is one step that makes a column narrower.
type narrowing struct {
	column string
	least  int                      // minimum width of the column; 0 leaves it out
	brief  func(cell string) string // shortens each cell, instead
	note   string                   // printed when the step was used
}

// leaveOut leaves out columns, one after the other.
func leaveOut(columns ...string) (out []narrowing) {
	for _, column := range columns {
		out = append(out, narrowing{column: column})
	}
	return out
}

// withNote sets the note that replaces a column.
func withNote(note string, steps []narrowing) []narrowing {
	for i := range steps {
		steps[i].note = note
	}
	return steps
}

// shorten cuts the cells of a column to a minimum width.
func shorten(column string, least int) []narrowing {
	return []narrowing{{column: column, least: least}}
}

// brief shortens the cells of a column with f.
func brief(column string, f func(cell string) string) []narrowing {
	return []narrowing{{column: column, brief: f}}
}

const gap = "  "

// add adds a row.
func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write writes the table, no wider than the terminal: columns are left out or cut in the declared order.
func (t *table) write() {
	widths := make([]int, len(t.header))
	for i := range t.header {
		t.measure(widths, i)
	}
	if t.p.width > 0 {
		t.fit(widths)
	}
	t.line(widths, t.header)
	for _, row := range t.rows {
		t.line(widths, row)
	}
}

// fit applies narrowing steps until the lines fit. Then it returns free width to the cut columns, last one first.
func (t *table) fit(widths []int) {
	whole := slices.Clone(widths)
	for _, step := range t.narrow {
		over := sum(widths) - t.p.width
		if over <= 0 {
			break
		}
		if i := slices.Index(t.header, step.column); i >= 0 && widths[i] > 0 {
			t.apply(widths, i, over, step)
		}
	}
	for _, step := range slices.Backward(t.narrow) {
		free := t.p.width - sum(widths)
		if i := slices.Index(t.header, step.column); free > 0 && step.least > 0 && i >= 0 && widths[i] > 0 {
			widths[i] = min(whole[i], widths[i]+free)
		}
	}
}

// measure computes the width of a column with its gap; 0 when it is empty.
func (t *table) measure(widths []int, i int) {
	widths[i] = 0
	for _, row := range t.rows {
		widths[i] = max(widths[i], lipgloss.Width(row[i]))
	}
	if widths[i] > 0 {
		widths[i] = max(widths[i], lipgloss.Width(t.header[i])) + len(gap)
	}
}

// sum returns the width of a line.
func sum(widths []int) int {
	all := -len(gap)
	for _, w := range widths {
		all += w
	}
	return all
}

// apply applies one step to column i, as far as needed.
func (t *table) apply(widths []int, i, over int, step narrowing) {
	switch {
	case step.brief != nil:
		for _, row := range t.rows {
			row[i] = step.brief(row[i])
		}
		t.measure(widths, i)
	case step.least > 0:
		least := max(step.least, lipgloss.Width(t.header[i])) + len(gap)
		widths[i] = min(widths[i], max(widths[i]-over, least))
	default:
		widths[i] = 0
	}
	if step.note != "" {
		t.p.note("%s", step.note)
	}
}

func (t *table) line(widths []int, cells []string) {
	var out strings.Builder
	for i, cell := range cells {
		if widths[i] == 0 {
			continue
		}
		room := widths[i] - len(gap)
		cell = cut(cell, room)
		padding := strings.Repeat(" ", max(room-lipgloss.Width(cell), 0))
		if t.right[i] {
			cell, padding = padding+cell, ""
		}
		out.WriteString(cell + padding + gap)
	}
	line := strings.TrimRight(out.String(), " ")
	if t.p.width > 0 {
		line = cut(line, t.p.width)
	}
	fmt.Fprintln(t.p, line)
}

// cut shortens s to width cells.
func cut(s string, width int) string {
	if lipgloss.Width(s) <= width || width < 1 {
		return s
	}
	return lipgloss.NewStyle().Inline(true).MaxWidth(width-1).Render(s) + "…"
}

// fields is a list of names and values of one thing.
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

// write writes the fields, values folded to the terminal's width.
func (f *fields) write(p *printer) {
	width := 0
	for _, row := range f.rows {
		if w := lipgloss.Width(row[0]); p.width == 0 || w <= p.width/2 {
			width = max(width, w)
		}
	}
	hanging := f.indent + strings.Repeat(" ", width) + gap
	for _, row := range f.rows {
		value, room := p.folded(hanging, row[1]), width-lipgloss.Width(row[0])
		if room < 0 { // a long name has its own line
			fmt.Fprintln(p, f.indent+row[0]+"\n"+value)
			continue
		}
		fmt.Fprintln(p, f.indent+row[0]+strings.Repeat(" ", room)+gap+strings.TrimPrefix(value, hanging))
	}
}

// line writes one or more sentences.
func (p *printer) line(format string, args ...any) { p.text("", fmt.Sprintf(format, args...)) }

// text writes indented lines, folded to the terminal's width.
func (p *printer) text(indent, s string) {
	fmt.Fprintln(p, p.folded(indent, strings.TrimRight(s, "\n")))
}

// folded indents s and breaks its lines at spaces to fit the width. Words without spaces, such as addresses, and commands in backticks stay whole, so
// that they can be copied.
func (p *printer) folded(indent, s string) string {
	if p.width == 0 {
		return indentBy(indent, s)
	}
	room := max(p.width-lipgloss.Width(indent), minFoldWidth)
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, fold(line, room)...)
	}
	return indent + strings.Join(lines, "\n"+indent)
}

// minFoldWidth is the minimum width to which text is folded.
const minFoldWidth = 20

// fold breaks a line at spaces into lines of at most width cells.
func fold(line string, width int) (lines []string) {
	if lipgloss.Width(line) <= width {
		return []string{line}
	}
	var out strings.Builder
	used := 0
	for i, word := range unbroken(line) {
		w := lipgloss.Width(word)
		switch {
		case i == 0:
		case used+1+w > width:
			lines = append(lines, out.String())
			out.Reset()
			used = 0
		default:
			out.WriteByte(' ')
			used++
		}
		out.WriteString(word)
		used += w
	}
	return append(lines, out.String())
}

// unbroken splits a line at spaces outside of backticks.
func unbroken(line string) (words []string) {
	quoted := false
	for word := range strings.SplitSeq(line, " ") {
		if quoted {
			words[len(words)-1] += " " + word
		} else {
			words = append(words, word)
		}
		if strings.Count(word, "`")%2 == 1 {
			quoted = !quoted
		}
	}
	return words
}

// indentBy indents every line of s.
func indentBy(indent, s string) string {
	return indent + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+indent)
}

// prettyJSON indents JSON for a user, printable; other text stays.
func prettyJSON(raw []byte) string { return printable(indented(raw)) }

// indented indents JSON; other text stays.
func indented(raw []byte) string {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return string(raw)
	}
	return out.String()
}
