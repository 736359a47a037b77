package textedit

import (
	"strings"

	"mcpproxy/internal/store/redact"
)

// Limits: context lines around a change, and lines that are compared.
const (
	contextLines     = 2
	maxComparedLines = 2000
)

// Diff returns the line difference of two texts: each line after "- ", "+ " or two
// spaces, with some context, and secrets masked.
func Diff(before, after []byte) string {
	old, now := textLines(before), textLines(after)
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	marked := diffLines(old[head:len(old)-tail], now[head:len(now)-tail])
	for i := head - 1; i >= max(head-contextLines, 0); i-- {
		marked = append([]string{"  " + old[i]}, marked...)
	}
	for _, line := range old[len(old)-tail : min(len(old)-tail+contextLines, len(old))] {
		marked = append(marked, "  "+line)
	}
	return redact.Text(strings.Join(trimContext(marked), "\n"))
}

func textLines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n")
}

// diffLines marks the lines of two texts by their longest common subsequence. It does not align very long texts.
func diffLines(old, now []string) []string {
	var marked []string
	if len(old) > maxComparedLines || len(now) > maxComparedLines {
		for _, line := range old {
			marked = append(marked, "- "+line)
		}
		old = nil
	}
	longest := lcsLengths(old, now)
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case i < len(old) && j < len(now) && old[i] == now[j]:
			marked = append(marked, "  "+old[i])
			i, j = i+1, j+1
		case i < len(old) && (j == len(now) || longest[i+1][j] >= longest[i][j+1]):
			marked = append(marked, "- "+old[i])
			i++
		default:
			marked = append(marked, "+ "+now[j])
			j++
		}
	}
	return marked
}

// lcsLengths returns the lengths of the longest common subsequences of the suffixes that start at i and j.
func lcsLengths(old, now []string) [][]int {
	longest := make([][]int, len(old)+1)
	for i := len(old); i >= 0; i-- {
		longest[i] = make([]int, len(now)+1)
		for j := len(now) - 1; j >= 0 && i < len(old); j-- {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if old[i] == now[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	return longest
}

// trimContext removes lines that are far from any change.
func trimContext(marked []string) []string {
	near := make([]bool, len(marked))
	for i, line := range marked {
		for k := max(i-contextLines, 0); k <= min(i+contextLines, len(marked)-1) && line[0] != ' '; k++ {
			near[k] = true
		}
	}
	var out []string
	for i, line := range marked {
		switch {
		case near[i]:
			out = append(out, line)
		case i > 0 && near[i-1]:
			out = append(out, "  …")
		}
	}
	return out
}
