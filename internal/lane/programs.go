package lane

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mcpproxy/internal/policy"
	"mcpproxy/internal/wordlist"
)

//go:embed shell.txt
var shellText string

//go:embed cli.txt
var cliText string

// arg is one argument of a command.
type arg struct {
	text string // as far as it is known
	// known says that text is all of it. Else it may be anything that begins so.
	known bool
}

// mayBeOption reports whether an argument that is not known may turn out as an option.
func (a arg) mayBeOption() bool { return !a.known && (a.text == "" || a.text[0] == '-') }

// rule is a line of shell.txt or cli.txt: what it is about, and its conditions.
type rule struct {
	path           []string // the verbs, each perhaps with a * at an end; none for a plain command
	first          byte     // with which the first verb begins; 0 for any
	not, only, one []string // options
	most           int      // operands; -1: any
}

// conditional reports whether it matters what the arguments are.
func (r *rule) conditional() bool { return len(r.not)+len(r.only)+len(r.one) > 0 || r.most >= 0 }

// program is what is known of a command.
type program struct {
	name          string
	verbs         bool // it has verbs: what it does depends on the first operands
	reads         []rule
	destroys      []rule
	values, flags []string // options that may stand before its verb, with a value and without
}

// wrapper is a command that runs another one.
type wrapper struct {
	operands int
	rule     // not: the options with which it does more
	values   []string
}

// commands is all that is known.
type commands struct {
	programs                         map[string]*program
	wrappers                         map[string]wrapper
	shells, places, variables, sinks map[string]bool
}

var allCommands = sync.OnceValue(func() *commands {
	file := wordlist.Read(shellText)
	c := &commands{
		programs: map[string]*program{}, wrappers: map[string]wrapper{},
		shells: file.Of("shells").Set(), places: file.Of("places").Set(), variables: file.Of("variables").Set(), sinks: file.Of("sinks").Set(),
	}
	named := func(name string) *program {
		if c.programs[name] == nil {
			c.programs[name] = &program{name: name}
		}
		return c.programs[name]
	}
	each := func(section string, add func(p *program, r rule)) {
		for _, line := range file.Of(section).Lines {
			names, r := readRule(strings.Fields(line))
			for _, name := range names {
				add(named(name), r)
			}
		}
	}
	each("reads", func(p *program, r rule) { p.reads = append(p.reads, r) })
	each("destroys", func(p *program, r rule) { p.destroys = append(p.destroys, r) })
	for _, line := range file.Of("wrappers").Lines {
		f, r := readRule(strings.Fields(line))
		n, err := strconv.Atoi(f[1])
		if err != nil {
			panic(err)
		}
		c.wrappers[f[0]] = wrapper{n, r, f[2:]}
	}
	for _, s := range wordlist.Read(cliText) {
		for _, name := range strings.Fields(s.Head) {
			p := named(name)
			p.verbs = true
			for _, line := range s.Lines {
				p.add(strings.Fields(line))
			}
		}
	}
	return c
})

// add takes a line of cli.txt.
func (p *program) add(f []string) {
	switch paths, r := readRule(f[1:]); f[0] {
	case "values":
		p.values = append(p.values, f[1:]...)
	case "flags":
		p.flags = append(p.flags, f[1:]...)
	case "reads", "destroys":
		for _, path := range paths {
			r.path, r.first = strings.Split(path, "/"), path[0]
			if r.first == '*' {
				r.first = 0
			}
			if f[0] == "reads" {
				p.reads = append(p.reads, r)
			} else {
				p.destroys = append(p.destroys, r)
			}
		}
	default:
		panic("cli.txt does not know " + f[0])
	}
}

// readRule reads names and conditions.
func readRule(fields []string) (names []string, r rule) {
	r.most = -1
	for i, f := range fields {
		if len(f) < 2 || i == 0 {
			names = append(names, f)
			continue
		}
		switch f[0] {
		case '!':
			r.not = append(r.not, f[1:])
		case '=':
			r.only = append(r.only, f[1:])
		case '+':
			r.one = append(r.one, f[1:])
		case '@':
			n, err := strconv.Atoi(f[1:])
			if err != nil {
				panic(err)
			}
			r.most = n
		default:
			names = append(names, f)
		}
	}
	return names, r
}

// judge says what a program does with these arguments.
func (p *program) judge(args []arg) Verdict {
	if p.verbs && len(args) == 1 && args[0] == (arg{"--version", true}) {
		return reading
	}
	var room [maxVerbs]string
	verbs, sure := p.verb(args, room[:0])
	for at := 0; at == 0 || !sure && at < len(verbs); at++ { // an option that is not known may have a value
		for i := range p.destroys {
			if r := &p.destroys[i]; r.matches(verbs[min(at, len(verbs)):]) && (!r.conditional() || r.needs(args)) {
				return Verdict{Operation: policy.Destructive, Word: p.said(verbs[min(at, len(verbs)):], len(r.path), args, r.one)}
			}
		}
	}
	for i := range p.reads {
		if r := &p.reads[i]; sure && r.matches(verbs) && (!r.conditional() || r.fits(args, len(r.path))) {
			return reading
		}
	}
	return Verdict{Operation: policy.Write, Word: p.said(verbs, 2, nil, nil)}
}

