package redact

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/wordlist"
)

//go:embed credentials.txt
var credentialsText string

// knowledge is what credentials.txt says.
type knowledge struct {
	names                               [256][]nameRule // by their last letter
	noTokens                            map[string]bool // what stands before "token" where it is no credential
	types                               []string
	placeholderBeginnings, placeholders []string
	flags                               []flagRule
	tokens                              [256][]*tokenRule // by the first letter of their prefix
	// The quick tests that spare nearly all text the slow ones: how names end
	// and how tokens begin.
	nameEnds, tokenStarts threes
}

// known is what is known of credentials. It is read when the program starts, for
// it is asked about every word.
var known = readKnowledge(wordlist.Parse(credentialsText))

func readKnowledge(f wordlist.File) (k knowledge) {
	k = knowledge{
		noTokens: f.SectionByHead("harmless before token").WordSet(), types: f.SectionByHead("types").Words(),
		placeholderBeginnings: f.SectionByHead("placeholder beginnings").Words(), placeholders: f.SectionByHead("placeholders").Words(),
	}
	for _, line := range f.SectionByHead("password flags").Lines {
		k.flags = append(k.flags, readFlagRule(strings.Fields(line)))
	}
	ends := append(slices.Clone(k.types), "value") // these stand before or instead of one
	for _, line := range f.SectionByHead("names").Lines {
		r := readNameRule(strings.Fields(line))
		last := r.end[len(r.end)-1]
		k.names[last] = append(k.names[last], r)
		if r.strength != harmless {
			ends = append(ends, r.end)
		}
	}
	for _, end := range ends {
		last := ("\x00" + end)[len(end)-2:]
		k.nameEnds.add(last[0], last[1], last[2])
	}
	k.tokenStarts.add('e', 'y', 'J') // a JSON Web Token, and one in base64
	k.tokenStarts.add('Z', 'X', 'l')
	for _, line := range f.SectionByHead("tokens").Lines {
		r := readTokenRule(strings.Fields(line))
		k.tokens[r.prefix[0]] = append(k.tokens[r.prefix[0]], r)
		first := r.prefix + "\x00"
		k.tokenStarts.add(first[0], first[1], first[2])
	}
	return k
}

// threes is a set of three letters, of either case: a bit for each.
type threes [1 << 15 / 64]uint64

// add adds three letters; in the place of 0 stands any.
func (t *threes) add(a, b, c byte) {
	for other := byte(32); other < 64 && (a == 0 || c == 0); other++ {
		t.add(cmp.Or(a, other), b, cmp.Or(c, other))
	}
	h := hash(a, b, c)
	t[h/64] |= 1 << (h % 64)
}

func (t *threes) has(a, b, c byte) bool {
	h := hash(a, b, c)
	return t[h/64]>>(h%64)&1 == 1
}

func hash(a, b, c byte) uint { return uint(a&31)<<10 | uint(b&31)<<5 | uint(c&31) }

// readNameRule reads the columns of a line under names.
func readNameRule(columns []string) nameRule {
	tells := slices.Index([]string{harmless: "harmless", weak: "weak", strong: "strong"}, columns[2])
	if tells < 0 {
		panic(fmt.Sprintf("redact: %q is no strength of a name", columns[2]))
	}
	r := nameRule{end: columns[0], kind: columns[1], strength: strength(tells), word: slices.Contains(columns[3:], "word")}
	if r.strength == harmless {
		r.kind = ""
	}
	return r
}

// readFlagRule reads the columns of a line under password flags.
func readFlagRule(columns []string) flagRule {
	return flagRule{command: columns[0], flag: columns[1][0], apart: slices.Contains(columns[2:], "apart"), attached: slices.Contains(columns[2:], "attached")}
}

// readTokenRule reads the columns of a line under tokens.
func readTokenRule(columns []string) *tokenRule {
	r := &tokenRule{prefix: columns[0], kind: columns[1], digits: slices.Contains(columns[4:], "digit")}
	for name := range strings.SplitSeq(columns[2], "|") {
		if setsNamed[name] == 0 {
			panic(fmt.Sprintf("redact: no set of characters is named %q", name))
		}
		r.set |= setsNamed[name]
	}
	low, high, open := strings.Cut(columns[3], "..")
	r.min = number(low)
	switch {
	case !open:
		r.max = r.min
	case high != "":
		r.max = number(high)
	}
	return r
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic("redact: " + err.Error())
	}
	return n
}

// setsNamed are the sets of characters that the file speaks of.
var setsNamed = map[string]set{
	"alnum": alnum, "base64": base64, "dash": dash, "digit": digit, "dot": dot, "equals": equals, "gz": gz, "hexAny": hexAny,
	"hexLower": hexLower, "ident": ident, "slash": slash, "under": under, "upper": upper, "word": word,
}

// strength is how much a name alone tells.
type strength uint8

const (
	harmless strength = iota
	weak              // a secret if the value looks random
	strong            // a secret
)

// A nameRule is for names that end in a word or words, written together:
// "apikey" is for api_key, API-Key, apiKey and x.api.key.
type nameRule struct {
	end      string
	kind     string
	strength strength
	word     bool // end must be a word of its own: "pass" is not for bypass
}

// A tokenRule is a credential that can be told by its own form: a prefix, then
// min to max characters of a set, and no further letter or digit after them.
// No max means any number. Where digits is set, one must be among them: the
// prefix alone could begin an ordinary word.
type tokenRule struct {
	prefix   string
	kind     string
	set      set
	min, max int
	digits   bool
}

// A flagRule is a flag with a password of a command.
type flagRule struct {
	command  string
	flag     byte
	apart    bool // -p password
	attached bool // -ppassword
}
