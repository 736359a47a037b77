package classify

import (
	"iter"
	"regexp"
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
				return verdict{Operation: policy.Destructive, Word: p.name}
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
		return verdict{Operation: policy.Destructive, Word: clipWord("> " + to.text)}
	}
	return writeVerdict(r.Op.String() + " " + to.text)
}

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
		return verdict{Operation: policy.Destructive, Word: clipWord(name)}
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

// classifyReadBuiltin classifies the builtin read by the variables that it sets.
func (l *shellLineClassifier) classifyReadBuiltin(args []commandArg) (worst verdict) {
	for _, a := range args {
		if a.known && a.text != "" && a.text[0] != '-' {
			worst = worst.worseOf(l.classifySettingVariable(a.text))
		}
	}
	return worst
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
			worst = worst.worseOf(verdict{Operation: policy.Destructive, Word: clipWord(name)})
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

// classifyCurl classifies the addresses, headers and methods of curl, which the list of options does not cover.
func classifyCurl(args []commandArg) (worst verdict) {
	for i, a := range args {
		header := i > 0 && slices.Contains(curlHeaders, args[i-1].text) && a.known
		switch {
		case !header && mayBeOtherScheme(a):
			worst = worst.worseOf(writeVerdict("curl of what is no plain address"))
		case strings.Contains(a.text, "%output") || strings.HasPrefix(a.text, "@") || strings.HasPrefix(a.text, "-H@") || strings.HasPrefix(a.text, "-w@") || strings.Contains(a.text, "=@"):
			worst = worst.worseOf(writeVerdict("curl " + a.text))
		}
		worst = worst.worseOf(classifyCurlMethod(a.text, args[i+1:]))
	}
	return worst.worseOf(classifyMethodOverride(args))
}

// curlHeaders are the options of curl whose value is a header.
var curlHeaders = []string{"-H", "--header", "-e", "--referer", "-A", "--user-agent"}

// classifyMethodOverride classifies a header that overrides the HTTP method.
func classifyMethodOverride(args []commandArg) (worst verdict) {
	for _, a := range args {
		if lower := strings.ToLower(a.text); strings.Contains(lower, "method-override") || strings.Contains(lower, "x-http-method") {
			worst = worst.worseOf(writeVerdict("a method that is overridden"))
			if strings.Contains(lower, "delete") {
				worst = worst.worseOf(verdict{Operation: policy.Destructive, Word: "a method that is overridden"})
			}
		}
	}
	return worst
}

// classifyCurlMethod classifies the method in an option of curl.
func classifyCurlMethod(option string, rest []commandArg) verdict {
	method, given := "", false
	switch at := strings.IndexByte(option, 'X'); {
	case strings.HasPrefix(option, "--req"):
		_, method, given = strings.Cut(option, "=")
	case len(option) > 1 && option[0] == '-' && option[1] != '-' && at > 0:
		method, given = option[at+1:], at+1 < len(option)
	default:
		return verdict{}
	}
	if !given {
		if len(rest) == 0 || !rest[0].known {
			return writeVerdict("curl " + option)
		}
		method = rest[0].text
	}
	return classifyHTTPMethod(method)
}

// mayBeOtherScheme reports whether an argument of curl may be an address with another scheme than HTTP.
func mayBeOtherScheme(a commandArg) bool {
	scheme, _, found := strings.Cut(a.text, ":/")
	host, _, _ := strings.Cut(strings.ToLower(a.text), ".")
	return !a.known || found && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") || slices.Contains(curlGuesses, host)
}

// curlGuesses are the first labels of host names from which curl guesses another scheme than HTTP.
var curlGuesses = []string{"ftp", "dict", "ldap", "imap", "smtp", "pop3"}

// classifyShellInvocation classifies a shell that runs a text: sh -c.
func (l *shellLineClassifier) classifyShellInvocation(name string, args []commandArg) verdict {
	if len(args) == 1 && args[0].known && args[0].text == "--version" {
		return readVerdict
	}
	for i, a := range args {
		switch {
		case !a.known || !strings.HasPrefix(a.text, "-") || strings.Trim(a.text[1:], "cleux") != "":
			return writeVerdict(name)
		case strings.ContainsRune(a.text, 'c'):
			if i+1 < len(args) {
				return l.classifyCommandText(args[i+1:i+2], name)
			}
		}
	}
	return writeVerdict(name)
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

// classifyWrapped classifies a command that runs another one.
func (l *shellLineClassifier) classifyWrapped(name string, w wrapperProgram, args []commandArg, given bool) verdict {
	least, replaced := verdict{}, ""
	operands, i := w.operands, 0
	for ; i < len(args); i++ {
		a := args[i]
		switch {
		case a.mayExpandToOption():
			return unparseableVerdict(name + " of what is not known")
		case a.text == "--":
			continue
		case len(a.text) > 1 && a.text[0] == '-':
			if name == "command" && (a.text == "-v" || a.text == "-V") {
				return readVerdict
			}
			next, _, ok := w.options.parseArgument(a.text)
			if !ok || next && (i+1 >= len(args) || !args[i+1].known) {
				return unparseableVerdict(name + " " + a.text)
			}
			if name == "xargs" {
				replaced += xargsReplacement(a.text, args[i+1:])
			}
			if next {
				i++
			}
			continue
		case name == "env" && strings.ContainsRune(a.text, '='):
			variable, _, _ := strings.Cut(a.text, "=")
			if !l.variables[variable] {
				least = least.worseOf(writeVerdict(variable + "="))
			}
			continue
		case operands > 0:
			operands--
			continue
		}
		break
	}
	switch {
	case i >= len(args) && name == "xargs": // xargs runs echo by default
		return readVerdict.worseOf(least)
	case i >= len(args):
		return unparseableVerdict(name).worseOf(least)
	case name == "watch":
		return l.classifyCommandText(args[i:], name).worseOf(least)
	case replaced != "":
		return l.classifyCommand(markReplacedAsUnknown(args[i:], replaced), true).worseOf(least)
	}
	return l.classifyCommand(args[i:], given || name == "xargs").worseOf(least)
}

// xargsReplacement returns the text that xargs replaces in its command; "" if there is none.
func xargsReplacement(option string, rest []commandArg) string {
	name, value, _ := strings.Cut(option, "=")
	at := strings.IndexAny(name, "Ii")
	switch {
	case name == "--replace":
	case strings.HasPrefix(name, "--") || at < 0:
		return ""
	case at+1 < len(option):
		value = option[at+1:]
	case option[at] == 'I' && len(rest) > 0:
		value = rest[0].text
	}
	if value == "" {
		return "{}"
	}
	return value
}

// markReplacedAsUnknown returns the arguments. Each of them is known only up to the replaced text.
func markReplacedAsUnknown(args []commandArg, text string) []commandArg {
	args = slices.Clone(args)
	for i, a := range args {
		if at := strings.Index(a.text, text); at >= 0 {
			args[i] = commandArg{text: a.text[:at]}
		}
	}
	return args
}

// classifyFind classifies find and the commands that it runs.
func (l *shellLineClassifier) classifyFind(p *knownProgram, args []commandArg) verdict {
	worst, plain := verdict{}, []commandArg{}
	for i := 0; i < len(args); i++ {
		if t := args[i].text; !args[i].known || t != "-exec" && t != "-execdir" && t != "-ok" && t != "-okdir" {
			plain = append(plain, args[i])
			continue
		}
		end := i + 1
		for end < len(args) && args[end].text != ";" && args[end].text != "+" {
			end++
		}
		inner := slices.Clone(args[i+1 : end])
		if len(inner) == 0 {
			return unparseableVerdict("find " + args[i].text)
		}
		if hidden := slices.IndexFunc(inner, func(a commandArg) bool { return !a.known && (a.splits || a.text == "") }); hidden >= 0 && slices.ContainsFunc(inner[hidden:], isFindAction) {
			return unparseableVerdict("find " + args[i].text + " with an unknown end") // the argument may be the ; that ends the command
		}
		for at := range inner {
			if inner[at].text == "{}" {
				inner[at] = commandArg{text: "./"} // results start with the directory in which the search started
			} else if strings.Contains(inner[at].text, "{}") {
				inner[at] = commandArg{}
			}
		}
		worst = worst.worseOf(l.classifyCommand(inner, false))
		i = end
	}
	return p.classify(plain).worseOf(worst)
}

// isFindAction reports whether an argument is an action of find that does more than print.
func isFindAction(a commandArg) bool {
	return slices.ContainsFunc([]string{"-exec", "-ok", "-delete", "-fprint", "-fls"}, func(action string) bool { return strings.HasPrefix(a.text, action) })
}

// A script of sed that only prints: commands, each with an optional address. Neither a bracket expression nor the
// replacement contains the delimiter, because not every sed reads a delimiter in brackets as one.
var (
	sedPart = func(delimiter string) string {
		return `([^` + delimiter + `\\\[\n]|\\[^\n]|\[\^?\]?[^` + delimiter + `\]\n]*\])*`
	}
	sedReplace = func(delimiter string) string {
		d := regexp.QuoteMeta(delimiter)
		return `s` + d + sedPart(d) + d + `([^` + d + `\\\n]|\\[^\n])*` + d + `[gpiIM0-9]*`
	}
	sedPlace   = `(\d+|\$|/` + sedPart("/") + `/I?)`
	sedCommand = `(` + sedPlace + `(\s*,\s*([+~]\d+|` + sedPlace + `))?\s*!?\s*)?([pd=lDGHPhgxnN]|[qQ]\d*|` + sedReplace("/") + `|` + sedReplace("|") + `|` + sedReplace("#") + `|` + sedReplace(",") + `)`
	sedReads   = regexp.MustCompile(`^\s*` + sedCommand + `(\s*[;\n]\s*` + sedCommand + `)*\s*;?\s*$`)
	awkWrite   = regexp.MustCompile(`[|@]|system|getline|close|fflush|include|load|/inet|ENVIRON\s*\[`)
)

// classifySedOrAwk classifies the program of sed or awk.
func classifySedOrAwk(name string, args []commandArg) verdict {
	known := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.mayExpandToOption():
			return unparseableVerdict(name + " of what is not known")
		case len(a.text) > 1 && a.text[0] == '-':
			switch flags := strings.Trim(a.text[1:], "nErsuz"); {
			case name == "sed" && flags == "":
			case name == "sed" && flags == "e" && strings.HasSuffix(a.text, "e"):
				if i++; i >= len(args) || !args[i].known || !sedReads.MatchString(args[i].text) {
					return unparseableVerdict(name + " with a program that is not read")
				}
				known = true
			case name != "sed" && strings.HasPrefix(a.text, "-F") || name != "sed" && a.text == "-v":
				if len(a.text) > 2 {
					continue
				}
				if i++; i < len(args) && !args[i].known {
					return unparseableVerdict(name + " of what is not known")
				}
			default:
				return writeVerdict(name + " " + a.text)
			}
		case known:
		case !a.known, name == "sed" && !sedReads.MatchString(a.text), name != "sed" && awkWrites(a.text):
			return unparseableVerdict(name + " with a program that is not read")
		default:
			known = true
		}
	}
	if !known {
		return unparseableVerdict(name)
	}
	return readVerdict
}

// awkWrites reports whether an awk program may do more than print. A > before the first action is treated as a
// comparison.
func awkWrites(program string) bool {
	action := strings.IndexByte(program, '{')
	return awkWrite.MatchString(program) || action >= 0 && strings.IndexByte(program[action:], '>') >= 0
}
