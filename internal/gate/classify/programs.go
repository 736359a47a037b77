package classify

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/sectionfile"
)

//go:embed shell.txt
var shellText string

//go:embed cli.txt
var cliText string

// commandArg is one argument of a command.
type commandArg struct {
	text string // the known part
	// known reports whether text is complete. Otherwise the argument may be any text with this prefix.
	known bool
	// splits reports whether the argument may become several words. Only the first one has the prefix.
	splits bool
}

// mayExpandToOption reports whether an unknown argument may be an option, or contain one.
func (a commandArg) mayExpandToOption() bool {
	return !a.known && (a.splits || a.text == "" || a.text[0] == '-')
}

// commandRule is a line of shell.txt or cli.txt: verbs and conditions.
type commandRule struct {
	path        []string       // the verbs, which may start or end with *; empty for a plain command
	first       byte           // first byte of the first verb; 0 for any
	oneOf       []string       // options, one of which is required
	options     allowedOptions // the allowed options
	maxOperands int            // maximum number of operands; -1: no limit
	ignorePlus  bool           // operands that start with + are not counted
	wordOptions bool           // an unknown word may be an option, too
	dashesEnd   bool           // -- ends the options
	without     []string       // texts that no argument may contain
}

// knownProgram contains the rules for a command.
type knownProgram struct {
	name     string
	verbs    bool // the effect depends on the first operands
	reads    []commandRule
	destroys []commandRule
	runs     []commandRule  // verbs that run a command that is in their arguments
	before   allowedOptions // the options that may precede the verb
	sets     map[string][]string
}

// wrapperProgram is a command that runs another one.
type wrapperProgram struct {
	operands int
	options  allowedOptions
}

// commandTable is the parsed shell.txt and cli.txt.
type commandTable struct {
	programs                         map[string]*knownProgram
	wrappers                         map[string]wrapperProgram
	shells, places, variables, sinks map[string]bool
	tied, runners                    map[string]bool
}

var knownCommands = sync.OnceValue(func() *commandTable {
	file := sectionfile.Parse(shellText)
	c := &commandTable{
		programs: map[string]*knownProgram{}, wrappers: map[string]wrapperProgram{},
		shells: file.SectionByHead("shells").WordSet(), places: file.SectionByHead("places").WordSet(), variables: file.SectionByHead("variables").WordSet(), sinks: file.SectionByHead("sinks").WordSet(),
		tied: file.SectionByHead("tied").WordSet(), runners: file.SectionByHead("runners").WordSet(),
	}
	named := func(name string) *knownProgram {
		if c.programs[name] == nil {
			c.programs[name] = &knownProgram{name: name}
		}
		return c.programs[name]
	}
	each := func(section string, add func(p *knownProgram, r commandRule)) {
		for _, line := range file.SectionByHead(section).Lines {
			names, r := parseRuleFields(strings.Fields(line))
			for _, name := range names {
				add(named(name), r)
			}
		}
	}
	each("reads", func(p *knownProgram, r commandRule) { p.reads = append(p.reads, r) })
	each("destroys", func(p *knownProgram, r commandRule) { p.destroys = append(p.destroys, r) })
	for _, line := range file.SectionByHead("wrappers").Lines {
		f := strings.Fields(line)
		n, err := strconv.Atoi(f[1])
		if err != nil {
			panic(err)
		}
		_, r := parseRuleFields(append([]string{f[0]}, f[2:]...))
		c.wrappers[f[0]] = wrapperProgram{n, r.options}
	}
	for _, s := range sectionfile.Parse(cliText) {
		for _, name := range strings.Fields(s.Head) {
			p := named(name)
			p.verbs = true
			for _, line := range s.Lines {
				p.addRuleLine(strings.Fields(line))
			}
		}
	}
	return c
})

// addRuleLine parses a line of cli.txt.
func (p *knownProgram) addRuleLine(f []string) {
	var fields []string
	for _, t := range f[1:] {
		if name, is := strings.CutPrefix(t, "&"); is {
			fields = append(fields, p.sets[name]...)
		} else {
			fields = append(fields, t)
		}
	}
	var list *[]commandRule
	switch f[0] {
	case "set":
		if p.sets == nil {
			p.sets = map[string][]string{}
		}
		p.sets[fields[0]] = fields[1:]
		return
	case "before":
		_, r := parseRuleFields(append([]string{p.name}, fields...))
		p.before = r.options
		return
	case "reads":
		list = &p.reads
	case "destroys":
		list = &p.destroys
	case "runs":
		list = &p.runs
	default:
		panic("cli.txt does not know " + f[0])
	}
	paths, r := parseRuleFields(fields)
	for _, path := range paths {
		r.path, r.first = strings.Split(path, "/"), path[0]
		if r.first == '*' {
			r.first = 0
		}
		*list = append(*list, r)
	}
}

