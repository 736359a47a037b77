package scan

import (
	"bytes"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/sectionfile"
)

// referenceCue is the meaning of a word near the name of a tool.
type referenceCue uint8

const (
	cueOrder       referenceCue = 1 << iota // requires something, or an order of calls
	cueReplacement                          // replaces something
	cueChange                               // changes something
	cueArgument                             // arguments of a call
	cueTime                                 // when something happens
	cueCall
	cueUse
	cueTool // a word for tool
)

//go:embed crossref_words.txt
var crossWordsText string

// cueVocabulary has the words of crossref_words.txt.
type cueVocabulary struct {
	words    map[string]referenceCue
	unspaced map[string]referenceCue
	verbs    map[string]bool // first words of tool names
	values   map[string]bool // last words of names of values
}

var vocabularies = sync.OnceValue(func() *cueVocabulary {
	file, v := sectionfile.Parse(crossWordsText), &cueVocabulary{words: map[string]referenceCue{}, unspaced: map[string]referenceCue{}}
	v.verbs, v.values = file.SectionByHead("verbs").WordSet(), file.SectionByHead("values").WordSet()
	for i, section := range []string{"order", "replacement", "change", "given", "moment", "call", "use", "tool"} {
		for _, entry := range file.SectionByHead(section).Words() {
			for _, form := range NormalizedWordForms(entry) {
				if isUnspacedScript(form[0]) {
					v.unspaced[form] |= 1 << i
				} else {
					v.words[form] |= 1 << i
				}
			}
		}
	}
	return v
})

// isUnspacedScript reports whether a character that begins with b belongs to a script
// without spaces: Chinese, Japanese, Korean.
func isUnspacedScript(b byte) bool { return b >= 0xe3 }

// referenceToken is a word, or a name of several parts.
type referenceToken struct {
	start, end int32
	sentence   int32
	cue        referenceCue
	kind       tokenKind
}

type tokenKind uint8

const (
	wordToken      tokenKind = iota
	nameToken                // spelled like a tool name: send_mail, sendMail
	maybeNameToken           // may be a name or not: send-mail, SendMail, SEND_MAIL
)

// toolReference is an instruction about a name that may be a tool.
type toolReference struct {
	name       []byte       // as spelled in the text
	start, end int          // span of the name and the nearest cue
	cues       referenceCue // cues near it
	likelyTool bool         // likely a tool name, even if no such tool exists
}

// changesArguments reports whether it changes the arguments of the tool's calls.
func (r *toolReference) changesArguments() bool {
	return r.cues&cueChange != 0 && r.cues&cueArgument != 0
}

// referenceFinder finds the references in the texts of a definition.
type referenceFinder struct {
	words       *cueVocabulary
	raw         []byte // the definition
	tokens      []referenceToken
	text        *Passage
	remaining   int // references that may still be found; below 0 when there were more
	lookupsLeft int // remaining searches of the definition
	found       func(toolReference)
}

// findReferences calls found with the references of a definition, and reports whether
// these are all.
func findReferences(raw []byte, instructions bool, found func(*Passage, toolReference)) (all bool) {
	x := &referenceFinder{words: vocabularies(), raw: raw, remaining: maxReferences, lookupsLeft: maxNameLookups}
	x.found = func(r toolReference) { found(x.text, r) }
	if instructions {
		VisitPlainText("instructions", unquoteJSON(raw), x.findInPassage)
	} else {
		eachStringValue(raw, cannotContainReference, x.findInPassage)
	}
	return x.remaining >= 0
}

// maxReferences bounds the references per definition. Of 18,742 real tools none has more
// than 43.
const maxReferences = 512

// maxNameLookups bounds the searches of a definition for a name.
const maxNameLookups = 128

// maxReferenceSpan is the longest excerpt of a finding, in bytes.
const maxReferenceSpan = 160

// cueDistance is how far from a name a cue applies to it, in bytes.
const cueDistance = 240

