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

// maxNested limits the nesting of commands in texts of commands, and maxTexts the number of such texts.
const maxNested, maxTexts = 6, 20

// line classifies one shell line and the commands in it.
type line struct {
	*commands
	depth   int
	read    *int  // number of texts read
	args    []arg // of the current command
	verdict verdict
}

// parsers pools the parsers for their memory.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// classifyShell returns the worst verdict of all commands of a shell line.
func classifyShell(text string) verdict { return classifyNested(text, 0, new(int)) }

// classifyNested classifies a text at a nesting depth; read counts all texts of the line.
func classifyNested(text string, depth int, read *int) verdict {
	*read++
	switch {
	case len(text) > maxText:
		return tooLong
	case depth > maxNested:
		return unread("commands in commands in commands")
	case *read > maxTexts || manyCommands(text):
		return tooMany
	case oddCharacter(text):
		return unread("a character that shells read differently").worse(mentioned(text))
	}
	parser := parsers.Get().(*syntax.Parser)
	defer parsers.Put(parser)
	file, err := parser.Parse(strings.NewReader(text), "")
	if err != nil {
		return unread("not a shell line").worse(mentioned(text))
	}
	l := line{commands: knownCommands(), depth: depth, read: read}
	syntax.Walk(file, func(n syntax.Node) bool {
		if n != nil {
			l.take(l.node(n))
		}
		return true
	})
	if l.verdict.Operation == policy.NoOperation {
		return unread("no command")
	}
	return l.verdict
}

// mentioned finds destructive words in a text that is no valid shell line.
func mentioned(text string) verdict {
	known := knownCommands()
	for word := range strings.FieldsFuncSeq(text, endsWord) {
		if p := known.programs[word[strings.LastIndexByte(word, '/')+1:]]; p != nil {
			if slices.ContainsFunc(p.destroys, func(r rule) bool { return len(r.path) == 0 && len(r.oneOf) == 0 }) {
				return verdict{Operation: policy.Destructive, Word: p.name}
			}
		}
	}
	return verdict{}
}

// endsWord reports whether a character ends the name of a command.
func endsWord(c rune) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ';', '|', '&', '(', ')', '{', '}', '`', '$', '\'', '"', '<', '>', '\\':
		return true
	}
	return false
}

func (l *line) take(v verdict) { l.verdict = l.verdict.worse(v) }

// node classifies a syntax node by itself; its children are visited separately.
func (l *line) node(n syntax.Node) verdict {
	switch n := n.(type) {
	case *syntax.CallExpr:
		if len(n.Args) == 0 {
			return reading // assignments only
		}
		l.args = l.args[:0]
		for _, w := range n.Args {
			l.args = append(l.args, valueOf(w))
		}
		return l.command(l.args, false)
	case *syntax.Redirect:
		return l.redirect(n)
	case *syntax.Assign:
		return l.assign(n)
	case *syntax.ArithmExp:
		return arithmetic(n.X)
	case *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
		return unread("arithmetic")
	case *syntax.ParamExp:
		return expansion(n).worse(l.assignedBy(n))
	case *syntax.ExtGlob:
		return unread("a pattern that may run commands in zsh").worse(mentioned(n.Pattern.Value))
	case *syntax.WordIter:
		return l.name(n.Name.Value)
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			return unread("a test of a variable")
		}
	case *syntax.BinaryTest:
		switch n.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			return unread("arithmetic")
		}
	case *syntax.DeclClause:
		if v := n.Variant.Value; v != "export" && v != "local" && v != "readonly" {
			return write(v)
		}
		for _, a := range n.Args {
			if a.Name == nil && a.Value != nil {
				if w := valueOf(a.Value); !w.known || w.text != "-r" && w.text != "-p" {
					return write(n.Variant.Value)
				}
			}
		}
		return reading
	case *syntax.CoprocClause, *syntax.TestDecl:
		return unread("a form that is not read")
	case *syntax.SglQuoted:
		if n.Dollar && strings.ContainsRune(n.Value, '\\') {
			return verdict{} // unknown, as an argument
		}
	}
	return verdict{}
}

