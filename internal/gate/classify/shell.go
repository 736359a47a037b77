package classify

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"mcpproxy/internal/gate/policy"
)

// maxNested limits the nesting depth of command texts that contain other command texts, and maxTexts their number.
const maxNested, maxTexts = 6, 20

// shellLineClassifier classifies one shell line and the commands in it.
type shellLineClassifier struct {
	*commandTable
	depth   int
	read    *int         // number of texts read
	args    []commandArg // arguments of the current command
	verdict verdict
}

// parsers is a pool of parsers, to reuse their memory.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// classifyShell returns the worst verdict of all commands of a shell line.
func classifyShell(text string) verdict { return classifyNestedShell(text, 0, new(int)) }

// classifyNestedShell classifies a text at a nesting depth; read is the number of texts of the line that were read.
func classifyNestedShell(text string, depth int, read *int) verdict {
	*read++
	switch {
	case len(text) > maxText:
		return tooLong
	case depth > maxNested:
		return unparseableVerdict("commands in commands in commands")
	case *read > maxTexts || hasTooManyCommands(text):
		return tooMany
	case hasOddCharacter(text):
		return unparseableVerdict("a character that shells interpret differently").worseOf(findDestructiveWord(text))
	}
	parser := parsers.Get().(*syntax.Parser)
	defer parsers.Put(parser)
	file, err := parser.Parse(strings.NewReader(text), "")
	if err != nil {
		return unparseableVerdict("not a shell line").worseOf(findDestructiveWord(text))
	}
	l := shellLineClassifier{commandTable: knownCommands(), depth: depth, read: read}
	syntax.Walk(file, func(n syntax.Node) bool {
		if n != nil {
			l.addVerdict(l.classifyNode(n))
		}
		return true
	})
	if l.verdict.Operation == policy.NoOperation {
		return unparseableVerdict("no command")
	}
	return l.verdict
}

// findDestructiveWord finds destructive words in a text that is not a valid shell line.
func findDestructiveWord(text string) verdict {
	known := knownCommands()
	for word := range strings.FieldsFuncSeq(text, isWordEnd) {
		if p := known.programs[word[strings.LastIndexByte(word, '/')+1:]]; p != nil {
			if slices.ContainsFunc(p.destroys, func(r commandRule) bool { return len(r.path) == 0 && len(r.oneOf) == 0 }) {
				return destructiveVerdict(p.name)
			}
		}
	}
	return verdict{}
}

// isWordEnd reports whether a character ends the name of a command.
func isWordEnd(c rune) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ';', '|', '&', '(', ')', '{', '}', '`', '$', '\'', '"', '<', '>', '\\':
		return true
	}
	return false
}

func (l *shellLineClassifier) addVerdict(v verdict) { l.verdict = l.verdict.worseOf(v) }

// classifyNode classifies a syntax node without its children. They are visited separately.
func (l *shellLineClassifier) classifyNode(n syntax.Node) verdict {
	switch n := n.(type) {
	case *syntax.CallExpr:
		if len(n.Args) == 0 {
			return readVerdict // assignments only
		}
		l.args = l.args[:0]
		for _, w := range n.Args {
			l.args = append(l.args, toCommandArg(w))
		}
		return l.classifyCommand(l.args, false)
	case *syntax.Redirect:
		return l.classifyRedirect(n)
	case *syntax.Assign:
		return l.classifyAssignment(n)
	case *syntax.ArithmExp:
		return classifyArithmetic(n.X)
	case *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		return unparseableVerdict("arithmetic")
	case *syntax.ParamExp:
		return classifyExpansion(n).worseOf(l.classifyDefaultAssignment(n))
	case *syntax.ExtGlob:
		return unparseableVerdict("a pattern that may run commands in zsh").worseOf(findDestructiveWord(n.Pattern.Value))
	case *syntax.WordIter:
		return l.classifySettingVariable(n.Name.Value)
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			return unparseableVerdict("a test of a variable")
		}
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			return unparseableVerdict("arithmetic")
		}
	case *syntax.DeclClause:
		if v := n.Variant.Value; v != "export" && v != "local" && v != "readonly" {
			return writeVerdict(v)
		}
		for _, a := range n.Args {
			if a.Name == nil && a.Value != nil {
				if w := toCommandArg(a.Value); !w.known || w.text != "-r" && w.text != "-p" {
					return writeVerdict(n.Variant.Value)
				}
			}
		}
		return readVerdict
	case *syntax.Word:
		return classifyZshExpansion(n)
	case *syntax.CoprocClause, *syntax.TestDecl:
		return unparseableVerdict("a form that is not read")
	case *syntax.SglQuoted:
		if n.Dollar && strings.ContainsRune(n.Value, '\\') {
			return verdict{} // treated as an unknown argument
		}
	}
	return verdict{}
}

