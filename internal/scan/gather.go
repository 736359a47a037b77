package scan

import (
	"math/bits"
	"strings"
)

// cue is a place that one of the rules for cues found: words of the view.
type cue struct{ kind, start, end int }

// ruleCues is what several kinds of cues in one breath amount to.
var ruleCues = rule{name: "many-cues", severity: SeverityReview, reason: "steers the model in several ways at once"}

// gather finds where cues of several kinds stand together.
func (s *scanner) gather(f *field, v *view, g *grammar) {
	for i, c := range s.cues {
		kinds, end := uint64(0), c.end
		for _, other := range s.cues[i:] {
			if other.start-c.start > breath { // they stand in order
				break
			}
			if other.end-c.start > breath {
				continue
			}
			kinds |= 1 << other.kind
			end = max(end, other.end)
		}
		if bits.OnesCount64(kinds) < enoughCues {
			continue
		}
		r := ruleCues
		var why []string
		for k, cue := range g.rules[g.firstCue:] {
			if kinds&(1<<k) != 0 {
				why = append(why, cue.reason)
			}
		}
		r.reason += ": it " + strings.Join(why, "; ")
		s.see(f, v, r, int(s.matcher.words[c.start].start), int(s.matcher.words[end-1].end), s.mentioned(v, g, c.start, end))
		return
	}
}

// What is one breath, in words, and how many kinds of cues are many.
const (
	breath     = 25
	enoughCues = 3
)