// arithmetic accepts only numbers, because the values of variables are evaluated, too.
func arithmetic(x syntax.ArithmExpr) verdict {
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
		return unread("arithmetic")
	}
	return verdict{}
}

// expansion classifies ${…}: some forms evaluate the value of a variable.
func expansion(p *syntax.ParamExp) verdict {
	switch {
	case p.Excl, p.Exp != nil && p.Exp.Op == syntax.OtherParamOps, p.Slice != nil, p.Flags != nil:
		return unread("an expansion that may evaluate")
	case p.Index != nil:
		return arithmetic(p.Index)
	}
	return verdict{}
}

// assign classifies an assignment, before a command or alone.
func (l *line) assign(a *syntax.Assign) verdict {
	switch {
	case a.Name == nil:
		return verdict{}
	case a.Index != nil:
		return unread("arithmetic")
	}
	return l.name(a.Name.Value)
}

// name classifies the assignment of a variable.
func (l *line) name(name string) verdict {
	lower := strings.ToLower(name) == name
	if l.variables[name] || lower && !l.tied[name] && !strings.HasSuffix(name, "proxy") && !strings.HasPrefix(name, "npm_config") {
		return verdict{}
	}
	return write(name + "=")
}

// assignedBy classifies ${x:=y}, which sets x.
func (l *line) assignedBy(p *syntax.ParamExp) verdict {
	if p.Exp != nil && p.Param != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
		return l.name(p.Param.Value)
	}
	return verdict{}
}

// redirect classifies a redirection.
func (l *line) redirect(r *syntax.Redirect) verdict {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		return verdict{}
	}
	to := valueOf(r.Word)
	switch {
	case r.Op == syntax.RdrIn && to.known && !strings.HasPrefix(to.text, "/dev/tcp/") && !strings.HasPrefix(to.text, "/dev/udp/"),
		r.Op == syntax.RdrIn && !to.known && to.text != "" && !strings.HasPrefix(to.text, "/dev"),
		r.Op == syntax.RdrIn && procSubst(r.Word),
		r.Op == syntax.DplOut && to.known && strings.Trim(to.text, "0123456789-") == "",
		to.known && l.sinks[to.text]:
		return verdict{}
	case strings.HasPrefix(to.text, "/dev/") && r.Op != syntax.RdrIn && !strings.HasPrefix(to.text, "/dev/tcp/") && !strings.HasPrefix(to.text, "/dev/udp/"):
		return verdict{Operation: policy.Destructive, Word: clipWord("> " + to.text)}
	}
	return write(r.Op.String() + " " + to.text)
}

func procSubst(w *syntax.Word) bool {
	_, ok := w.Parts[0].(*syntax.ProcSubst)
	return ok && len(w.Parts) == 1
}