// classifyArithmetic accepts only numbers, because a shell also evaluates the values of variables.
func classifyArithmetic(x syntax.ArithmExpr) verdict {
	safe := true
	syntax.Walk(x, func(n syntax.Node) bool {
		if lit, ok := n.(*syntax.Lit); ok {
			safe = safe && strings.Trim(lit.Value, "0123456789") == ""
		} else if _, ok := n.(*syntax.ParamExp); ok {
			safe = false
		}
		return true
	})
	if !safe {
		return unparseableVerdict("arithmetic")
	}
	return verdict{}
}

// classifyExpansion classifies ${…}, because some forms evaluate the value of a variable.
func classifyExpansion(p *syntax.ParamExp) verdict {
	switch {
	case p.Excl, p.Exp != nil && p.Exp.Op == syntax.OtherParamOps, p.Slice != nil, p.Flags != nil:
		return unparseableVerdict("an expansion that may evaluate")
	case p.Index != nil:
		return classifyArithmetic(p.Index)
	}
	return verdict{}
}

// classifyZshExpansion classifies $~x, $=x and $^x, with which zsh evaluates the value of a variable.
func classifyZshExpansion(w *syntax.Word) verdict {
	literal := ""
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			literal += lit.Value
		} else {
			literal += " "
		}
	}
	if strings.Contains(literal, "$~") || strings.Contains(literal, "$=") || strings.Contains(literal, "$^") {
		return unparseableVerdict("an expansion of zsh")
	}
	return verdict{}
}

// classifyAssignment classifies an assignment, before a command or alone.
func (l *shellLineClassifier) classifyAssignment(a *syntax.Assign) verdict {
	switch {
	case a.Name == nil:
		return verdict{}
	case a.Index != nil:
		return unparseableVerdict("arithmetic")
	}
	return l.classifySettingVariable(a.Name.Value)
}

// classifySettingVariable classifies the assignment of a variable.
func (l *shellLineClassifier) classifySettingVariable(name string) verdict {
	lower := strings.ToLower(name) == name
	if l.variables[name] || lower && !l.tied[name] && !strings.HasSuffix(name, "proxy") && !setsPackageManager(name) {
		return verdict{}
	}
	return writeVerdict(name + "=")
}

// setsPackageManager reports whether a variable is a setting of npm, pnpm or yarn, which read them in lower case.
func setsPackageManager(name string) bool {
	return strings.HasPrefix(name, "npm_") || strings.HasPrefix(name, "pnpm_") || strings.HasPrefix(name, "yarn_")
}

// classifyDefaultAssignment classifies ${x:=y}, which sets x.
func (l *shellLineClassifier) classifyDefaultAssignment(p *syntax.ParamExp) verdict {
	if p.Exp != nil && p.Param != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
		return l.classifySettingVariable(p.Param.Value)
	}
	return verdict{}
}

// classifyRedirect classifies a redirection.
func (l *shellLineClassifier) classifyRedirect(r *syntax.Redirect) verdict {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		return verdict{}
	}
	to := toCommandArg(r.Word)
	switch {
	case r.Op == syntax.RdrIn && to.known && !strings.HasPrefix(to.text, "/dev/tcp/") && !strings.HasPrefix(to.text, "/dev/udp/"),
		r.Op == syntax.RdrIn && !to.known && !strings.HasPrefix(to.text, "/dev") && !strings.HasPrefix("/dev", to.text),
		r.Op == syntax.RdrIn && isProcessSubstitution(r.Word),
		r.Op == syntax.DplOut && to.known && strings.Trim(to.text, "0123456789-") == "",
		to.known && l.sinks[to.text]:
		return verdict{}
	case strings.HasPrefix(to.text, "/dev/") && r.Op != syntax.RdrIn && !strings.HasPrefix(to.text, "/dev/tcp/") && !strings.HasPrefix(to.text, "/dev/udp/"):
		return destructiveVerdict("> " + to.text)
	}
	return writeVerdict(r.Op.String() + " " + to.text)
}

// commandName returns the name of a command without its directory, and whether that directory is known.
func (l *shellLineClassifier) commandName(a commandArg) (string, bool) {
	if !a.known {
		return a.text + "…", false
	}
	if i := strings.LastIndexByte(a.text, '/'); i >= 0 {
		return a.text[i+1:], l.places[a.text[:i+1]]
	}
	return a.text, true
}

// classifyCommand classifies a command. given means that another command adds arguments.
func (l *shellLineClassifier) classifyCommand(args []commandArg, given bool) verdict {
	name, placed := l.commandName(args[0])
	if !args[0].known {
		return writeVerdict(name)
	}
	rest := args[1:]
	if given {
		rest = append(slices.Clip(rest), commandArg{})
	}
	v := l.classifyNamed(name, rest, given)
	if !placed && v.Operation < policy.Write { // may be another program of that name
		return writeVerdict(args[0].text)
	}
	return v
}

