package config

import (
	"regexp"
	"strings"
)

// A reference is a placeholder in a string for a value stored elsewhere. "$${" represents the text "${". Other forms
// are text: shells and other programs have their own "${…}".

// referenceSchemes are the schemes of references. env is resolved here, keyring when the server starts (see
// Server.ResolveSecrets). input is reported as a mistake, because otherwise its text would be sent as a credential.
var referenceSchemes = map[string]bool{"env": true, "keyring": true, "input": true}

var (
	envName          = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	secretName       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`) // as in package secret
	referencePattern = regexp.MustCompile(`\$\{(?:env:[A-Za-z_][A-Za-z0-9_]*|keyring:[A-Za-z_][A-Za-z0-9_.-]*)\}`)
)

// expansion is a string with its references resolved, and the errors found in it.
type expansion struct {
	text     string
	mistakes []Mistake       // without a position
	missing  []unsetVariable // unset variables
}

// expandReferences resolves the references in raw.
func expandReferences(raw string, lookup func(string) (string, bool)) expansion {
	var out expansion
	rest := raw
	var text strings.Builder
	for {
		i := strings.Index(rest, "${")
		if i < 0 {
			text.WriteString(rest)
			break
		}
		if i > 0 && rest[i-1] == '$' { // "$${" is "${"
			text.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		text.WriteString(rest[:i])
		rest = rest[i:]
		n, value := out.resolveReference(rest, lookup)
		text.WriteString(value)
		rest = rest[n:]
	}
	out.text = text.String()
	return out
}

// resolveReference parses the "${" at the start of s and returns its length and its value, which is the text itself
// if that is not a reference.
func (out *expansion) resolveReference(s string, lookup func(string) (string, bool)) (n int, value string) {
	scheme, name, isReference := strings.Cut(s[2:], ":")
	if !isReference || !referenceSchemes[scheme] {
		return 2, "${"
	}
	name, _, closed := strings.Cut(name, "}")
	if !closed {
		out.addMistake("the reference ${"+scheme+": has no closing brace", `for the literal text write "$${"`)
		return len(s), s
	}
	whole := "${" + scheme + ":" + name + "}"
	switch {
	case scheme == "keyring":
		if !secretName.MatchString(name) {
			out.addMistake(clipText(whole)+" does not name a secret", "a name has letters, digits, underscores, dots and dashes, and up to 128 characters")
			return len(whole), whole
		}
		return len(whole), secretMark + name + secretMark
	case scheme != "env":
		out.addMistake(clipText(whole)+" is not supported yet in this version", "use ${env:NAME} or ${keyring:NAME}")
	case !envName.MatchString(name):
		out.addMistake(clipText(whole)+" does not name an environment variable", "a name has letters, digits and underscores")
	default:
		if v, ok := lookup(name); ok {
			return len(whole), v
		}
		out.missing = append(out.missing, unsetVariable(name))
	}
	return len(whole), whole
}

func (out *expansion) addMistake(message, hint string) {
	out.mistakes = append(out.mistakes, Mistake{Message: message, Hint: hint})
}

// hasOnlyReferences reports whether s contains only references, possibly after an authorization scheme, and therefore
// no secret.
func hasOnlyReferences(s string) bool {
	found := false
	rest := referencePattern.ReplaceAllStringFunc(s, func(string) string { found = true; return "" })
	switch strings.ToLower(strings.TrimSpace(rest)) {
	case "", "bearer", "basic", "token":
		return found
	}
	return false
}