// valueOf returns what is known of a word without expansion.
func valueOf(w *syntax.Word) arg {
	var room [4]string
	text, known := room[:0], true
	add := func(s string, all bool) { text, known = append(text, s), all }
	for _, p := range w.Parts {
		if !known {
			break
		}
		switch p := p.(type) {
		case *syntax.Lit:
			add(literal(p.Value, true, len(w.Parts) == 1))
		case *syntax.SglQuoted:
			add(ansiC(p.Value, p.Dollar))
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if lit, ok := q.(*syntax.Lit); ok && known && !p.Dollar {
					add(literal(lit.Value, false, false))
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
	return arg{strings.Join(text, ""), known}
}

// ansiC decodes a text in single quotes, and reports whether the result is certain. After a dollar, a
// backslash escapes; only escapes that all shells decode alike are supported.
func ansiC(text string, dollar bool) (string, bool) {
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

// literal returns the literal prefix of text, and whether that is all of it. bare: it is unquoted; whole:
// it is the whole word.
func literal(text string, bare, whole bool) (string, bool) {
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
		case bare && (c == '*' || c == '?' || c == '[' && len(text) > 1 || c == '{' && expands(text[i:], whole)):
			return string(value), false
		default:
			value = append(value, c)
		}
	}
	return string(value), true
}

// expands reports whether a text that starts with a brace may be several words.
func expands(text string, whole bool) bool {
	return !whole && len(text) > 0 || strings.Contains(text, ",") || strings.Contains(text, "..")
}

// nameOf returns the name of a command, without a known directory.
func (l *line) nameOf(a arg) (string, bool) {
	if !a.known {
		return a.text + "…", false
	}
	if i := strings.LastIndexByte(a.text, '/'); i >= 0 {
		return a.text[i+1:], l.places[a.text[:i+1]]
	}
	return a.text, true
}

// command classifies a command. given: another command adds arguments.
func (l *line) command(args []arg, given bool) verdict {
	name, placed := l.nameOf(args[0])
	if !args[0].known {
		return write(name)
	}
	rest := args[1:]
	if given {
		rest = append(slices.Clip(rest), arg{})
	}
	v := l.named(name, rest, given)
	if !placed && v.Operation < policy.Write { // another file with that name
		return write(args[0].text)
	}
	return v
}

// evaluates are the commands that evaluate the index of a variable.
var evaluates = []string{"read", "printf", "test", "[", "unset"}

// named classifies a command by its name.
func (l *line) named(name string, args []arg, given bool) verdict {
	v := l.byName(name, args, given)
	if p := l.programs[name]; v.Operation == policy.Write && (l.runners[name] || p != nil && p.runsOther(args)) {
		v = v.worse(l.among(args))
	}
	if strings.HasPrefix(name, "mkfs.") {
		return verdict{Operation: policy.Destructive, Word: clipWord(name)}
	}
	return v
}

func (l *line) byName(name string, args []arg, given bool) verdict {
	wrapper, wraps := l.wrappers[name]
	p := l.programs[name]
	switch {
	case l.shells[name]:
		return l.shell(name, args)
	case name == "eval":
		return l.text(args, name)
	case name == "find":
		return l.find(p, args)
	case wraps && (len(args) > 0 || p == nil):
		return l.wrapped(name, wrapper, args, given)
	case name == "sed" || name == "awk" || name == "gawk" || name == "mawk":
		return script(name, args)
	case p == nil:
		return write(name)
	case slices.Contains(evaluates, name) && slices.ContainsFunc(args, func(a arg) bool {
		return strings.ContainsRune(a.text, '[') && strings.ContainsAny(a.text, "$`")
	}):
		return unread(name)
	}
	switch {
	case name == "curl":
		return p.classify(args).worse(curl(args))
	case name == "read":
		return p.classify(args).worse(l.setByRead(args))
	case name == "tar" && len(args) > 0 && args[0].known && !strings.HasPrefix(args[0].text, "-"):
		args = slices.Clone(args)
		args[0].text = "-" + args[0].text
	}
	return p.classify(args)
}

// setByRead judges the variables that read sets.
func (l *line) setByRead(args []arg) (worst verdict) {
	for _, a := range args {
		if a.known && a.text != "" && a.text[0] != '-' {
			worst = worst.worse(l.name(a.text))
		}
	}
	return worst
}

// dialectSet returns what is destructive among the arguments of a command that runs another
// one, wherever that begins: as words, or as the text of a shell.
func (l *line) among(args []arg) (worst verdict) {
	var seen [4]*program // without verbs: the first one has all options
	next := 0
	for i, a := range args {
		if a.known && strings.ContainsAny(a.text, " \t\n;|&(") {
			for text := range textsIn(a.text) {
				worst = worst.worse(destructive(classifyNested(text, l.depth+1, l.read)))
			}
		}
		name := a.text[strings.LastIndexByte(a.text, '/')+1:]
		p := l.programs[name]
		switch {
		case strings.HasPrefix(name, "mkfs."):
			worst = worst.worse(verdict{Operation: policy.Destructive, Word: clipWord(name)})
		case p == nil || len(p.destroys) == 0 || slices.Contains(seen[:], p):
			continue
		case !p.verbs:
			seen[next%len(seen)] = p
			next++
		}
		worst = worst.worse(p.destroysBy(args[i+1:]))
	}
	return worst
}

// destructive is a verdict if it says so.
func destructive(v verdict) verdict {
	if v.Operation == policy.Destructive {
		return v
	}
	return verdict{}
}

// textsIn yields what may be the text of a shell in an argument: all of it, or the value of
// an option or a setting.
func textsIn(arg string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if option := len(arg) > 2 && arg[0] == '-'; !yield(arg) || option && !yield(arg[2:]) {
			return
		}
		if name, value, is := strings.Cut(arg, "="); is && !strings.ContainsAny(name, " \t\n") {
			yield(value)
		}
	}
}

// curl judges what its options alone do not say.
func curl(args []arg) (worst verdict) {
	for i, a := range args {
		lower := strings.ToLower(a.text)
		switch {
		case elsewhere(a):
			worst = worst.worse(write("curl of what is no plain address"))
		case strings.Contains(lower, "method-override") || strings.Contains(lower, "x-http-method"):
			worst = worst.worse(write("a method that is overridden"))
			if strings.Contains(lower, "delete") {
				worst = worst.worse(verdict{Operation: policy.Destructive, Word: "a method that is overridden"})
			}
		case strings.Contains(a.text, "%output") || strings.HasPrefix(a.text, "@") || strings.HasPrefix(a.text, "-H@") || strings.HasPrefix(a.text, "-w@") || strings.Contains(a.text, "=@"):
			worst = worst.worse(write("curl " + a.text))
		}
		worst = worst.worse(curlMethod(a.text, args[i+1:]))
	}
	return worst
}

// curlMethod judges the method that an option of curl gives.
func curlMethod(option string, rest []arg) verdict {
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
			return write("curl " + option)
		}
		method = rest[0].text
	}
	return classifyMethod(method)
}

