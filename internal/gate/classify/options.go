package classify

import "strings"

// The kinds of options: whether they have a value, and whether the option is required.
const (
	isFlag   byte = 1 << iota
	value         // value in the same or the next argument
	optional      // value in the same argument, or missing
	needed
)

// allowedOptions are the allowed options of a command. Abbreviations of long options are not allowed.
type allowedOptions struct {
	letters [128]byte         // -a, which may be in a group
	names   map[string]byte   // --all, and -all for programs without groups
	fixed   map[string]string // the only allowed value of an option
	ungroup bool              // -all is one option, not a group of letters
}

// addLetters adds options in getopt syntax: "an:c::".
func (o *allowedOptions) addLetters(s string) {
	for i := 0; i < len(s); {
		colons := 0
		for i+1+colons < len(s) && s[i+1+colons] == ':' {
			colons++
		}
		o.letters[s[i]] = []byte{isFlag, value, optional}[colons] | o.letters[s[i]]&needed
		i += 1 + colons
	}
}

// addOption adds an option: --all, --lines=, --color=?, or --output=/dev/null.
func (o *allowedOptions) addOption(s string, must bool) {
	name, want, valued := strings.Cut(s, "=")
	kind := isFlag
	switch {
	case want == "?":
		kind = optional
	case valued:
		kind = value
	}
	if want != "" && want != "?" {
		if o.fixed == nil {
			o.fixed = map[string]string{}
		}
		o.fixed[name] = want
	}
	if must {
		kind |= needed
	}
	if len(name) == 2 {
		o.letters[name[1]] = kind | o.letters[name[1]]&needed
		return
	}
	o.ungroup = o.ungroup || name[1] != '-'
	if o.names == nil {
		o.names = map[string]byte{}
	}
	o.names[name] = kind | o.names[name]&needed
}

// parseArgument parses an argument that starts with a dash. ok reports whether it contains only allowed options, next
// whether the value of the last option is in the next argument, and must whether a required option is present.
func (o *allowedOptions) parseArgument(text string) (next, must, ok bool) {
	name, given, inOne := strings.Cut(text, "=")
	kind := o.names[name]
	if kind == 0 && len(name) == 2 && text[1] < 128 && text[1] != '-' && (inOne || len(text) == 2) && (o.ungroup || o.letters[text[1]]&isFlag != 0) {
		kind = o.letters[text[1]]
	}
	switch {
	case kind&isFlag != 0 && inOne: // as package flag parses it
		return false, kind&needed != 0, given == "true" || given == "false" && kind&needed == 0
	case kind&value != 0 && inOne:
		want, fixed := o.fixed[name]
		return false, kind&needed != 0, !fixed || want == given
	case kind != 0:
		return kind&value != 0, kind&needed != 0, true
	case strings.HasPrefix(text, "--"), o.ungroup:
		return false, false, false
	}
	return o.parseGroup(text)
}

// parseGroup parses grouped letters. It treats digits as a number.
func (o *allowedOptions) parseGroup(text string) (next, must, ok bool) {
	for i := 1; i < len(text); i++ {
		c := text[i]
		if '0' <= c && c <= '9' && o.letters[c] == 0 {
			continue
		}
		if c >= 128 || o.letters[c] == 0 {
			return false, false, false
		}
		must = must || o.letters[c]&needed != 0
		if o.letters[c]&isFlag != 0 {
			continue
		}
		want, fixed := o.fixed["-"+string(c)]
		rest := text[i+1:]
		return rest == "" && o.letters[c]&value != 0, must, !fixed || rest == "" || rest == want
	}
	return false, must, true
}
