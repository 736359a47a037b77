package search

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp/wirejson"
)

// Limits for learning.
const (
	maxUses        = 20_000 // the latest uses
	maxUseWords    = 30     // words of one query
	habitShare     = 0.6    // maximum bonus, relative to the best score by words
	habitHalfCount = 2      // number of uses that give half of the bonus
)

// ToolCallAfterQuery is a tool that was called after a query.
type ToolCallAfterQuery struct {
	Query string
	Tool  tool.ID
}

// Habits record which query words led to which tools. They are a small prior of a search: they add at most habitShare
// of the best match's score. They are bounded and immutable.
type Habits struct {
	tools []tool.ID
	words map[string][]toolUseCount // stem → the tools it led to
}

type toolUseCount struct {
	tool  int32
	times uint16
}

// LearnHabits returns the habits from uses, latest first. It ignores the earliest uses beyond the limit.
func LearnHabits(uses []ToolCallAfterQuery) *Habits {
	h := &Habits{words: make(map[string][]toolUseCount)}
	numbers := make(map[tool.ID]int32)
	for _, use := range uses[:min(len(uses), maxUses)] {
		n, ok := numbers[use.Tool]
		if !ok {
			n = int32(len(h.tools))
			numbers[use.Tool] = n
			h.tools = append(h.tools, use.Tool)
		}
		for _, word := range stemsForHabits(use.Query) {
			h.countUse(word, n)
		}
	}
	return h
}

func (h *Habits) countUse(word string, n int32) {
	list := h.words[word]
	i, ok := slices.BinarySearchFunc(list, n, func(e toolUseCount, n int32) int { return cmp.Compare(e.tool, n) })
	if !ok {
		list = slices.Insert(list, i, toolUseCount{tool: n})
	}
	if list[i].times < 1<<16-1 {
		list[i].times++
	}
	h.words[word] = list
}

// stemsForHabits returns the distinct stems of a query.
func stemsForHabits(query string) (stems []string) {
	for _, word := range splitWords(wirejson.ClipText(query, maxQuery)) {
		if stopWords()[word] || fillers()[word] || len(stems) == maxUseWords {
			continue
		}
		if s := toStem(word); !slices.Contains(stems, s) {
			stems = append(stems, s)
		}
	}
	return stems
}

// habitScores returns the tools that the words of the query led to. The score of each is in [0, 1).
func (v *View) habitScores(h *Habits, query string) map[uint32]float32 {
	if h == nil {
		return nil
	}
	words := stemsForHabits(query)
	parts := make([]float32, len(h.tools))
	var all float32
	for _, word := range words {
		rare := computeIDF(v.docs, 0)
		s, ok := v.stemID(word)
		if ok {
			rare = v.headIDF(s)
		}
		all += rare
		for _, e := range h.words[word] {
			part := rare * float32(e.times) / float32(e.times+habitHalfCount)
			parts[e.tool] += part / v.wordCommonness(h.tools[e.tool].Server, s, ok)
		}
	}
	out := make(map[uint32]float32)
	for n, part := range parts {
		if part == 0 {
			continue
		}
		if doc, ok := v.ix.docNumber(h.tools[n]); ok && v.isShown(doc) {
			out[doc] = part / all
		}
	}
	return out
}

// wordCommonness returns the square root of the number of a server's tools with a word, at least one. A call is weak
// evidence for one of many similar tools.
func (v *View) wordCommonness(server string, stem uint32, known bool) float32 {
	n := uint32(0)
	if known {
		for _, part := range v.ix.byServer[server] {
			n += v.countPartToolsWithStem(part, stem)
		}
	}
	return float32(math.Sqrt(float64(max(1, n))))
}

// docNumber returns the document number of a tool.
func (ix *Index) docNumber(id tool.ID) (uint32, bool) {
	name := strings.ToLower(id.Tool)
	for _, part := range ix.byServer[id.Server] {
		p := ix.parts[part]
		for doc := range p.byName.toolsNamed(name) {
			if p.ids[doc] == id {
				return ix.first[part] + doc, true
			}
		}
	}
	return 0, false
}