// parseRuleFields parses names and conditions.
func parseRuleFields(fields []string) (names []string, r commandRule) {
	r.maxOperands = -1
	for i, f := range fields {
		switch {
		case i == 0, len(f) == 1 && f != "*":
			names = append(names, f)
		case f == "*":
			r.wordOptions = true
		case f == "--":
			r.dashesEnd = true
		case f[0] == '[':
			r.options.addLetters(f[1 : len(f)-1])
		case f[0] == '-':
			r.options.addOption(f, false)
		case f[0] == '+':
			r.options.addOption(f[1:], true)
			r.oneOf = append(r.oneOf, f[1:])
		case f[0] == '~':
			r.without = append(r.without, f[1:])
		case f[0] == '@':
			number, plus := strings.CutSuffix(f[1:], "+")
			n, err := strconv.Atoi(number)
			if err != nil {
				panic(err)
			}
			r.maxOperands, r.ignorePlus = n, plus
		default:
			names = append(names, f)
		}
	}
	return names, r
}

// classify returns the verdict for a program with these arguments.
func (p *knownProgram) classify(args []commandArg) verdict {
	if p.verbs && len(args) == 1 && args[0].known && (args[0].text == "--version" || strings.EqualFold(args[0].text, "-v")) {
		return readVerdict
	}
	var room [maxVerbs]string
	verbs, rest, sure := p.splitVerbs(args, room[:0])
	if v := p.matchDestroyRule(verbs, sure, args); v.Operation == policy.Destructive {
		return v
	}
	for i := range p.reads {
		if r := &p.reads[i]; sure && r.matchesVerbs(verbs) && r.matchesArguments(rest, len(r.path)) {
			return readVerdict
		}
	}
	return verdict{Operation: policy.Write, Word: p.verdictLabel(verbs, 2, nil, nil)}
}

// verdictIfDestructive returns the verdict for these arguments if it is destructive.
func (p *knownProgram) verdictIfDestructive(args []commandArg) verdict {
	var room [maxVerbs]string
	verbs, _, sure := p.splitVerbs(args, room[:0])
	return p.matchDestroyRule(verbs, sure, args)
}

func (p *knownProgram) matchDestroyRule(verbs []string, sure bool, args []commandArg) verdict {
	for at := 0; at == 0 || !sure && at < len(verbs); at++ { // an unknown option may have a value
		for i := range p.destroys {
			if r := &p.destroys[i]; r.matchesVerbs(verbs[min(at, len(verbs)):]) && (len(r.oneOf) == 0 || r.hasRequiredOption(args)) {
				return verdict{Operation: policy.Destructive, Word: p.verdictLabel(verbs[min(at, len(verbs)):], len(r.path), args, r.oneOf)}
			}
		}
	}
	return verdict{}
}

// runsOtherCommand reports whether a verb of the program runs a command in its arguments.
func (p *knownProgram) runsOtherCommand(args []commandArg) bool {
	if len(p.runs) == 0 {
		return false
	}
	var room [maxVerbs]string
	verbs, _, _ := p.splitVerbs(args, room[:0])
	return slices.ContainsFunc(p.runs, func(r commandRule) bool {
		return slices.ContainsFunc(verbs, func(v string) bool { return v == r.path[0] }) && (len(r.path) == 1 || slices.Contains(verbs, r.path[1]))
	})
}

// verdictLabel returns the program with its verb and the deciding option, for a verdict.
func (p *knownProgram) verdictLabel(verbs []string, n int, args []commandArg, options []string) string {
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
		if slices.ContainsFunc(options, func(o string) bool { return argMayBeOption(a.text, o) }) {
			return clipWord(said + " " + a.text)
		}
	}
	return clipWord(said)
}

// maxVerbs limits the operands that count as verbs.
const maxVerbs = 4

// splitVerbs returns the leading operands, and the arguments that start with the first of them. sure is false if an
// unknown option or word precedes a complete verb.
func (p *knownProgram) splitVerbs(args []commandArg, room []string) (verbs []string, rest []commandArg, sure bool) {
	verbs = room
	if !p.verbs {
		return verbs, args, true
	}
	sure = true
	complete := false // once set, it does not matter which arguments are operands
	for i := 0; i < len(args) && len(verbs) < maxVerbs; i++ {
		a := args[i]
		switch {
		case !a.known:
			return verbs, rest, sure && (complete || !a.mayExpandToOption())
		case a.text == "--":
		case !strings.HasPrefix(a.text, "-"):
			if len(verbs) == 0 {
				rest = args[i:]
			}
			verbs = append(verbs, a.text)
			complete = complete || p.matchesLongestReadVerbs(verbs)
		case complete:
		default:
			next, _, ok := p.before.parseArgument(a.text)
			switch {
			case ok && next && i+1 < len(args) && !args[i+1].known:
				return verbs, rest, false // may expand to several words
			case ok && next:
				i++
			case !ok && !p.matchesReadVerbs(verbs):
				sure = false // otherwise the rule defines the allowed options
			}
		}
	}
	return verbs, rest, sure
}