// findInPassage finds the references in a text.
func (x *referenceFinder) findInPassage(t *Passage) {
	x.text = t
	if x.tokens == nil {
		x.tokens = make([]referenceToken, 0, 64)
	}
	x.tokenize()
	for i := range x.tokens {
		if x.remaining < 0 {
			return
		}
		if x.hasServerPrefix(i) {
			x.checkNamePhrase(i-1, i)
		}
		switch k := &x.tokens[i]; {
		case k.kind != wordToken:
			x.checkNameToken(i)
		case k.cue&cueTool != 0:
			x.checkToolPhrase(i)
		}
	}
}

// cannotContainReference reports whether a JSON-encoded text cannot contain a reference.
func cannotContainReference(written []byte) bool {
	if len(written) < minReferenceText {
		return true
	}
	if bytes.Contains(written, []byte(`\u`)) { // an escaped letter
		return false
	}
	for i := 1; i < len(written)-1; i++ {
		before, after := written[i-1], written[i+1]
		switch c := written[i]; {
		case c == '_', c >= 0x80:
			return false
		case c == '-', isUpperByte(c):
			if isAlnum(before) && isAlnum(after) {
				return false
			}
		case c == 'o' || c == 'O': // tool
			if lowerByte(before) == 't' && lowerByte(after) == 'o' {
				return false
			}
		case c == 'u' || c == 'U': // function
			if lowerByte(before) == 'f' && lowerByte(after) == 'n' {
				return false
			}
		}
	}
	return true
}

// minReferenceText is the shortest text with a reference, in bytes.
const minReferenceText = 8

// tokenize splits the text into words and names.
func (x *referenceFinder) tokenize() {
	x.tokens = x.tokens[:0]
	text, sentence := x.text.Cased, int32(0)
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case isNameByte(c):
			k := x.tokenAt(i)
			k.sentence = sentence
			x.tokens = append(x.tokens, k)
			i = int(k.end)
			continue
		case c == '\n', c == '.' || c == '!' || c == '?' || c == ';':
			if c == '\n' || i+1 == len(text) || !isNameByte(text[i+1]) {
				sentence++
			}
		}
		i++
	}
}

// tokenAt returns the token that begins at start.
func (x *referenceFinder) tokenAt(start int) referenceToken {
	text, i := x.text.Cased, start
	k := referenceToken{start: int32(start)}
	if isUnspacedScript(text[start]) {
		for i < len(text) && text[i] >= 0x80 {
			i++
		}
		k.end = int32(i)
		k.cue = x.words.cuesInUnspacedRun(x.text.Lower[start:i])
		return k
	}
	under, dash, hump, small := false, false, false, false
	for ; i < len(text) && !isUnspacedScript(text[i]); i++ {
		c := text[i]
		switch {
		case isNameByte(c):
			hump = hump || i > start && isUpperByte(c) && isNameByte(text[i-1]) && isNamePartStart(text, i)
			small = small || isLowerByte(c)
			continue
		case c == '_' && continuesName(text, i):
			under = true
			continue
		case c == '-' && continuesName(text, i):
			dash = true
			continue
		}
		break
	}
	for !isNameByte(text[i-1]) {
		i--
	}
	switch {
	case under && small, hump && !under && !dash && isLowerByte(text[start]):
		k.kind = nameToken
	case under, dash, hump:
		k.kind = maybeNameToken
	default:
		if i+1 < len(text) && text[i] == '\'' && isLowerByte(text[i+1]) && small { // don't
			i += 2
		}
		if n := i - start; n > 1 && n <= longestWord {
			k.cue = x.words.words[string(x.text.Lower[start:i])]
		}
	}
	k.end = int32(i)
	return k
}

// longestWord is the longest word that is looked up, in bytes.
const longestWord = 24

// continuesName reports whether a name continues after the sign at i.
func continuesName(text []byte, i int) bool {
	return i+1 < len(text) && (isAlnum(text[i+1]) || text[i] == '_' && text[i+1] == '_')
}

