package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
)

// most is how many files of one directory are read.
const most = 100

// inside are the files of a directory with an extension, in the order of their
// names.
func inside(f clients.File, extension string) []clients.File {
	names, _ := filepath.Glob(filepath.Join(f.Path, "*"+extension))
	slices.Sort(names)
	var all []clients.File
	for _, name := range names[:min(len(names), most)] {
		one := f
		one.Path = name
		all = append(all, one)
	}
	return all
}

// inJSON is a file of rules in JSON.
func inJSON(scope clients.Scope, path string) clients.File {
	return clients.File{Scope: scope, Path: path, Format: textedit.JSON}
}

func claudeRuleFiles(e clients.Env) []clients.File {
	managed := e.System("/etc/claude-code", "/Library/Application Support/ClaudeCode", `C:\Program Files\ClaudeCode`)
	files := []clients.File{
		inJSON(clients.User, filepath.Join(e.Or("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")),
		inJSON(clients.Project, e.InDir(".claude", "settings.json")),
		inJSON(clients.Local, e.InDir(".claude", "settings.local.json")),
		inJSON(clients.Managed, filepath.Join(managed, "managed-settings.json")),
	}
	return append(files, inside(inJSON(clients.Managed, filepath.Join(managed, "managed-settings.d")), ".json")...)
}

func cursorRuleFiles(e clients.Env) []clients.File {
	return []clients.File{
		inJSON(clients.User, e.InHome(".cursor", "permissions.json")),
		inJSON(clients.Project, e.InDir(".cursor", "permissions.json")),
	}
}

func geminiRuleFiles(e clients.Env) []clients.File {
	var files []clients.File
	for _, dir := range []clients.File{
		{Scope: clients.User, Path: e.InHome(".gemini", "policies"), Format: textedit.TOML},
		{Scope: clients.Project, Path: e.InDir(".gemini", "policies"), Format: textedit.TOML},
		{Scope: clients.Managed, Path: filepath.Join(clients.GeminiSystem(e), "policies"), Format: textedit.TOML},
	} {
		files = append(files, inside(dir, ".toml")...)
	}
	return files
}

// geminiSwitches are written by `gemini mcp disable`.
func geminiSwitches(e clients.Env) clients.File {
	return inJSON(clients.User, e.InHome(".gemini", "mcp-server-enablement.json"))
}

// geminiFolders has the answers to whether a folder is trusted.
func geminiFolders(e clients.Env) clients.File {
	if set := e.Getenv("GEMINI_CLI_TRUSTED_FOLDERS_PATH"); set != "" {
		return inJSON(clients.User, set)
	}
	return inJSON(clients.User, e.InHome(".gemini", "trustedFolders.json"))
}

// geminiTarget is a file of our own.
func geminiTarget(e clients.Env) clients.File {
	return clients.File{Scope: clients.User, Path: e.InHome(".gemini", "policies", "mcpproxy.toml"), Format: textedit.TOML}
}

func gooseRuleFiles(e clients.Env) []clients.File {
	path := e.Config([]string{"Block", "goose", "config", "permission.yaml"}, "goose", "permission.yaml")
	return []clients.File{{Scope: clients.User, Path: path, Format: textedit.YAML}}
}

func vscodeRuleFiles(e clients.Env) []clients.File {
	return []clients.File{inJSON(clients.User, e.Application("Code", "User", "settings.json"))}
}

func copilotRuleFiles(e clients.Env) []clients.File {
	return []clients.File{inJSON(clients.User, filepath.Join(e.Or("COPILOT_HOME", ".copilot"), "permissions-config.json"))}
}

// within reports whether a directory is another one or in it.
func within(dir, outer string) bool {
	outer = strings.TrimRight(outer, `/\`)
	return dir != "" && (dir == outer || strings.HasPrefix(dir, outer+"/") || strings.HasPrefix(dir, outer+`\`))
}
