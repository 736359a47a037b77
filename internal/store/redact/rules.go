package redact

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/sectionfile"
)

//go:embed credentials.txt
var credentialsText string

// credentialRules is the parsed credentials.txt.
type credentialRules struct {
	names                               [256][]credentialNameRule // by their last letter
	harmlessBeforeToken                 map[string]bool           // words before "token" that make the name harmless
	types                               []string
	placeholderBeginnings, placeholders []string
	flags                               []passwordFlagRule
	tokens                              [256][]*tokenRule // by the first letter of their prefix
	// Quick tests that avoid the slow tests for nearly all text: the last letters of names and the first letters of
	// tokens.
	nameEnds, tokenStarts trigramSet
}

// rules contains the rules for credentials. They are parsed at program start, because they apply to every word.
var rules = parseCredentialRules(sectionfile.Parse(credentialsText))

func parseCredentialRules(f sectionfile.Sections) (k credentialRules) {
	k = credentialRules{
		harmlessBeforeToken: f.SectionByHead("harmless before token").WordSet(), types: f.SectionByHead("types").Words(),
		placeholderBeginnings: f.SectionByHead("placeholder beginnings").Words(), placeholders: f.SectionByHead("placeholders").Words(),
	}
	for _, line := range f.SectionByHead("password flags").Lines {
		k.flags = append(k.flags, parseFlagRule(strings.Fields(line)))
	}
	ends := append(slices.Clone(k.types), "value") // words that may be between a name and its value, or replace the name
	for _, line := range f.SectionByHead("names").Lines {
		r := parseNameRule(strings.Fields(line))
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
	k.tokenStarts.add('e', 'y', 'J') // a JSON Web Token, plain or in base64
	k.tokenStarts.add('Z', 'X', 'l')
	for _, line := range f.SectionByHead("tokens").Lines {
		r := parseTokenRule(strings.Fields(line))
		k.tokens[r.prefix[0]] = append(k.tokens[r.prefix[0]], r)
		first := r.prefix + "\x00"
		k.tokenStarts.add(first[0], first[1], first[2])
	}
	return k
}

// trigramSet is a set of three-letter sequences, with one bit for each. It ignores case.
type trigramSet [1 << 15 / 64]uint64

// add adds a sequence of three letters. A 0 means any letter.
func (t *trigramSet) add(a, b, c byte) {
	for other := byte(32); other < 64 && (a == 0 || c == 0); other++ {
		t.add(cmp.Or(a, other), b, cmp.Or(c, other))
	}
	h := trigramHash(a, b, c)
	t[h/64] |= 1 << (h % 64)
}

func (t *trigramSet) has(a, b, c byte) bool {
	h := trigramHash(a, b, c)
	return t[h/64]>>(h%64)&1 == 1
}

func trigramHash(a, b, c byte) uint { return uint(a&31)<<10 | uint(b&31)<<5 | uint(c&31) }

// parseNameRule parses a line in the section "names".
func parseNameRule(columns []string) credentialNameRule {
	tells := slices.Index([]string{harmless: "harmless", weak: "weak", strong: "strong"}, columns[2])
	if tells < 0 {
		panic(fmt.Sprintf("redact: %q is no strength of a name", columns[2]))
	}
	r := credentialNameRule{end: columns[0], kind: columns[1], strength: credentialNameStrength(tells), word: slices.Contains(columns[3:], "word")}
	if r.strength == harmless {
		r.kind = ""
	}
	return r
}

// parseFlagRule parses a line in the section "password flags".
func parseFlagRule(columns []string) passwordFlagRule {
	return passwordFlagRule{command: columns[0], flag: columns[1][0], apart: slices.Contains(columns[2:], "apart"), attached: slices.Contains(columns[2:], "attached")}
}

// parseTokenRule parses a line in the section "tokens".
func parseTokenRule(columns []string) *tokenRule {
	r := &tokenRule{prefix: columns[0], kind: columns[1], digits: slices.Contains(columns[4:], "digit")}
	for name := range strings.SplitSeq(columns[2], "|") {
		if charSetsByName[name] == 0 {
			panic(fmt.Sprintf("redact: no set of characters is named %q", name))
		}
		r.set |= charSetsByName[name]
	}
	low, high, open := strings.Cut(columns[3], "..")
	r.min = mustParseInt(low)
	switch {
	case !open:
		r.max = r.min
	case high != "":
		r.max = mustParseInt(high)
	}
	return r
}

func mustParseInt(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic("redact: " + err.Error())
	}
	return n
}

// charSetsByName maps the names that the file can use to character sets.
var charSetsByName = map[string]charSet{
	"alnum": alnum, "base64": base64, "dash": dash, "digit": digit, "dot": dot, "equals": equals, "gz": gz, "hexAny": hexAny,
	"hexLower": hexLower, "ident": ident, "slash": slash, "under": under, "upper": upper, "word": word,
}

// credentialNameStrength states how likely the value under a name is a secret.
type credentialNameStrength uint8

const (
	harmless credentialNameStrength = iota
	weak                            // the value is a secret if it looks random
	strong                          // the value is a secret
)

// A credentialNameRule matches names that end in certain words. The words are written without separators: "apikey"
// matches api_key, API-Key, apiKey and x.api.key.
type credentialNameRule struct {
	end      string
	kind     string
	strength credentialNameStrength
	word     bool // whether end must be a separate word: "pass" does not match bypass
}

// A tokenRule matches a credential with a known form: a prefix, then min to max characters of a set, and no letter or
// digit after them. A max of 0 means no limit. If digits is set, the characters must include a digit, because the
// prefix could begin an ordinary word.
type tokenRule struct {
	prefix   string
	kind     string
	set      charSet
	min, max int
	digits   bool
}

// A passwordFlagRule matches a flag of a command whose value is a password.
type passwordFlagRule struct {
	command  string
	flag     byte
	apart    bool // -p password
	attached bool // -ppassword
}
