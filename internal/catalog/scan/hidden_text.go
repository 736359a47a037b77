package scan

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The rules of this file.
var (
	ruleHidden     = scanRule{name: "hidden-unicode", severity: SeverityReview, reason: "contains characters that are invisible to users but not to a model"}
	ruleSmuggled   = scanRule{name: "smuggled-text", severity: SeverityBlock, reason: "hides a text in invisible characters"}
	ruleBidi       = scanRule{name: "reordered-text", severity: SeverityReview, reason: "contains characters that display text in a different order than a model reads it"}
	ruleControl    = scanRule{name: "control-character", severity: SeverityReview, reason: "contains control characters, which can change what a terminal shows"}
	ruleConfusable = scanRule{name: "confusable", severity: SeverityReview, reason: "contains letters of another alphabet that look like Latin letters"}
	ruleFar        = scanRule{name: "out-of-sight", severity: SeverityReview, reason: "hides text behind many spaces or empty lines"}
	ruleOddName    = scanRule{name: "odd-name", severity: SeverityReview, reason: "has line breaks or unusual spaces or letters in its name"}
)

// checkHiddenCharacters finds invisible characters and letters that resemble others.
func (s *scanner) checkHiddenCharacters(f *scannedString) {
	m := &s.baseView.n.marks
	named := f.place == kindToolName || f.place == kindMemberName
	for _, h := range m.hidden {
		r, ok := hiddenCharacterRule(f.text, h)
		if !ok {
			continue
		}
		if named && r.severity == SeverityReview {
			r.severity = SeverityBlock // names never need them
		}
		s.addFinding(f, r, h.start, h.end, "")
	}
	if f.place == kindToolName {
		s.checkAmbiguousName(f)
	}
	s.checkTextOutOfSight(f)
	for _, w := range m.folded {
		r := ruleConfusable
		if named && f.place == kindToolName {
			r.severity = SeverityBlock
		}
		s.addFinding(f, r, w.start, w.end, "")
	}
}

// A text after so many line breaks, or after so many other spaces on its line or in all,
// is out of sight.
const (
	farLines  = 9
	farRow    = 60
	farBlanks = 100
)

// checkTextOutOfSight finds text after many spaces, which users do not see. Spaces at the
// beginning and the end hide nothing.
func (s *scanner) checkTextOutOfSight(f *scannedString) {
	lines, blanks, start := 0, 0, 0
	for i, r := range f.text {
		switch {
		case r == '\n':
			lines++
		case unicode.IsSpace(r) || r == '\u2800' || r == '\u3164': // these two are blank, too
			blanks++
		default:
			if start > 0 && (lines >= farLines || blanks >= farBlanks || lines == 0 && blanks >= farRow) {
				s.addFinding(f, ruleFar, start, i, "")
			}
			lines, blanks, start = 0, 0, i+utf8.RuneLen(r)
		}
	}
}

// checkAmbiguousName finds characters that make a name look like another one, or like two.
func (s *scanner) checkAmbiguousName(f *scannedString) {
	at := strings.IndexFunc(f.text, func(r rune) bool { return r != ' ' && unicode.IsSpace(r) })
	if at < 0 && !norm.NFKC.IsNormalString(f.text) {
		at = norm.NFKC.QuickSpanString(f.text)
	}
	if at >= 0 {
		s.addFinding(f, ruleOddName, at, len(f.text), "")
	}
}

// hiddenCharacterRule returns the rule that a run of invisible characters violates; false if they
// are legitimate.
func hiddenCharacterRule(text string, h hiddenRun) (scanRule, bool) {
	before, _ := utf8.DecodeLastRuneInString(text[:h.start])
	behind, _ := utf8.DecodeRuneInString(text[h.end:])
	run := text[h.start:h.end]
	block := func(r scanRule) (scanRule, bool) {
		r.severity = SeverityBlock
		return r, true
	}
	switch {
	case h.kinds&tags != 0 && before == 0x1F3F4 && h.runes <= 8: // the flag of a region
		return scanRule{}, false
	case h.kinds&tags != 0, h.kinds == selectors && h.runes > 2:
		return ruleSmuggled, true
	case h.kinds&bidi != 0 && strings.ContainsAny(run, "\u202d\u202e"): // overrides
		return block(ruleBidi)
	case h.kinds&bidi != 0:
		return ruleBidi, !strings.ContainsFunc(text, isRightToLeft)
	case h.kinds&control != 0 && strings.ContainsAny(run, "\x1b\u009b\u009d"): // obeyed by terminals
		return block(ruleControl)
	case h.kinds&control != 0:
		return ruleControl, strings.Trim(run, "\f\v") != ""
	case h.kinds&private != 0:
		return ruleHidden, true
	case h.runes >= 8:
		return block(ruleHidden)
	case h.kinds == selectors, h.start == 0 && h.runes == 1:
		return scanRule{}, false // the look of an emoji; a byte order mark
	case h.kinds&^(selectors|zeroWidth) == 0 && (usesJoiners(before) || h.kinds&selectors != 0) && (usesJoiners(behind) || behind == utf8.RuneError):
		return scanRule{}, false
	}
	return ruleHidden, true
}

// usesJoiners reports whether invisible characters are legitimate next to r: in emoji,
// and in scripts that use joiners.
func usesJoiners(r rune) bool {
	return r >= 0x2190 && unicode.In(r, unicode.So, unicode.Sk, unicode.Sm) || r >= 0x1F000 && r <= 0x1FAFF ||
		r >= utf8.RuneSelf && unicode.IsLetter(r) && !unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Han) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r)
}

func isRightToLeft(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana) && unicode.IsLetter(r)
}
