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
		lower := strings.ToLower(a.text)
		switch {
		case mayBeOtherScheme(a):
			worst = worst.worseOf(writeVerdict("curl of what is no plain address"))
		case strings.Contains(lower, "method-override") || strings.Contains(lower, "x-http-method"):
			worst = worst.worseOf(writeVerdict("a method that is overridden"))
			if strings.Contains(lower, "delete") {
				worst = worst.worseOf(destructiveVerdict("a method that is overridden"))
			}
		case strings.Contains(a.text, "%output") || strings.HasPrefix(a.text, "@") || strings.HasPrefix(a.text, "-H@") || strings.HasPrefix(a.text, "-w@") || strings.Contains(a.text, "=@"):
			worst = worst.worseOf(writeVerdict("curl " + a.text))
		}
		worst = worst.worseOf(classifyCurlMethod(a.text, args[i+1:]))
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
	scheme, _, found := strings.Cut(a.text, "://")
	return !a.known || found && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https")
}

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
			args[i] = commandArg{a.text[:at], false}
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
		for at := range inner {
			if inner[at].text == "{}" {
				inner[at] = commandArg{"./", false} // results start with the directory in which the search started
			} else if strings.Contains(inner[at].text, "{}") {
				inner[at] = commandArg{}
			}
		}
		worst = worst.worseOf(l.classifyCommand(inner, false))
		i = end
	}
	return p.classify(plain).worseOf(worst)
}

var (
	sedReads = regexp.MustCompile(`^\s*((\d+|\$|/[^/\\]*/)(\s*,\s*[+~]?(\d+|\$|/[^/\\]*/))?\s*!?\s*)?([pdqQ=lDGHxnN]|s/([^/\\]|\\[^\n])*/([^/\\\n]|\\[^\n])*/[gpiI0-9]*)\s*;?\s*$`)
	sedBars  = regexp.MustCompile(`^s(\|([^|\\]|\\[^\n])*\|([^|\\\n]|\\[^\n])*\||#([^#\\]|\\[^\n])*#([^#\\\n]|\\[^\n])*#)[gpiI0-9]*$`)
	awkWrite = regexp.MustCompile(`[|@]|system|getline|close|fflush|include|load|/inet|ENVIRON\s*\[`)
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
			switch {
			case name == "sed" && (a.text == "-n" || a.text == "-E" || a.text == "-r" || a.text == "-s"):
			case name != "sed" && strings.HasPrefix(a.text, "-F"):
				if a.text == "-F" {
					i++
				}
			case name != "sed" && a.text == "-v":
				i++
			default:
				return writeVerdict(name + " " + a.text)
			}
		case known:
		case !a.known, name == "sed" && !sedReads.MatchString(a.text) && !sedBars.MatchString(a.text), name != "sed" && awkWrites(a.text):
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
