package config

import (
	"regexp"
	"strings"
)

// ForeignReference is a reference in another program's syntax, which is plain text here.
type ForeignReference struct {
	Start, End int    // positions in the text
	Name       string // the variable; "" if there is none, or if the name may be part of a secret
	Kind       ForeignReferenceKind
	Default    string // default value in a VariableDefault
}

// ForeignReferenceKind is the form of a reference.
type ForeignReferenceKind uint8

const (
	Variable        ForeignReferenceKind = iota // ${NAME}
	VariableDefault                             // ${NAME:-default}
	BareVariable                                // $NAME, as the whole value
	BraceVariable                               // {env:NAME}
	BraceFile                                   // {file:path}
	EditorVariable                              // ${workspaceFolder}
	Template                                    // ${{ ops.NAME }}
	Input                                       // ${input:id}: an error here, not text
)

var (
	foreignPattern = regexp.MustCompile(`\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(:?-[^}]*)?|input:([^}]*)|(/))\}|(\$\{\{)[^}]*\}\}|\{(?:env:([A-Za-z_][A-Za-z0-9_]*)|(file:)[^}]+)\}`)
	barePattern    = regexp.MustCompile(`^(?:(?i:bearer|basic|token) )?(\$[A-Z_][A-Z0-9_]*)$`)
	// templatePattern matches ${{ ops.NAME }}, whose name may follow a path.
	templatePattern = regexp.MustCompile(`^\$\{\{\s*(?:secrets|inputs|env|vars)\.(?:[A-Za-z0-9_.-]+/)*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}$`)
	editorPattern   = regexp.MustCompile(`^(workspaceFolder(Basename)?|workspaceRoot|userHome|pathSeparator|cwd|file|extensionPath|CLAUDE_PLUGIN_ROOT)$`)
)

// FindForeignReferences returns the references in text order.
func FindForeignReferences(text string) []ForeignReference {
	if m := barePattern.FindStringSubmatchIndex(text); m != nil {
		return []ForeignReference{{Start: m[2], End: m[3], Kind: BareVariable}}
	}
	if !strings.Contains(text, "{") {
		return nil
	}
	var found []ForeignReference
	for _, m := range foreignPattern.FindAllStringSubmatchIndex(text, -1) {
		part := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return text[m[2*i]:m[2*i+1]]
		}
		if len(found) > 0 && m[0] < found[len(found)-1].End { // inside the default of the previous reference
			continue
		}
		if m[0] > 0 && text[m[0]-1] == '$' { // "$${" represents "${", and "${env:NAME}" is not foreign
			continue
		}
		r := ForeignReference{Start: m[0], End: m[1]}
		switch {
		case part(1) != "" && m[4] >= 0:
			r.Name, r.Kind, r.End = part(1), VariableDefault, referenceEnd(text, m[0], m[1])
			r.Default = strings.TrimPrefix(strings.TrimPrefix(text[m[4]:r.End-1], ":"), "-")
		case editorPattern.MatchString(part(1)) || part(4) != "":
			r.Name, r.Kind = part(1), EditorVariable
		case part(1) != "":
			r.Name, r.Kind = part(1), Variable
		case m[6] >= 0:
			r.Name, r.Kind = part(3), Input
		case part(5) != "":
			r.Kind = Template
			if named := templatePattern.FindStringSubmatch(text[m[0]:m[1]]); named != nil {
				r.Name = named[1]
			}
		case part(6) != "":
			r.Name, r.Kind = part(6), BraceVariable
		default:
			r.Kind = BraceFile
		}
		found = append(found, r)
	}
	return found
}

// referenceEnd returns the position after the closing brace of the reference at start, whose default may contain
// references. It returns end if there is no closing brace.
func referenceEnd(text string, start, end int) int {
	open := 0
	for i := start; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "${"):
			open++
		case text[i] == '}':
			if open--; open == 0 {
				return i + 1
			}
		}
	}
	return end
}

// Advice returns a warning and a hint with the correct syntax.
func (r ForeignReference) Advice() (message, hint string) {
	name := clipText(r.Name)
	reference := "${env:" + name + "}"
	switch r.Kind {
	case VariableDefault:
		return "${" + name + ":-…} is not a reference here, and stays unchanged", "write " + reference + " and set the variable, or write the default itself; for the literal text add one more $"
	case BareVariable:
		return "the value looks like $NAME, which is not a reference here and stays unchanged", "write ${env:NAME} with the variable's name"
	case BraceVariable:
		return "{env:" + name + "} is not a reference here, and stays unchanged", "write " + reference
	case BraceFile:
		return "{file:…} is not a reference here, and stays unchanged", "store the content of the file in an environment variable, and write ${env:NAME}"
	case Template:
		return "${{ … }} is not a reference here, and stays unchanged", "write ${env:NAME}, and set that variable"
	case EditorVariable:
		return "${" + name + "} is a variable of editors, and stays unchanged", "write the path itself, or ${env:HOME} for the home directory"
	case Input:
		return "${input:" + name + "} is a prompt of editors, which MCPProxy does not support", "write ${env:NAME}, and set that variable"
	}
	return "${" + name + "} is not a reference here, and stays unchanged", "write " + reference + "; for the literal text write $${" + name + "}"
}
