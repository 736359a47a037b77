package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed seeds.txt
var seedText string

// seed is a text that stands for many: its choices are drawn.
type seed struct {
	family    string
	malicious bool
	text      string
}

// grammar is the seeds, and the lists that they name.
type grammar struct {
	seeds []seed
	lists map[string][]string
}

func parseSeeds(text string) (*grammar, error) {
	g := &grammar{lists: map[string][]string{}}
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
			g.seeds = append(g.seeds, seed{head, kind == "attack:", line})
		default:
			return nil, fmt.Errorf("seeds.txt: %q stands below no head", line)
		}
	}
	return g, nil
}

// random is a small generator whose numbers are the same everywhere (splitmix64).
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// draw makes one text of a seed.
func (g *grammar) draw(text string, r *random) string {
	var out strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "({")
		if i < 0 {
			out.WriteString(text)
			break
		}
		out.WriteString(text[:i])
		closing := map[byte]string{'(': ")", '{': "}"}[text[i]]
		inner, rest := balanced(text[i:], closing[0])
		text = rest
		if closing == "}" {
			list := g.lists[inner]
			out.WriteString(g.draw(list[r.below(len(list))], r))
			continue
		}
		choices := strings.Split(inner, "|")
		out.WriteString(g.draw(choices[r.below(len(choices))], r))
	}
	return out.String()
}

// balanced parts a text that begins with a bracket behind the closing one.
func balanced(text string, closing byte) (inner, rest string) {
	end := strings.IndexByte(text, closing)
	return text[1:end], text[end+1:]
}