// matchesReadVerbs reports whether these verbs match a rule for reads.
func (p *knownProgram) matchesReadVerbs(verbs []string) bool {
	return slices.ContainsFunc(p.reads, func(r commandRule) bool { return len(r.path) == len(verbs) && r.matchesVerbs(verbs) })
}

// matchesLongestReadVerbs reports whether these verbs match a rule for reads, and no rule has a longer path.
func (p *knownProgram) matchesLongestReadVerbs(verbs []string) (found bool) {
	for i := range p.reads {
		r := &p.reads[i]
		if len(r.path) < len(verbs) || !r.mayMatchFirstVerb(verbs) || !verbsStartWith(verbs, r.path[:len(verbs)]) {
			continue
		}
		if len(r.path) > len(verbs) {
			return false
		}
		found = true
	}
	return found
}

// matchesVerbs reports whether the verbs start with the path of the rule.
func (r *commandRule) matchesVerbs(verbs []string) bool {
	return r.mayMatchFirstVerb(verbs) && verbsStartWith(verbs, r.path)
}

// mayMatchFirstVerb reports, by a fast check of its first byte, whether the first verb may match.
func (r *commandRule) mayMatchFirstVerb(verbs []string) bool {
	return r.first == 0 || len(verbs) > 0 && verbs[0] != "" && verbs[0][0] == r.first
}

// verbsStartWith reports whether verbs start with a path.
func verbsStartWith(verbs, path []string) bool {
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

// hasRequiredOption reports whether an option that makes the command destructive is present.
func (r *commandRule) hasRequiredOption(args []commandArg) bool {
	return slices.ContainsFunc(args, func(a commandArg) bool {
		return slices.ContainsFunc(r.oneOf, func(o string) bool { return argMayBeOption(a.text, o) })
	})
}

// matchesArguments reports whether arguments meet the conditions, whatever the values of unknown arguments are.
func (r *commandRule) matchesArguments(args []commandArg, verbs int) bool {
	operands, one, ended := -verbs, len(r.oneOf) == 0, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case r.mayContainForbidden(a):
			return false
		case !a.known && (r.maxOperands >= 0 || !r.wordOptions && a.mayExpandToOption() && !ended):
			return false
		case len(a.text) < 2 || a.text[0] != '-' || ended && a.known:
			if r.ignorePlus && strings.HasPrefix(a.text, "+") {
				continue
			}
			if operands++; r.maxOperands >= 0 && operands > r.maxOperands {
				return false
			}
		case a.text == "--":
			ended = r.dashesEnd
		case a.known:
			next, needed, ok := r.options.parseArgument(a.text)
			if !ok {
				return false
			}
			one = one || needed
			if next && i+1 < len(args) {
				if i++; !r.acceptsOptionValue(a.text, args[i]) {
					return false
				}
			}
		}
	}
	return one && operands >= 0
}

// mayContainForbidden reports whether an argument contains, or may contain, a forbidden text.
func (r *commandRule) mayContainForbidden(a commandArg) bool {
	return len(r.without) > 0 && (!a.known || slices.ContainsFunc(r.without, func(s string) bool { return strings.Contains(a.text, s) }))
}

// acceptsOptionValue reports whether the next argument may be the value of an option. An argument that looks like
// another option is never accepted, even if the program would accept it.
func (r *commandRule) acceptsOptionValue(option string, next commandArg) bool {
	switch {
	case r.mayContainForbidden(next), !next.known && !r.wordOptions:
		return false
	case len(next.text) > 1 && next.text[0] == '-':
		return next.known && strings.Trim(next.text[1:2], "0123456789") == ""
	}
	if !strings.HasPrefix(option, "--") && !r.options.ungroup {
		option = "-" + option[len(option)-1:] // the last letter of a group
	}
	want, fixed := r.options.fixed[option]
	return !fixed || next.known && next.text == want
}

// argMayBeOption reports whether an argument is, or may be, an option.
func argMayBeOption(text, option string) bool {
	name, _, _ := strings.Cut(text, "=")
	switch {
	case option[0] == '^':
		return len(text) > 1 && strings.HasPrefix(text, option[1:])
	case text == option:
		return true
	case len(option) == 2 && option[0] == '-': // -o, in a group or with its value
		return len(text) > 1 && text[0] == '-' && text[1] != '-' && strings.IndexByte(text, option[1]) > 0
	case strings.HasPrefix(option, "--"):
		return name == option || len(name) > 2 && strings.HasPrefix(name, "--") && strings.HasPrefix(option, name)
	}
	return name == option
}
