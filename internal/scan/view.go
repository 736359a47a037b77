package scan

// view is a text in which rules look: that of a field, or one that was decoded
// from it.
type view struct {
	n normal
	// at gives for each byte of the text the place in the field; nil when it is
	// the field's own text.
	at []int32
	// encoding says how the text was hidden, "" when it was not; then it stands
	// for all of hidden.
	encoding string
	hidden   span
	depth    int
}

// place gives the span in the field of a span in the normal form.
func (v *view) place(start, end int) (from, to int) {
	if v.encoding != "" {
		return v.hidden.start, v.hidden.end
	}
	from, to = v.n.origin(start), v.n.origin(end)
	if v.at != nil {
		from, to = v.back(from), v.back(to)
	}
	return from, max(from, to)
}

func (v *view) back(i int) int {
	switch {
	case i < len(v.at):
		return int(v.at[i])
	case len(v.at) > 0:
		return int(v.at[len(v.at)-1]) + 1
	}
	return 0
}

// rewriting builds the text of a view byte by byte.
type rewriting struct {
	text    []byte
	at      []int32
	changes int
}

func (w *rewriting) put(b byte, at int) {
	w.text = append(w.text, b)
	w.at = append(w.at, int32(at))
}

// view gives the view of what was written.
func (w *rewriting) view(of *view) view {
	v := view{depth: of.depth + 1, encoding: of.encoding, hidden: of.hidden}
	v.n.read(string(w.text))
	if of.encoding == "" {
		v.at = w.at
		for i, at := range w.at {
			from, _ := of.place(int(at), int(at))
			v.at[i] = int32(from)
		}
	}
	return v
}
