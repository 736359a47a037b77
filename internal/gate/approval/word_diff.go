package approval

import (
	"slices"
	"strings"
	"unicode"
)

// The kinds of differences and pieces.
const (
	Same     = "same"
	Added    = "added"
	Removed  = "removed"
	Replaced = "changed"
)

// Piece is a part of a text. It is in both texts or in only one.
type Piece struct {
	Kind string `json:"kind" enum:"same,added,removed"`
	Text string `json:"text"`
}

// The limits of a comparison.
const (
	maxWords = 20_000 // in both texts together
	maxEdits = 1_000  // beyond this, two sequences count as entirely different
)

// diffWords returns the difference of two texts by words; nil if they have too little in common.
func diffWords(old, now string) []Piece {
	a, b := splitWords(old), splitWords(now)
	if len(a)+len(b) > maxWords {
		return nil
	}
	var out []Piece
	put := func(kind string, parts []string) {
		if len(parts) > 0 {
			out = append(out, Piece{kind, strings.Join(parts, "")})
		}
	}
	i, j, same := 0, 0, 0
	for _, run := range alignSequences(len(a), len(b), func(i, j int) bool { return a[i] == b[j] }) {
		put(Removed, a[i:i+run.old])
		put(Added, b[j:j+run.now])
		i, j = i+run.old, j+run.now
		put(Same, a[i:i+run.same])
		i, j, same = i+run.same, j+run.same, same+run.same
	}
	if same == 0 {
		return nil
	}
	return out
}

// splitWords splits a text into words, white space and single other characters, without loss.
func splitWords(s string) []string {
	var out []string
	start, kind := 0, -1
	for i, r := range s {
		k := 0
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_':
			k = 1
		case unicode.IsSpace(r):
			k = 2
		}
		if i > start && (k == 0 || k != kind) {
			out = append(out, s[start:i])
			start = i
		}
		kind = k
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// alignedRun is a part of an alignment: replaced elements of both sequences, followed by equal ones.
type alignedRun struct{ old, now, same int }

// alignSequences aligns sequences of n and m elements with Myers' algorithm. Sequences with too many differences
// count as entirely different between their common prefix and suffix.
func alignSequences(n, m int, equal func(i, j int) bool) []alignedRun {
	head := 0
	for head < n && head < m && equal(head, head) {
		head++
	}
	tail := 0
	for tail < n-head && tail < m-head && equal(n-1-tail, m-1-tail) {
		tail++
	}
	var out alignment
	out.addSame(head)
	out.alignMiddle(n-head-tail, m-head-tail, func(i, j int) bool { return equal(head+i, head+j) })
	out.addSame(tail)
	return out
}

type alignment []alignedRun

func (r *alignment) addSame(k int) {
	if len(*r) == 0 {
		*r = append(*r, alignedRun{})
	}
	(*r)[len(*r)-1].same += k
}

func (r *alignment) addEdit(old, now int) {
	if last := len(*r) - 1; (*r)[last].same > 0 {
		*r = append(*r, alignedRun{old: old, now: now})
	} else {
		(*r)[last].old += old
		(*r)[last].now += now
	}
}

// alignMiddle aligns the elements between the common prefix and suffix.
func (r *alignment) alignMiddle(n, m int, equal func(i, j int) bool) {
	steps := shortestEditScript(n, m, equal)
	if steps == nil {
		r.addEdit(n, m)
		return
	}
	for _, s := range steps {
		switch s {
		case 'd':
			r.addEdit(1, 0)
		case 'i':
			r.addEdit(0, 1)
		default:
			r.addSame(1)
		}
	}
}

// shortestEditScript returns the edit script (d, i or = for each step); nil if it needs more than maxEdits.
func shortestEditScript(n, m int, equal func(i, j int) bool) []byte {
	// furthest[k+offset] is the furthest x on diagonal k = x-y; history contains the reachable diagonals of each
	// round.
	most := min(n+m, maxEdits)
	offset := most + 1
	furthest := make([]int32, 2*most+3)
	var history [][]int32
	for edits := 0; edits <= most; edits++ {
		history = append(history, append([]int32(nil), furthest[offset-edits-1:offset+edits+2]...))
		for k := -edits; k <= edits; k += 2 {
			x := furthest[offset+k-1] + 1
			if isInsertion(furthest[offset+k-1], furthest[offset+k+1], k, edits) {
				x = furthest[offset+k+1]
			}
			for int(x) < n && int(x)-k < m && equal(int(x), int(x)-k) {
				x++
			}
			furthest[offset+k] = x
			if int(x) >= n && int(x)-k >= m {
				return traceEditScript(history, n, m)
			}
		}
	}
	return nil
}

// isInsertion reports whether the path to diagonal k is an insertion from above; left and right are the furthest
// x of the neighbors.
func isInsertion(left, right int32, k, edits int) bool {
	return k == -edits || k != edits && left < right
}

// traceEditScript reconstructs the edit script from the end.
func traceEditScript(history [][]int32, n, m int) []byte {
	steps := make([]byte, 0, n+m)
	x, y := n, m
	for edits := len(history) - 1; edits > 0; edits-- {
		before, k := history[edits], x-y
		at := func(k int) int32 { return before[k+edits+1] }
		step, from := byte('d'), k-1
		if isInsertion(at(k-1), at(k+1), k, edits) {
			step, from = 'i', k+1
		}
		startX := int(at(from))
		if step == 'd' {
			startX++
		}
		for ; x > startX; x, y = x-1, y-1 {
			steps = append(steps, '=')
		}
		steps = append(steps, step)
		x = int(at(from))
		y = x - from
	}
	for ; x > 0; x-- {
		steps = append(steps, '=')
	}
	slices.Reverse(steps)
	return steps
}
