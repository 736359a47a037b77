package classify

import (
	"encoding/json"
	"strings"
	"sync"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
)

// maxNeighbours limits the members next to a command that are classified.
const maxNeighbours = 8

// tooManyNeighbours is the verdict above that limit.
var tooManyNeighbours = verdict{Operation: policy.Destructive, Word: "too many other arguments", Unread: true}

// siblingClassifier classifies the members next to a command, including nested ones.
type siblingClassifier struct {
	rule       *ArgumentRule
	args       json.RawMessage
	classified int
	worst      verdict
}

// roles maps lower-case member names to their role next to a command.
var roles = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for section, names := range detectWords() {
		if role, is := strings.CutPrefix(section, "next to a command: "); is {
			for name := range names {
				all[name] = role
			}
		}
	}
	return all
})

// siblingRole returns the role of a member in any spelling.
func siblingRole(name []byte) string {
	var room [32]byte
	letters := room[:0]
	for _, c := range name {
		if c |= 0x20; 'a' <= c && c <= 'z' && len(letters) < len(room) {
			letters = append(letters, c)
		}
	}
	return roles()[string(letters)]
}

// walk classifies the members of a value. own is the path of the command in this value, if the value contains it.
func (n *siblingClassifier) walk(value []byte, own []string) {
	switch wirejson.Kind(value) {
	case '[':
		_ = wirejson.EachElement(value, func(e []byte) error { n.walk(e, own); return nil })
	case '{':
		_ = wirejson.EachMember(value, func(name, value []byte) error {
			switch here := len(own) > 0 && string(name) == own[0]; {
			case here && len(own) == 1:
			case here:
				n.walk(value, own[1:])
			default:
				n.classifyMember(name, value)
			}
			return nil
		})
	}
}

// classifyMember classifies one member.
func (n *siblingClassifier) classifyMember(name, value []byte) {
	role, kind := siblingRole(name), wirejson.Kind(value)
	if len(value) <= 2 || kind != '"' && kind != '[' && kind != '{' {
		return // empty, a number, true, false or null
	}
	if role != "" {
		if n.classified++; n.classified > maxNeighbours {
			n.worst = n.worst.worseOf(tooManyNeighbours)
			return
		}
	}
	switch {
	case role == "arguments" || role == "options" && kind != '{':
		n.worst = n.worst.worseOf(n.classifyCommandWithArguments(value))
	case role == "shell" && kind == '"':
		if shell, _ := wirejson.String(value); !knownCommands().shells[shell[strings.LastIndexByte(shell, '/')+1:]] {
			n.worst = n.worst.worseOf(writeVerdict(string(name)))
		}
	case role == "surroundings" || role == "shell":
		n.worst = n.worst.worseOf(writeVerdict(string(name)))
	case role == "commands" && kind != '{':
		n.worst = n.worst.worseOf(n.classifySecondCommand(value))
	default:
		n.walk(value, nil)
	}
}

// classifySecondCommand classifies a text, or a list of texts, that may be a separate command.
func (n *siblingClassifier) classifySecondCommand(value []byte) verdict {
	words, ok := textOrTexts(value)
	if !ok {
		return unparseableVerdict("a second command that is no text")
	}
	worst := n.rule.classifyText(strings.Join(words, "\n"))
	if len(words) > 1 {
		worst = worst.worseOf(n.rule.classifyText(quoteShellWords(words)))
	}
	return worst
}

// classifyCommandWithArguments classifies a command whose arguments are in another member. It joins them both as
// words and as text, because the server may do either, and also checks the arguments alone for destructive words.
func (n *siblingClassifier) classifyCommandWithArguments(value []byte) (worst verdict) {
	words, ok := textOrTexts(value)
	if !ok {
		return unparseableVerdict("arguments that are no texts")
	}
	plain := strings.Join(words, " ")
	forEachValueAtPath(n.args, n.rule.argumentPath(), func(value []byte) {
		command, ok := textOrTexts(value)
		if !ok {
			worst = worst.worseOf(unparseableVerdict("a command with arguments next to it"))
			return
		}
		line := command[0]
		if len(command) > 1 {
			line = quoteShellWords(command)
		}
		if n.rule.By == policy.ByCLI {
			line = n.rule.withProgram(line)
		}
		worst = worst.worseOf(classifyShell(line + " " + quoteShellWords(words))).worseOf(classifyShell(line + " " + plain))
	})
	if v := classifyShell(plain); v.Operation == policy.Destructive {
		worst = worst.worseOf(v)
	}
	return worst
}

// textOrTexts returns a text, or the texts of a non-empty list.
func textOrTexts(value []byte) ([]string, bool) {
	if text, ok := wirejson.String(value); ok {
		return []string{text}, true
	}
	if wirejson.Kind(value) != '[' {
		return nil, false
	}
	words, ok := parseStrings(value)
	return words, ok && len(words) > 0
}