// cuesInUnspacedRun returns the cues of the words in a run of characters without spaces.
func (v *cueVocabulary) cuesInUnspacedRun(run []byte) (all referenceCue) {
	for i := range run {
		for n := 3; n <= 12 && i+n <= len(run); n += 3 {
			all |= v.unspaced[string(run[i:i+n])]
		}
	}
	return all
}

// checkNameToken checks a name and the cues near it.
func (x *referenceFinder) checkNameToken(i int) {
	k := &x.tokens[i]
	if !x.isStandaloneName(i) || k.kind == maybeNameToken && !x.isMarkedAsTool(i) {
		return
	}
	text := x.text.Cased
	start, end := int(k.start), int(k.end)
	r, ok := x.instructionAbout(i, i)
	if !ok {
		return
	}
	likely := x.isLikelyTool(i)
	if !likely && x.definitionContainsName(text[start:end]) { // it is probably a parameter
		return
	}
	r.likelyTool = likely && x.cuesBetween(i, -12, 12)&cueOrder != 0
	x.reportReference(r, start, end)
	for at := start; at+2 < end; at++ { // server__tool
		if text[at] == '_' && text[at+1] == '_' && isNameByte(text[at+2]) {
			x.reportReference(r, at+2, end)
		}
	}
}

// reportReference reports a reference to the tool that is named between two offsets.
func (x *referenceFinder) reportReference(r toolReference, start, end int) {
	if x.remaining--; x.remaining < 0 {
		return
	}
	r.name = x.text.Cased[start:end]
	x.found(r)
}

// isStandaloneName reports whether a name is not part of a path, an assignment or code.
func (x *referenceFinder) isStandaloneName(i int) bool {
	k, text := &x.tokens[i], x.text.Cased
	start, end := int(k.start), int(k.end)
	// Names separated by a slash are alternatives, words are a path.
	beside := func(j, at int) bool {
		return j >= 0 && j < len(x.tokens) && x.tokens[j].kind != wordToken && (int(x.tokens[j].end) == at || int(x.tokens[j].start) == at+1)
	}
	switch byteAtOrZero(text, start-1) {
	case '$', '@', '#', '%', '=', '&', '{', '\\', '.':
		return false
	case '/':
		if !beside(i-1, start-1) {
			return false
		}
	case '"', '\'', '`':
		if byteAtOrZero(text, start-2) == '=' {
			return false
		}
	}
	switch byteAtOrZero(text, end) {
	case '=':
		return false
	case ':': // description of a parameter
		return !x.definitionContainsName(text[start:end])
	case '/':
		return beside(i+1, end)
	}
	return true
}

// isMarkedAsTool reports whether the text marks a token as a tool name.
func (x *referenceFinder) isMarkedAsTool(i int) bool {
	return x.isQuoted(i) || i+1 < len(x.tokens) && x.tokens[i+1].cue&cueTool != 0 ||
		i > 0 && x.tokens[i-1].cue&(cueTool|cueCall|cueUse) != 0
}

func (x *referenceFinder) isQuoted(i int) bool {
	k, text := &x.tokens[i], x.text.Cased
	return isQuote(byteAtOrZero(text, int(k.start)-1)) && isQuote(byteAtOrZero(text, int(k.end)))
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' || c == '*' }

func byteAtOrZero(text []byte, i int) byte {
	if i < 0 || i >= len(text) {
		return 0
	}
	return text[i]
}

// hasServerPrefix reports whether a token has a server prefix: server:tool.
func (x *referenceFinder) hasServerPrefix(i int) bool {
	k, text := &x.tokens[i], x.text.Cased
	return i > 0 && byteAtOrZero(text, int(k.start)-1) == ':' && x.tokens[i-1].end == k.start-1 &&
		!isDigitByte(text[k.start]) && !isDigitByte(text[x.tokens[i-1].start])
}

// checkToolPhrase checks the words next to the word tool: `search` tool, send mail tool.
func (x *referenceFinder) checkToolPhrase(i int) {
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < len(x.tokens) && x.tokens[j].kind == wordToken && x.isQuoted(j) {
			x.checkNamePhrase(j, j)
		}
	}
	for first := i - 1; first > i-5 && first >= 0; first-- {
		k, next := &x.tokens[first], &x.tokens[first+1]
		gap := x.text.Cased[k.end:next.start]
		if first == i-1 && len(gap) == 2 && isQuote(gap[0]) {
			gap = gap[1:]
		}
		if k.kind != wordToken || len(gap) != 1 || gap[0] != ' ' {
			return
		}
		if first < i-1 {
			x.checkNamePhrase(first, i-1)
		}
	}
}