// said is the program with its verb, and the option that decides.
func (p *program) said(verbs []string, n int, args []arg, options []string) string {
	said := p.name
	if p.verbs {
		for _, v := range verbs[:min(n, len(verbs))] {
			said += " " + v
			if n == 2 {
				break
			}
		}
	}
	for _, a := range args {
		if slices.ContainsFunc(options, func(o string) bool { return hits(a.text, o) }) {
			return clipWord(said + " " + a.text)
		}
	}
	return clipWord(said)
}

// clipWord bounds what is said of a caller's text.
func clipWord(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "…"
	}
	if s = strings.ToValidUTF8(s, ""); s == "" { // the name of a command can be empty, or no text
		return "''"
	}
	return s
}

// maxVerbs is how many operands are looked at as verbs.
const maxVerbs = 4

// verb returns the operands that are known to come first. sure is false where an option
// that nobody knows, or something that is not known, comes before the verb is complete.
func (p *program) verb(args []arg, room []string) (verbs []string, sure bool) {
	verbs = room
	if !p.verbs {
		return verbs, true
	}
	sure = true
	complete := false // it does not matter any more what is an operand and what a value
	for i := 0; i < len(args) && len(verbs) < maxVerbs; i++ {
		a := args[i]
		name, _, inOne := strings.Cut(a.text, "=")
		switch {
		case !a.known:
			return verbs, sure && (complete || !a.mayBeOption())
		case a.text == "--":
		case !strings.HasPrefix(a.text, "-"):
			verbs = append(verbs, a.text)
			complete = complete || p.complete(verbs)
		case complete, slices.Contains(p.flags, name):
		case slices.Contains(p.values, name):
			if !inOne {
				i++
			}
		case !p.settles(verbs):
			sure = false // else the conditions say which options there may be
		}
	}
	return verbs, sure
}

// settles reports whether a read is known by these verbs whose conditions say which
// options there may be.
func (p *program) settles(verbs []string) bool {
	return slices.ContainsFunc(p.reads, func(r rule) bool { return len(r.path) == len(verbs) && r.conditional() && r.matches(verbs) })
}

// complete reports whether a read is known by these verbs, and none that has more.
func (p *program) complete(verbs []string) (found bool) {
	for i := range p.reads {
		r := &p.reads[i]
		if len(r.path) < len(verbs) || !r.mayMatch(verbs) || !begins(verbs, r.path[:len(verbs)]) {
			continue
		}
		if len(r.path) > len(verbs) {
			return false
		}
		found = true
	}
	return found
}

// matches reports whether the verbs begin with the path of the rule.
func (r *rule) matches(verbs []string) bool { return r.mayMatch(verbs) && begins(verbs, r.path) }

// mayMatch reports whether the first verb begins as that of the rule does, which most do not.
func (r *rule) mayMatch(verbs []string) bool {
	return r.first == 0 || len(verbs) > 0 && verbs[0] != "" && verbs[0][0] == r.first
}

// begins reports whether verbs begin with a path.
func begins(verbs, path []string) bool {
	if len(path) > len(verbs) {
		return false
	}
	for i, want := range path {
		if got := verbs[i]; got != want {
			before, after, glob := strings.Cut(want, "*")
			if !glob || len(got) <= len(before)+len(after) || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
				return false
			}
		}
	}
	return true
}

// needs reports whether one of the options is there that make a command destructive.
func (r *rule) needs(args []arg) bool {
	return slices.ContainsFunc(args, func(a arg) bool {
		return slices.ContainsFunc(r.one, func(o string) bool { return hits(a.text, o) })
	})
}

// fits reports whether arguments satisfy the conditions, whatever becomes of those that
// are not known.
func (r *rule) fits(args []arg, verbs int) bool {
	operands, one, options := -verbs, len(r.one) == 0, true
	for _, a := range args {
		switch {
		case a.mayBeOption(), !a.known && r.most >= 0:
			return false
		case a.text == "--" && options:
			options = false
		case !options || len(a.text) < 2 || a.text[0] != '-' && !(a.text[0] == '+' && slices.Contains(r.only, a.text[:2])):
			if operands++; r.most >= 0 && operands > r.most && !strings.HasPrefix(a.text, "+") {
				return false
			}
		case slices.ContainsFunc(r.not, func(o string) bool { return hits(a.text, o) }),
			len(r.only) > 0 && !allowedBy(r.only, a.text):
			return false
		}
		one = one || slices.ContainsFunc(r.one, func(o string) bool { return hits(a.text, o) })
	}
	return one
}

// hits reports whether an argument is, or may stand for, an option.
func hits(text, option string) bool {
	name, _, _ := strings.Cut(text, "=")
	switch {
	case text == option:
		return true
	case len(option) == 2 && option[0] == '-': // -o, in a group or with its value
		return len(text) > 1 && text[0] == '-' && text[1] != '-' && strings.IndexByte(text, option[1]) > 0
	case strings.HasPrefix(option, "--"):
		return name == option || len(name) > 2 && strings.HasPrefix(name, "--") && strings.HasPrefix(option, name)
	}
	return name == option
}

// allowedBy reports whether an option is one of those, or a group of them.
func allowedBy(only []string, text string) bool {
	name, _, _ := strings.Cut(text, "=")
	if slices.Contains(only, name) {
		return true
	}
	if strings.HasPrefix(text, "--") {
		return false
	}
	for _, c := range text[1:] {
		if (c < '0' || c > '9') && !slices.Contains(only, "-"+string(c)) {
			return false
		}
	}
	return true
}
