package clients

import (
	"path"
	"slices"
	"strings"

	"mcpproxy/internal/config"
)

// rewriteReferences rewrites a client's unambiguous references into MCPProxy's syntax. It calls told for each
// reference, changed or not.
func rewriteReferences(s, client string, shell bool, told func(message, hint string)) string {
	var out strings.Builder
	rest := 0 // start of the text that is not yet written
	for _, r := range config.FindForeignReferences(s) {
		name := ""
		switch {
		case r.Kind == config.Variable && !shell, r.Kind == config.BraceVariable && client == opencode:
			name = r.Name
		case r.Kind == config.EditorVariable && r.Name == "userHome":
			name = "HOME"
		case r.Kind == config.Input:
			name = inputVariableName(r.Name)
		case r.Kind == config.Template:
			name = r.Name
		}
		if r.Kind == config.VariableDefault && !shell {
			out.WriteString(s[rest:r.Start] + rewriteReferences(r.Default, client, shell, told))
			rest = r.End
			told("${"+r.Name+":-…} is written as its default", "to use the variable, write ${env:"+r.Name+"} and set it in MCPProxy's environment")
			continue
		}
		if name == "" {
			told(r.Advice())
			continue
		}
		reference := "${env:" + name + "}"
		hint := ""
		switch r.Kind {
		case config.Template:
			hint = "set that variable in MCPProxy's environment: MCPProxy does not read the client's secrets"
		case config.Input:
			hint = "set that variable in MCPProxy's environment: MCPProxy does not ask for it"
		}
		told(s[r.Start:r.End]+" is written as "+reference, hint)
		out.WriteString(s[rest:r.Start] + reference)
		rest = r.End
	}
	return out.String() + s[rest:]
}

// inputVariableName returns a variable name for an input prompt of a client.
func inputVariableName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, id)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "INPUT_" + name
	}
	return strings.ToUpper(name)
}

// isShellCommand reports whether a command itself expands references in its arguments.
func isShellCommand(command string) bool {
	name := strings.TrimSuffix(path.Base(strings.ReplaceAll(command, `\`, "/")), ".exe")
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "fish", "ksh", "cmd", "powershell", "pwsh", "env"}, name)
}