// checkNamePhrase checks words that may be a name.
func (x *referenceFinder) checkNamePhrase(first, last int) {
	if r, ok := x.instructionAbout(first, last); ok {
		x.reportReference(r, int(x.tokens[first].start), int(x.tokens[last].end))
	}
}

// instructionAbout returns the instruction about the tool that the tokens name. ok is
// false without one.
func (x *referenceFinder) instructionAbout(first, last int) (r toolReference, ok bool) {
	const orders = cueOrder | cueReplacement | cueChange | cueTime
	from, to := x.tokens[first].start, x.tokens[last].end
	all, least := referenceCue(0), int32(cueDistance)
	r.start, r.end = int(from), int(to)
	see := func(k *referenceToken, distance int32) {
		all |= k.cue
		if k.cue&orders != 0 && distance < least {
			least = distance
			r.start, r.end = int(min(from, k.start)), int(max(to, k.end))
		}
	}
	for i := first - 1; i >= 0 && x.tokens[i].start >= from-cueDistance; i-- {
		see(&x.tokens[i], from-x.tokens[i].end)
	}
	for i := last + 1; i < len(x.tokens) && x.tokens[i].end <= to+cueDistance; i++ {
		see(&x.tokens[i], x.tokens[i].start-to)
	}
	if r.end-r.start > maxReferenceSpan {
		r.start, r.end = int(from), int(to)
	}
	r.cues = x.cuesBetween(first, -12, 12)
	return r, all&(cueOrder|cueReplacement) != 0 || all&cueChange != 0 && all&cueArgument != 0 || all&cueTime != 0 && all&(cueCall|cueUse) != 0
}

// cuesBetween returns the cues of a range of tokens in the sentence of token i.
func (x *referenceFinder) cuesBetween(i, from, to int) (all referenceCue) {
	for j := max(0, i+from); j < min(len(x.tokens), i+to+1); j++ {
		if x.tokens[j].sentence == x.tokens[i].sentence {
			all |= x.tokens[j].cue
		}
	}
	return all
}

// isLikelyTool reports whether a token is more likely a tool than a value.
func (x *referenceFinder) isLikelyTool(i int) bool {
	k := &x.tokens[i]
	if k.kind != nameToken {
		return false
	}
	first, last := firstAndLastPart(x.text.Cased[k.start:k.end])
	return x.words.verbs[first] && (!x.words.values[last] || x.cuesBetween(i, -4, 5)&(cueCall|cueUse|cueTool) != 0)
}

// firstAndLastPart returns the first and the last part of a name in lower case.
func firstAndLastPart(name []byte) (first, last string) {
	from, to := len(name)-1, 1
	for from > 0 && !isNamePartStart(name, from) {
		from--
	}
	for to < len(name) && isNameByte(name[to]) && !isNamePartStart(name, to) {
		to++
	}
	return strings.ToLower(string(name[:to])), strings.ToLower(string(name[from:]))
}

// definitionContainsName reports whether the definition contains the name as a string or member.
// After too many searches it returns false, so that more is found.
func (x *referenceFinder) definitionContainsName(name []byte) bool {
	x.lookupsLeft--
	return x.lookupsLeft >= 0 && containsJSONString(x.raw, name)
}

func containsJSONString(raw, name []byte) bool {
	return bytes.Contains(raw, slices.Concat([]byte{'"'}, name, []byte{'"'}))
}

// unquoteJSON decodes a JSON string.
func unquoteJSON(raw []byte) string {
	text, _ := wirejson.String(raw)
	return text
}
