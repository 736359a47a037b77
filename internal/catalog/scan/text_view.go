package scan

// textView is a text to which rules are applied: a field's, or one decoded from it.
type textView struct {
	n normalText
	// at is the field offset of each byte of the text; nil for the field's own text.
	at []int32
	// encoding is how the text was hidden, "" if it was not; then all of hidden is the
	// finding's span.
	encoding string
	hidden   span
	depth    int
}

// fieldSpan converts a span of the normal form to the span of the field.
func (v *textView) fieldSpan(start, end int) (from, to int) {
	if v.encoding != "" {
		return v.hidden.start, v.hidden.end
	}
	from, to = originalOffset(v.at, v.n.originalOffset(start)), originalOffset(v.at, v.n.originalOffset(end))
	return from, max(from, to)
}

// rewrittenText builds the text of a view byte by byte.
type rewrittenText struct {
	text    []byte
	at      []int32
	changes int
}

func (w *rewrittenText) putByte(b byte, at int) {
	w.text = append(w.text, b)
	w.at = append(w.at, int32(at))
}

// copyRange appends t[from:to] unchanged.
func (w *rewrittenText) copyRange(t []byte, from, to int) {
	for ; from < to; from++ {
		w.putByte(t[from], from)
	}
}

// toView returns the view of the written text.
func (w *rewrittenText) toView(of *textView) textView {
	v := textView{depth: of.depth + 1, encoding: of.encoding, hidden: of.hidden}
	v.n.normalize(string(w.text))
	if of.encoding == "" {
		v.at = w.at
		for i, at := range w.at {
			from, _ := of.fieldSpan(int(at), int(at))
			v.at[i] = int32(from)
		}
	}
	return v
}
