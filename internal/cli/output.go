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

// The formats of -o.
const (
	formatTable = "table"
	formatWide  = "wide" // a table with all columns in full width
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// printer writes the output of a command for a user.
type printer struct {
	io.Writer
	now          func() time.Time
	timeZone     *time.Location
	width        int // maximum width of a line; 0 means no limit
	colorEnabled func() bool
	wide         bool      // tables show all columns in full width
	quiet        bool      // lists show only names or IDs
	notes        *[]string // messages to print after the data
}

// newPrinter returns a printer for w.
func (r *invocation) newPrinter(w io.Writer) *printer {
	return &printer{w, r.Now, r.Local, r.width, r.allowsColor, r.wide, r.quiet, &r.notes}
}

// printOutput writes v to stdout in the selected format. show writes the table or text for a user.
func (r *invocation) printOutput(v any, show func(p *printer)) error {
	if r.output == formatTable {
		var out bytes.Buffer
		show(r.newPrinter(&out))
		err := r.writePaged(out.Bytes())
		if r.quiet {
			return err
		}
		for _, note := range r.notes {
			r.printMessage("%s", note)
		}
		return err
	}
	raw, err := encodeIndentedJSON(v)
	if err != nil {
		return err
	}
	if r.output == formatYAML {
		raw = jsonToYAML(raw)
	}
	return r.writePaged(raw)
}

// encodeIndentedJSON returns v as indented JSON. It does not change numbers and strings in a json.RawMessage.
func encodeIndentedJSON(v any) ([]byte, error) {
	compact, err := wirejson.MarshalWithoutHTMLEscape(v)
	if err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	return escapeHiddenInJSON([]byte(indentJSON(compact) + "\n")), nil
}

// printError writes p to stderr, as text or, with -o json, as JSON.
func (r *invocation) printError(p *problem.Problem) {
	if r.asJSON || r.output == formatJSON {
		raw, err := encodeIndentedJSON(struct {
			Error *problem.Problem `json:"error"`
		}{p})
		if err == nil {
			_, _ = r.Stderr.Write(raw)
			return
		}
	}
	out := r.newPrinter(r.Stderr)
	out.writeWrapped("", "Error: "+toPrintable(p.Message))
	if p.Hint != "" {
		out.writeWrapped("", "Hint: "+toPrintable(p.Hint))
	}
}

// printMessage writes a message for a user to stderr. It writes nothing if the output is JSON or YAML.
func (r *invocation) printMessage(format string, args ...any) {
	if r.output == formatTable {
		r.newPrinter(r.Stderr).writeWrapped("", fmt.Sprintf(format, args...))
	}
}

// addNote adds a message that is printed after the data.
func (p *printer) addNote(format string, args ...any) {
	*p.notes = append(*p.notes, fmt.Sprintf(format, args...))
}

// addNotes adds printable messages that are printed after the data.
func (p *printer) addNotes(all []string) { *p.notes = append(*p.notes, all...) }

// colorMeaning is a meaning that a color emphasizes. Color is never the only sign of a meaning.
type colorMeaning uint8

const (
	colorNone colorMeaning = iota
	colorGood
	colorBad
	colorWarning
	colorFaint
)

func (p *printer) colorize(h colorMeaning, s string) string {
	if !p.colorEnabled() || h == colorNone || s == "" {
		return s
	}
	style := lipgloss.NewStyle().TabWidth(lipgloss.NoTabConversion)
	switch h {
	case colorGood:
		style = style.Foreground(lipgloss.Green)
	case colorBad:
		style = style.Foreground(lipgloss.Red)
	case colorWarning:
		style = style.Foreground(lipgloss.Yellow)
	case colorFaint:
		style = style.Faint(true)
	}
	return style.Render(s)
}

// formatTime formats a time for tables. It returns "" for nil.
func (p *printer) formatTime(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.In(p.timeZone).Format(time.DateTime)
}

// shortenTime shortens a formatted time. It omits the date if it is today, otherwise the year and the seconds.
func (p *printer) shortenTime(moment string) string {
	day, clock, ok := strings.Cut(moment, " ")
	switch {
	case !ok:
		return moment
	case day == p.now().In(p.timeZone).Format(time.DateOnly):
		return clock
	}
	return moment[len("2006-"):len("2006-01-02 15:04")]
}

// formatAge formats the time since t in the largest unit, such as 3h.
func (p *printer) formatAge(t *time.Time) string {
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

// table is a table with aligned columns. Empty columns are left out.
type table struct {
	p      *printer
	header []string
	rows   [][]string
	// rightAligned contains the indexes of the right-aligned columns.
	rightAligned map[int]bool
	// narrowingSteps are applied in order if the table is wider than the terminal.
	narrowingSteps []narrowingStep
}

// narrowingStep is one step that makes a column narrower.
type narrowingStep struct {
	column     string
	minWidth   int                      // minimum width of the column; 0 means to leave it out
	abbreviate func(cell string) string // if set, shortens each cell
	note       string                   // printed if the step is applied
}

// columnHidingSteps returns steps that leave out one column each.
func columnHidingSteps(columns ...string) []narrowingStep {
	return mapSlice(columns, func(column string) narrowingStep { return narrowingStep{column: column} })
}

// addNoteToSteps sets the note that is printed if a step is applied.
func addNoteToSteps(note string, steps []narrowingStep) []narrowingStep {
	for i := range steps {
		steps[i].note = note
	}
	return steps
}

// columnTruncationStep returns a step that cuts the cells of a column, but leaves a minimum width.
func columnTruncationStep(column string, least int) []narrowingStep {
	return []narrowingStep{{column: column, minWidth: least}}
}

// columnAbbreviationStep returns a step that shortens the cells of a column with f.
func columnAbbreviationStep(column string, f func(cell string) string) []narrowingStep {
	return []narrowingStep{{column: column, abbreviate: f}}
}

const columnGap = "  "

// addRow adds a row.
func (t *table) addRow(cells ...string) { t.rows = append(t.rows, cells) }

// write writes the table. If it is wider than the terminal, columns are left out or cut in the declared order.
func (t *table) write() {
	widths := make([]int, len(t.header))
	for i := range t.header {
		t.measureColumn(widths, i)
	}
	if t.p.width > 0 && !t.p.wide {
		t.fitToWidth(widths)
	}
	t.writeRow(widths, t.header)
	for _, row := range t.rows {
		t.writeRow(widths, row)
	}
}

// fitToWidth shortens columns until the lines fit. Then it gives unused width back to the cut columns, starting with
// the last one.
func (t *table) fitToWidth(widths []int) {
	whole := slices.Clone(widths)
	for _, step := range t.narrowingSteps {
		over := totalLineWidth(widths) - t.p.width
		if over <= 0 {
			break
		}
		if i := slices.Index(t.header, step.column); i >= 0 && widths[i] > 0 {
			t.applyNarrowingStep(widths, i, over, step)
		}
	}
	for _, step := range slices.Backward(t.narrowingSteps) {
		free := t.p.width - totalLineWidth(widths)
		if i := slices.Index(t.header, step.column); free > 0 && step.minWidth > 0 && i >= 0 && widths[i] > 0 {
			widths[i] = min(whole[i], widths[i]+free)
		}
	}
}

// measureColumn computes the width of column i, including the gap. The width is 0 if the column is empty.
func (t *table) measureColumn(widths []int, i int) {
	widths[i] = 0
	for _, row := range t.rows {
		widths[i] = max(widths[i], lipgloss.Width(row[i]))
	}
	if widths[i] > 0 {
		widths[i] = max(widths[i], lipgloss.Width(t.header[i])) + len(columnGap)
	}
}

// totalLineWidth returns the width of a table line.
func totalLineWidth(widths []int) int {
	all := -len(columnGap)
	for _, w := range widths {
		all += w
	}
	return all
}

// applyNarrowingStep applies one step to column i, as far as needed.
func (t *table) applyNarrowingStep(widths []int, i, over int, step narrowingStep) {
	switch {
	case step.abbreviate != nil:
		for _, row := range t.rows {
			row[i] = step.abbreviate(row[i])
		}
		t.measureColumn(widths, i)
	case step.minWidth > 0:
		least := max(step.minWidth, lipgloss.Width(t.header[i])) + len(columnGap)
		widths[i] = min(widths[i], max(widths[i]-over, least))
	default:
		widths[i] = 0
	}
	if step.note != "" {
		t.p.addNote("%s", step.note)
	}
}

func (t *table) writeRow(widths []int, cells []string) {
	var out strings.Builder
	for i, cell := range cells {
		if widths[i] == 0 {
			continue
		}
		room := widths[i] - len(columnGap)
		cell = truncateToWidth(cell, room)
		padding := strings.Repeat(" ", max(room-lipgloss.Width(cell), 0))
		if t.rightAligned[i] {
			cell, padding = padding+cell, ""
		}
		out.WriteString(cell + padding + columnGap)
	}
	line := strings.TrimRight(out.String(), " ")
	if t.p.width > 0 && !t.p.wide {
		line = truncateToWidth(line, t.p.width)
	}
	fmt.Fprintln(t.p, line)
}

// truncateToWidth shortens s to width cells.
func truncateToWidth(s string, width int) string {
	if lipgloss.Width(s) <= width || width < 1 {
		return s
	}
	return lipgloss.NewStyle().Inline(true).MaxWidth(width-1).Render(s) + "…"
}

// fieldList is a list of named values that describe one object.
type fieldList struct {
	indent string
	rows   [][2]string
}

// add adds a field, unless it is empty.
func (f *fieldList) add(name, value string) {
	if value != "" {
		f.rows = append(f.rows, [2]string{name, value})
	}
}

// write writes the fields, with values wrapped to the terminal's width.
func (f *fieldList) write(p *printer) {
	width := 0
	for _, row := range f.rows {
		if w := lipgloss.Width(row[0]); p.width == 0 || w <= p.width/2 {
			width = max(width, w)
		}
	}
	hanging := f.indent + strings.Repeat(" ", width) + columnGap
	for _, row := range f.rows {
		value, room := p.wrapAndIndent(hanging, row[1]), width-lipgloss.Width(row[0])
		if room < 0 { // a long name is on its own line
			fmt.Fprintln(p, f.indent+row[0]+"\n"+value)
			continue
		}
		fmt.Fprintln(p, f.indent+row[0]+strings.Repeat(" ", room)+columnGap+strings.TrimPrefix(value, hanging))
	}
}

// writeLine writes one or more sentences.
func (p *printer) writeLine(format string, args ...any) {
	p.writeWrapped("", fmt.Sprintf(format, args...))
}

// writeWrapped writes indented lines, wrapped to the terminal's width.
func (p *printer) writeWrapped(indent, s string) {
	fmt.Fprintln(p, p.wrapAndIndent(indent, strings.TrimRight(s, "\n")))
}

// wrapAndIndent indents s and breaks its lines at spaces to fit the width. Words without spaces, such as addresses, and
// commands in backticks stay whole, so that they can be copied.
func (p *printer) wrapAndIndent(indent, s string) string {
	if p.width == 0 {
		return indentLines(indent, s)
	}
	room := max(p.width-lipgloss.Width(indent), minWrapWidth)
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		lines = append(lines, wrapLine(line, room)...)
	}
	return indent + strings.Join(lines, "\n"+indent)
}

// minWrapWidth is the minimum width to which text is wrapped.
const minWrapWidth = 20

// wrapLine breaks a line at spaces into lines of at most width cells.
func wrapLine(line string, width int) (lines []string) {
	if lipgloss.Width(line) <= width {
		return []string{line}
	}
	var out strings.Builder
	used := 0
	for i, word := range splitUnbreakableWords(line) {
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

// splitUnbreakableWords splits a line at spaces that are not in backticks.
func splitUnbreakableWords(line string) (words []string) {
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

// indentLines indents every line of s.
func indentLines(indent, s string) string {
	return indent + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+indent)
}

// formatPrintableJSON indents JSON and makes it printable; other text is only made printable.
func formatPrintableJSON(raw []byte) string { return toPrintable(indentJSON(raw)) }

// indentJSON indents JSON; other text stays.
func indentJSON(raw []byte) string {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return string(raw)
	}
	return out.String()
}
