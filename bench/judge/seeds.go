package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed seeds.txt
var seedText string

// seedTemplate is a template for many texts: a generator selects its alternatives.
type seedTemplate struct {
	family    string
	malicious bool
	text      string
}

// seedGrammar has the seeds and the lists that they refer to.
type seedGrammar struct {
	seeds []seedTemplate
	lists map[string][]string
}

func parseSeeds(text string) (*seedGrammar, error) {
	g := &seedGrammar{lists: map[string][]string{}}
	var head string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, "\t")
		line = strings.TrimSpace(line)
		kind, name, _ := strings.Cut(head, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "# "):
		case !indented:
			head = line
		case kind == "list":
			for word := range strings.SplitSeq(line, " | ") {
				g.lists[name] = append(g.lists[name], word)
			}
		case kind == "attack:" || kind == "honest:":
			g.seeds = append(g.seeds, seedTemplate{head, kind == "attack:", line})
		default:
			return nil, fmt.Errorf("seeds.txt: %q stands below no head", line)
		}
	}
	return g, nil
}

// randomGenerator is a small generator whose numbers are the same everywhere (splitmix64).
type randomGenerator uint64

func (r *randomGenerator) nextUint64() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *randomGenerator) intBelow(n int) int { return int(r.nextUint64() % uint64(n)) }

// drawText returns one text of a seed.
func (g *seedGrammar) drawText(text string, r *randomGenerator) string {
	var out strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "({")
		if i < 0 {
			out.WriteString(text)
			break
		}
		out.WriteString(text[:i])
		closing := map[byte]string{'(': ")", '{': "}"}[text[i]]
		inner, rest := cutBracket(text[i:], closing[0])
		text = rest
		if closing == "}" {
			list := g.lists[inner]
			out.WriteString(g.drawText(list[r.intBelow(len(list))], r))
			continue
		}
		choices := strings.Split(inner, "|")
		out.WriteString(g.drawText(choices[r.intBelow(len(choices))], r))
	}
	return out.String()
}

// cutBracket splits a text that begins with a bracket after the closing bracket.
func cutBracket(text string, closing byte) (inner, rest string) {
	end := strings.IndexByte(text, closing)
	return text[1:end], text[end+1:]
}
