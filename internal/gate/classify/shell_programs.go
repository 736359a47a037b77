package classify

import (
	"regexp"
	"slices"
	"strings"
)

// classifyReadBuiltin classifies the builtin read by the variables that it sets.
func (l *shellLineClassifier) classifyReadBuiltin(args []commandArg) (worst verdict) {
	for _, a := range args {
		if a.known && a.text != "" && a.text[0] != '-' {
			worst = worst.worseOf(l.classifySettingVariable(a.text))
		}
	}
	return worst
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
				worst = worst.worseOf(destructiveVerdict("a method that is overridden"))
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