// elsewhere reports whether an argument of curl may be more than an address on the web.
func elsewhere(a arg) bool {
	scheme, _, found := strings.Cut(a.text, "://")
	return !a.known || found && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")
}

// shell judges sh -c.
func (l *line) shell(name string, args []arg) verdict {
	if len(args) == 1 && args[0].known && args[0].text == "--version" {
		return reading
	}
	for i, a := range args {
		switch {
		case !a.known || !strings.HasPrefix(a.text, "-") || strings.Trim(a.text[1:], "cleux") != "":
			return write(name)
		case strings.ContainsRune(a.text, 'c'):
			if i+1 < len(args) {
				return l.text(args[i+1:i+2], name)
			}
		}
	}
	return write(name)
}

// text judges the text of a command, which is given as arguments.
func (l *line) text(args []arg, name string) verdict {
	var parts []string
	for _, a := range args {
		if !a.known {
			return unread(name + " of what is not known").worse(mentioned(a.text))
		}
		parts = append(parts, a.text)
	}
	return classifyNested(strings.Join(parts, " "), l.depth+1, l.read)
}

// wrapped judges a command that runs another one.
func (l *line) wrapped(name string, w wrapper, args []arg, given bool) verdict {
	least, replaced := verdict{}, ""
	operands, i := w.operands, 0
	for ; i < len(args); i++ {
		a := args[i]
		switch {
		case a.mayBeOption():
			return unread(name + " of what is not known")
		case a.text == "--":
			continue
		case len(a.text) > 1 && a.text[0] == '-':
			if name == "command" && (a.text == "-v" || a.text == "-V") {
				return reading
			}
			next, _, ok := w.options.take(a.text)
			if !ok || next && (i+1 >= len(args) || !args[i+1].known) {
				return unread(name + " " + a.text)
			}
			if name == "xargs" {
				replaced += replacement(a.text, args[i+1:])
			}
			if next {
				i++
			}
			continue
		case name == "env" && strings.ContainsRune(a.text, '='):
			variable, _, _ := strings.Cut(a.text, "=")
			if !l.variables[variable] {
				least = least.worse(write(variable + "="))
			}
			continue
		case operands > 0:
			operands--
			continue
		}
		break
	}
	switch {
	case i >= len(args) && name == "xargs": // it runs echo
		return reading.worse(least)
	case i >= len(args):
		return unread(name).worse(least)
	case name == "watch":
		return l.text(args[i:], name).worse(least)
	case replaced != "":
		return l.command(replace(args[i:], replaced), true).worse(least)
	}
	return l.command(args[i:], given || name == "xargs").worse(least)
}