// evaluates contains the commands that evaluate the index of a variable.
var evaluates = []string{"read", "printf", "test", "[", "unset"}

// classifyNamed classifies a command by its name.
func (l *shellLineClassifier) classifyNamed(name string, args []commandArg, given bool) verdict {
	v := l.classifyByName(name, args, given)
	if p := l.programs[name]; v.Operation == policy.Write && (l.runners[name] || p != nil && p.runsOtherCommand(args)) {
		v = v.worseOf(l.findDestructiveAmong(args))
	}
	if strings.HasPrefix(name, "mkfs.") {
		return destructiveVerdict(name)
	}
	return v
}

func (l *shellLineClassifier) classifyByName(name string, args []commandArg, given bool) verdict {
	wrapper, wraps := l.wrappers[name]
	p := l.programs[name]
	switch {
	case l.shells[name]:
		return l.classifyShellInvocation(name, args)
	case name == "eval":
		return l.classifyCommandText(args, name)
	case name == "find":
		return l.classifyFind(p, args)
	case wraps && (len(args) > 0 || p == nil):
		return l.classifyWrapped(name, wrapper, args, given)
	case name == "sed" || name == "awk" || name == "gawk" || name == "mawk":
		return classifySedOrAwk(name, args)
	case p == nil:
		return writeVerdict(name)
	case slices.Contains(evaluates, name) && slices.ContainsFunc(args, func(a commandArg) bool {
		return strings.ContainsRune(a.text, '[') && strings.ContainsAny(a.text, "$`")
	}):
		return unparseableVerdict(name)
	}
	switch {
	case name == "curl":
		return p.classify(args).worseOf(classifyCurl(args))
	case name == "read":
		return p.classify(args).worseOf(l.classifyReadBuiltin(args))
	case name == "gh":
		return p.classify(args).worseOf(classifyMethodOverride(args))
	case name == "tar" && len(args) > 0 && args[0].known && !strings.HasPrefix(args[0].text, "-"):
		args = splitOldOptions(p, args)
	}
	return p.classify(args)
}

// splitOldOptions returns arguments of tar with its old options, such as tf, as separate ones: their values follow in
// the order of the letters.
func splitOldOptions(p *knownProgram, args []commandArg) []commandArg {
	letters, rest := args[0].text, args[1:]
	var split []commandArg
	for _, c := range []byte(letters) {
		split = append(split, commandArg{text: "-" + string(c), known: true})
		next, _, ok := p.reads[0].options.parseArgument("-" + string(c))
		if ok && next && len(rest) > 0 {
			split, rest = append(split, rest[0]), rest[1:]
		}
	}
	return append(split, rest...)
}

// findDestructiveAmong searches the arguments of a command that runs another one, as words or as the text of a shell.
// It returns a verdict only for a destructive command.
func (l *shellLineClassifier) findDestructiveAmong(args []commandArg) (worst verdict) {
	var seen [4]*knownProgram // programs without verbs that were checked: the first occurrence includes all later arguments
	next := 0
	for i, a := range args {
		if a.known && strings.ContainsAny(a.text, " \t\n;|&(") {
			for text := range possibleShellTexts(a.text) {
				worst = worst.worseOf(onlyIfDestructive(classifyNestedShell(text, l.depth+1, l.read)))
			}
		}
		name := a.text[strings.LastIndexByte(a.text, '/')+1:]
		p := l.programs[name]
		switch {
		case strings.HasPrefix(name, "mkfs."):
			worst = worst.worseOf(destructiveVerdict(name))
		case p == nil || len(p.destroys) == 0 || slices.Contains(seen[:], p):
			continue
		case !p.verbs:
			seen[next%len(seen)] = p
			next++
		}
		worst = worst.worseOf(p.verdictIfDestructive(args[i+1:]))
	}
	return worst
}

// onlyIfDestructive returns a destructive verdict unchanged, and the zero verdict for any other.
func onlyIfDestructive(v verdict) verdict {
	if v.Operation == policy.Destructive {
		return v
	}
	return verdict{}
}

// possibleShellTexts yields the parts of an argument that may be a shell text: the whole argument, and the value of
// an option or a setting.
func possibleShellTexts(arg string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if option := len(arg) > 2 && arg[0] == '-'; !yield(arg) || option && !yield(arg[2:]) {
			return
		}
		if name, value, is := strings.Cut(arg, "="); is && !strings.ContainsAny(name, " \t\n") {
			yield(value)
		}
	}
}

// classifyCommandText classifies arguments that together are the text of a command.
func (l *shellLineClassifier) classifyCommandText(args []commandArg, name string) verdict {
	var parts []string
	for _, a := range args {
		if !a.known {
			return unparseableVerdict(name + " of what is not known").worseOf(findDestructiveWord(a.text))
		}
		parts = append(parts, a.text)
	}
	return classifyNestedShell(strings.Join(parts, " "), l.depth+1, l.read)
}
