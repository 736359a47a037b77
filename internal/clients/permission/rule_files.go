package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/textedit"
)

// maxFilesPerDir is the maximum number of files that are read from a directory.
const maxFilesPerDir = 100

// listFilesWithExtension returns the files of a directory that have an extension, sorted by name.
func listFilesWithExtension(f clients.File, extension string) []clients.File {
	names, _ := filepath.Glob(filepath.Join(f.Path, "*"+extension))
	slices.Sort(names)
	var all []clients.File
	for _, name := range names[:min(len(names), maxFilesPerDir)] {
		one := f
		one.Path = name
		all = append(all, one)
	}
	return all
}

// jsonFile returns a JSON file of rules.
func jsonFile(scope clients.Scope, path string) clients.File {
	return clients.File{Scope: scope, Path: path, Format: textedit.JSON}
}

func claudeRuleFiles(e clients.Env) []clients.File {
	managed := e.SystemPath("/etc/claude-code", "/Library/Application Support/ClaudeCode", `C:\Program Files\ClaudeCode`)
	files := []clients.File{
		jsonFile(clients.User, filepath.Join(e.DirFromVariableOrHome("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")),
		jsonFile(clients.Project, e.WorkingDirPath(".claude", "settings.json")),
		jsonFile(clients.Local, e.WorkingDirPath(".claude", "settings.local.json")),
		jsonFile(clients.Managed, filepath.Join(managed, "managed-settings.json")),
	}
	return append(files, listFilesWithExtension(jsonFile(clients.Managed, filepath.Join(managed, "managed-settings.d")), ".json")...)
}

func cursorRuleFiles(e clients.Env) []clients.File {
	return []clients.File{
		jsonFile(clients.User, e.HomePath(".cursor", "permissions.json")),
		jsonFile(clients.Project, e.WorkingDirPath(".cursor", "permissions.json")),
	}
}

func geminiRuleFiles(e clients.Env) []clients.File {
	var files []clients.File
	for _, dir := range []clients.File{
		{Scope: clients.User, Path: e.HomePath(".gemini", "policies"), Format: textedit.TOML},
		{Scope: clients.Project, Path: e.WorkingDirPath(".gemini", "policies"), Format: textedit.TOML},
		{Scope: clients.Managed, Path: filepath.Join(clients.GeminiSystemDir(e), "policies"), Format: textedit.TOML},
	} {
		files = append(files, listFilesWithExtension(dir, ".toml")...)
	}
	return files
}

// geminiSwitchesFile returns the file that `gemini mcp disable` writes.
func geminiSwitchesFile(e clients.Env) clients.File {
	return jsonFile(clients.User, e.HomePath(".gemini", "mcp-server-enablement.json"))
}

// geminiTrustedFoldersFile returns the file with trusted folders.
func geminiTrustedFoldersFile(e clients.Env) clients.File {
	if set := e.Getenv("GEMINI_CLI_TRUSTED_FOLDERS_PATH"); set != "" {
		return jsonFile(clients.User, set)
	}
	return jsonFile(clients.User, e.HomePath(".gemini", "trustedFolders.json"))
}

// geminiPolicyFile returns MCPProxy's own policy file.
func geminiPolicyFile(e clients.Env) clients.File {
	return clients.File{Scope: clients.User, Path: e.HomePath(".gemini", "policies", "mcpproxy.toml"), Format: textedit.TOML}
}

func gooseRuleFiles(e clients.Env) []clients.File {
	path := e.XDGConfigPath([]string{"Block", "goose", "config", "permission.yaml"}, "goose", "permission.yaml")
	return []clients.File{{Scope: clients.User, Path: path, Format: textedit.YAML}}
}

func vscodeRuleFiles(e clients.Env) []clients.File {
	return []clients.File{jsonFile(clients.User, e.AppSettingsPath("Code", "User", "settings.json"))}
}

// isSameOrBelow reports whether a directory is outer or is below it.
func isSameOrBelow(dir, outer string) bool {
	outer = strings.TrimRight(outer, `/\`)
	return dir != "" && (dir == outer || strings.HasPrefix(dir, outer+"/") || strings.HasPrefix(dir, outer+`\`))
}