// replacement returns what xargs replaces in the command that it runs; "" for nothing.
func replacement(option string, rest []arg) string {
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

// replace returns arguments of which it is not known what they are from the text on that
// is replaced.
func replace(args []arg, text string) []arg {
	args = slices.Clone(args)
	for i, a := range args {
		if at := strings.Index(a.text, text); at >= 0 {
			args[i] = arg{a.text[:at], false}
		}
	}
	return args
}

// find judges what find does with what it has found.
func (l *line) find(p *program, args []arg) verdict {
	worst, plain := verdict{}, []arg{}
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
			return unread("find " + args[i].text)
		}
		for at := range inner {
			if inner[at].text == "{}" {
				inner[at] = arg{"./", false} // what is found begins with where the search began
			} else if strings.Contains(inner[at].text, "{}") {
				inner[at] = arg{}
			}
		}
		worst = worst.worse(l.command(inner, false))
		i = end
	}
	return p.classify(plain).worse(worst)
}

var (
	sedReads = regexp.MustCompile(`^\s*((\d+|\$|/[^/\\]*/)(\s*,\s*[+~]?(\d+|\$|/[^/\\]*/))?\s*!?\s*)?([pdqQ=lDGHxnN]|s/([^/\\]|\\[^\n])*/([^/\\\n]|\\[^\n])*/[gpiI0-9]*)\s*;?\s*$`)
	sedBars  = regexp.MustCompile(`^s(\|([^|\\]|\\[^\n])*\|([^|\\\n]|\\[^\n])*\||#([^#\\]|\\[^\n])*#([^#\\\n]|\\[^\n])*#)[gpiI0-9]*$`)
	awkWrite = regexp.MustCompile(`[|@]|system|getline|close|fflush|include|load|/inet|ENVIRON\s*\[`)
)

// script judges the program that sed or awk is given.
func script(name string, args []arg) verdict {
	known := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.mayBeOption():
			return unread(name + " of what is not known")
		case len(a.text) > 1 && a.text[0] == '-':
			switch {
			case name == "sed" && (a.text == "-n" || a.text == "-E" || a.text == "-r" || a.text == "-s"):
			case name != "sed" && strings.HasPrefix(a.text, "-F"):
				if a.text == "-F" {
					i++
				}
			case name != "sed" && a.text == "-v":
				i++
			default:
				return write(name + " " + a.text)
			}
		case known:
		case !a.known, name == "sed" && !sedReads.MatchString(a.text) && !sedBars.MatchString(a.text), name != "sed" && awkWrites(a.text):
			return unread(name + " with a program that is not read")
		default:
			known = true
		}
	}
	if !known {
		return unread(name)
	}
	return reading
}

// awkWrites reports whether a program of awk may do more than print. A > before the first
// action compares.
func awkWrites(program string) bool {
	action := strings.IndexByte(program, '{')
	return awkWrite.MatchString(program) || action >= 0 && strings.IndexByte(program[action:], '>') >= 0
}
