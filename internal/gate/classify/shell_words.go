package classify

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func isProcessSubstitution(w *syntax.Word) bool {
	_, ok := w.Parts[0].(*syntax.ProcSubst)
	return ok && len(w.Parts) == 1
}

// toCommandArg returns the part of a word that is known without expansion.
func toCommandArg(w *syntax.Word) commandArg {
	var room [4]string
	text, known := room[:0], true
	add := func(s string, all bool) { text, known = append(text, s), all }
	splits := false
	for _, p := range w.Parts {
		splits = splits || maySplit(p)
		if !known {
			continue
		}
		switch p := p.(type) {
		case *syntax.Lit:
			add(parseLiteral(p.Value, true, len(w.Parts) == 1))
		case *syntax.SglQuoted:
			add(decodeANSIQuote(p.Value, p.Dollar))
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if lit, ok := q.(*syntax.Lit); ok && known && !p.Dollar {
					add(parseLiteral(lit.Value, false, false))
				} else {
					known = false
				}
			}
		case *syntax.ProcSubst:
			add("/dev/fd/", false)
		default:
			known = false
		}
	}
	return commandArg{strings.Join(text, ""), known, splits}
}

// maySplit reports whether the shell may split the value of a part into several words: an expansion outside quotes,
// or "$@".
func maySplit(p syntax.WordPart) bool {
	switch p := p.(type) {
	case *syntax.ParamExp, *syntax.CmdSubst:
		return true
	case *syntax.DblQuoted:
		return slices.ContainsFunc(p.Parts, func(q syntax.WordPart) bool {
			e, ok := q.(*syntax.ParamExp)
			return ok && (e.Param == nil || e.Param.Value == "@" || e.Index != nil)
		})
	}
	return false
}

// decodeANSIQuote decodes a text in single quotes, and reports whether the result is certain. If dollar is set,
// backslash escapes are decoded; only escapes that all shells decode in the same way are supported.
func decodeANSIQuote(text string, dollar bool) (string, bool) {
	if !dollar || !strings.ContainsRune(text, '\\') {
		return text, true
	}
	value := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' {
			if i++; i == len(text) {
				return "", false
			}
			at := strings.IndexByte(`tn\'"`, text[i])
			if at < 0 {
				return "", false
			}
			c = "\t\n\\'\""[at]
		}
		value = append(value, c)
	}
	return string(value), true
}

// parseLiteral returns the literal prefix of text, and whether that is the whole text. bare means that text is
// unquoted, and whole that it is the whole word.
func parseLiteral(text string, bare, whole bool) (string, bool) {
	special := "\\"
	if bare {
		special = "\\*?[{"
	}
	plain := strings.IndexAny(text, special)
	if plain < 0 {
		return text, true
	}
	value := []byte(text[:plain])
	for i := plain; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (bare || strings.IndexByte("\"\\$`\n", text[i+1]) >= 0):
			i++
			if text[i] != '\n' {
				value = append(value, text[i])
			}
		case bare && (c == '*' || c == '?' || c == '[' && len(text) > 1 || c == '{' && mayBraceExpand(text[i:], whole)):
			return string(value), false
		default:
			value = append(value, c)
		}
	}
	return string(value), true
}

// mayBraceExpand reports whether a text that starts with a brace may expand to several words.
func mayBraceExpand(text string, whole bool) bool {
	return !whole && len(text) > 0 || strings.Contains(text, ",") || strings.Contains(text, "..")
}
