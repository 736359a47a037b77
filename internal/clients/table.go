package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"mcpproxy/internal/clients/textedit"
)

var mcpServers = []string{"mcpServers"}

// allClients are all clients in listing order.
var allClients = []Client{
	{ID: "claude-code", Name: "Claude Code", HTTP: true, aliases: []string{"claude"}, programs: []string{"claude"}, installPaths: installPathsInHome(".claude"),
		files: claudeFiles, entry: entryWithType("http"), Reload: "Restart running sessions.",
		add: func(name string, _ ProxyAddress, entry json.RawMessage) []string {
			return []string{"claude", "mcp", "add-json", "--scope", "user", name, string(entry)}
		},
		remove: func(name string) []string { return []string{"claude", "mcp", "remove", "--scope", "user", name} }},
	{ID: "claude-desktop", Name: "Claude Desktop", aliases: []string{"desktop"}, installPaths: installPathInAppSettings("Claude"),
		files: claudeDesktopFiles, entry: commandEntry, Reload: "Quit Claude Desktop and start it again."},
	{ID: "cursor", Name: "Cursor", HTTP: true, programs: []string{"cursor", "cursor-agent"}, installPaths: installPathsInHome(".cursor"), files: cursorFiles, entry: entryWithURLKey("url")},
	{ID: "vscode", Name: "VS Code", HTTP: true, aliases: []string{"code", "copilot-chat"}, programs: []string{"code"}, installPaths: installPathInAppSettings("Code", "User"), files: vscodeFiles, entry: entryWithType("http")},
	{ID: "codex", Name: "Codex", HTTP: true, programs: []string{"codex"}, installPaths: installPathsInHome(".codex"),
		files: codexFiles, target: func(e Env) File { return codexFiles(e)[1] }, entry: codexEntry, Reload: "Restart running sessions.",
		add: func(name string, a ProxyAddress, _ json.RawMessage) []string {
			return []string{"codex", "mcp", "add", name, "--url", a.URL}
		},
		remove: func(name string) []string { return []string{"codex", "mcp", "remove", name} }},
	{ID: "gemini", Name: "Gemini CLI", HTTP: true, aliases: []string{"gemini-cli"}, programs: []string{"gemini"}, installPaths: installPathsInHome(".gemini/settings.json"),
		files: geminiFiles, entry: entryWithURLKey("httpUrl"), Reload: "Restart running sessions.",
		add: func(name string, a ProxyAddress, _ json.RawMessage) []string {
			return []string{"gemini", "mcp", "add", "-s", "user", "-t", "http", name, a.URL}
		},
		remove: func(name string) []string { return []string{"gemini", "mcp", "remove", "-s", "user", name} }},
	{ID: "windsurf", Name: "Windsurf", HTTP: true, aliases: []string{"cascade"}, programs: []string{"windsurf"}, installPaths: installPathsInHome(".codeium/windsurf"),
		files: singleFileInHome(".codeium", "windsurf", "mcp_config.json"), entry: entryWithURLKey("serverUrl"), Reload: "In Cascade, refresh the list of MCP servers."},
	{ID: "opencode", Name: "opencode", HTTP: true, programs: []string{"opencode"}, installPaths: installPathInConfig("opencode"),
		files: opencodeFiles, target: opencodeTargetFile, entry: opencodeEntry, Reload: "Start opencode again."},
	{ID: "zed", Name: "Zed", HTTP: true, programs: []string{"zed", "zeditor"}, installPaths: installPathInConfig("zed"), files: zedFiles, entry: entryWithURLKey("url")},
	{ID: "copilot", Name: "GitHub Copilot CLI", HTTP: true, aliases: []string{"copilot-cli"}, programs: []string{"copilot"}, installPaths: installPathsInHome(".copilot"),
		files: copilotFiles, entry: copilotEntry, Reload: "Restart running sessions."},
	{ID: "goose", Name: "Goose", HTTP: true, programs: []string{"goose"}, installPaths: func(e Env) []string { return []string{filepath.Dir(gooseFiles(e)[0].Path)} },
		files: gooseFiles, namedEntry: gooseEntry, Reload: "Restart running sessions."},
	{ID: "cline", Name: "Cline", HTTP: true, programs: []string{"cline"}, installPaths: func(e Env) []string { return []string{filepath.Dir(filepath.Dir(clineFiles(e)[1].Path))} },
		files: clineFiles, target: clineTargetFile, entry: entryWithType("streamableHttp")},
	{ID: "lmstudio", Name: "LM Studio", HTTP: true, aliases: []string{"lm-studio"}, programs: []string{"lms"}, installPaths: installPathsInHome(".lmstudio"),
		files: lmstudioFiles, entry: entryWithURLKey("url")},
	{ID: "kiro", Name: "Kiro", HTTP: true, programs: []string{"kiro", "kiro-cli"}, installPaths: installPathsInHome(".kiro"), files: kiroFiles, entry: entryWithURLKey("url")},
	{ID: "junie", Name: "Junie", programs: []string{"junie"}, installPaths: installPathsInHome(".junie"),
		files: junieFiles, entry: commandEntry, Reload: "Start the IDE, or Junie, again."},
}

// importOnlyClients are clients whose files MCPProxy only reads.
var importOnlyClients = []Client{
	{ID: "continue", Name: "Continue", HTTP: true, installPaths: installPathsInHome(".continue"), files: continueFiles},
}

// continueFiles returns the configuration file and the files in the folders for servers.
func continueFiles(e Env) []File {
	files := []File{{User, e.HomePath(".continue", "config.yaml"), textedit.YAML, mcpServers}}
	if !PathExists(files[0].Path) { // otherwise Continue does not read this file
		files = []File{{User, e.HomePath(".continue", "config.json"), textedit.JSON, mcpServers}}
	}
	add := func(scope Scope, folder string) {
		for _, name := range firstFolderEntries(folder) {
			path := filepath.Join(folder, name)
			switch filepath.Ext(path) {
			case ".json":
				files = append(files, File{scope, path, textedit.JSON, mcpServers})
			case ".yaml", ".yml":
				files = append(files, File{scope, path, textedit.YAML, mcpServers})
			}
		}
	}
	add(User, e.HomePath(".continue", "mcpServers"))
	add(Project, e.WorkingDirPath(".continue", "mcpServers"))
	return files
}

// maxFolderFiles is the maximum number of names that are read from a folder.
const maxFolderFiles = 200

// firstFolderEntries returns the names of up to maxFolderFiles entries of a folder, sorted. It returns none if the
// folder cannot be read.
func firstFolderEntries(folder string) []string {
	f, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxFolderFiles)
	slices.Sort(names)
	return names
}

// installPathsInHome returns paths in the home directory that show that a client is installed.
func installPathsInHome(paths ...string) func(Env) []string {
	return func(e Env) []string {
		var all []string
		for _, path := range paths {
			all = append(all, e.HomePath(filepath.FromSlash(path)))
		}
		return all
	}
}

// installPathInAppSettings returns a path in the system's directory for application settings that shows that a
// client is installed.
func installPathInAppSettings(elements ...string) func(Env) []string {
	return func(e Env) []string { return []string{e.AppSettingsPath(elements...)} }
}

// installPathInConfig returns a path in ~/.config, or below %APPDATA% on Windows, that shows that a client is
// installed.
func installPathInConfig(name string) func(Env) []string {
	return func(e Env) []string { return []string{e.XDGConfigPath([]string{name}, name)} }
}

// singleFileInHome returns the one file of a client in the home directory.
func singleFileInHome(elements ...string) func(Env) []File {
	return func(e Env) []File { return []File{{User, e.HomePath(elements...), textedit.JSON, mcpServers}} }
}

func claudeFiles(e Env) []File {
	global := e.HomePath(".claude.json")
	if set := e.Getenv("CLAUDE_CONFIG_DIR"); set != "" {
		global = filepath.Join(set, ".claude.json")
	}
	return []File{
		{User, global, textedit.JSON, mcpServers},
		{Project, e.WorkingDirPath(".mcp.json"), textedit.JSON, mcpServers},
		{Local, global, textedit.JSON, []string{"projects", e.Dir, "mcpServers"}},
	}
}

func claudeDesktopFiles(e Env) []File {
	return []File{{User, e.AppSettingsPath("Claude", "claude_desktop_config.json"), textedit.JSON, mcpServers}}
}

func cursorFiles(e Env) []File {
	return []File{
		{User, e.HomePath(".cursor", "mcp.json"), textedit.JSON, mcpServers},
		{Project, e.WorkingDirPath(".cursor", "mcp.json"), textedit.JSON, mcpServers},
	}
}

func vscodeFiles(e Env) []File {
	return []File{
		{User, e.AppSettingsPath("Code", "User", "mcp.json"), textedit.JSON, []string{"servers"}},
		{Project, e.WorkingDirPath(".vscode", "mcp.json"), textedit.JSON, []string{"servers"}},
	}
}

func codexFiles(e Env) []File {
	key := []string{"mcp_servers"}
	files := []File{
		{System, e.SystemPath("/etc/codex/config.toml", "/etc/codex/config.toml", `C:\ProgramData\OpenAI\Codex\config.toml`), textedit.TOML, key},
		{User, filepath.Join(e.DirFromVariableOrHome("CODEX_HOME", ".codex"), "config.toml"), textedit.TOML, key},
	}
	for _, dir := range e.projectDirs() {
		files = append(files, File{Project, filepath.Join(dir, ".codex", "config.toml"), textedit.TOML, key})
	}
	managed := e.SystemPath("/etc/codex/managed_config.toml", "/etc/codex/managed_config.toml", "")
	if e.GOOS == "windows" {
		managed = e.HomePath(".codex", "managed_config.toml")
	}
	return append(files, File{Managed, managed, textedit.TOML, key})
}

func geminiFiles(e Env) []File {
	system := GeminiSystemDir(e)
	override := filepath.Join(system, "settings.json")
	if set := e.Getenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH"); set != "" {
		override = set
	}
	return []File{
		{System, filepath.Join(system, "system-defaults.json"), textedit.JSON, mcpServers},
		{User, e.HomePath(".gemini", "settings.json"), textedit.JSON, mcpServers},
		{Project, e.WorkingDirPath(".gemini", "settings.json"), textedit.JSON, mcpServers},
		{Managed, override, textedit.JSON, mcpServers},
	}
}

// GeminiSystemDir returns the administrator's directory of Gemini CLI.
func GeminiSystemDir(e Env) string {
	return e.SystemPath("/etc/gemini-cli", "/Library/Application Support/GeminiCli", `C:\ProgramData\gemini-cli`)
}

// opencodeFiles returns opencode's files: .jsonc has precedence over .json.
func opencodeFiles(e Env) []File {
	key := []string{"mcp"}
	var files []File
	add := func(scope Scope, paths ...string) {
		for _, path := range paths {
			files = append(files, File{scope, path, textedit.JSON, key})
		}
	}
	global := e.XDGConfigPath(nil, "opencode")
	add(User, filepath.Join(global, "config.json"), filepath.Join(global, "opencode.json"), filepath.Join(global, "opencode.jsonc"))
	if set := e.Getenv("OPENCODE_CONFIG"); set != "" {
		add(User, set)
	}
	for _, dir := range e.projectDirs() {
		add(Project, filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc"))
	}
	for _, dir := range e.projectDirs() {
		add(Project, filepath.Join(dir, ".opencode", "opencode.json"), filepath.Join(dir, ".opencode", "opencode.jsonc"))
	}
	return files
}

// opencodeTargetFile returns the user file that exists, opencode.jsonc before opencode.json. If neither exists, it
// returns opencode.json.
func opencodeTargetFile(e Env) File {
	files := opencodeFiles(e)
	if PathExists(files[2].Path) {
		return files[2]
	}
	return files[1]
}

// zedFiles returns Zed's files. Sources disagree for macOS and Windows, so the existing file is used.
func zedFiles(e Env) []File {
	paths := []string{e.XDGConfigPath([]string{"Zed", "settings.json"}, "zed", "settings.json")}
	switch e.GOOS {
	case "darwin":
		paths = append(paths, e.AppSettingsPath("Zed", "settings.json"))
	case "windows":
		paths = append(paths, e.HomePath(".config", "zed", "settings.json"))
	}
	return []File{{User, firstExisting(paths...), textedit.JSON, []string{"context_servers"}}}
}

func copilotFiles(e Env) []File {
	return []File{
		{User, filepath.Join(e.DirFromVariableOrHome("COPILOT_HOME", ".copilot"), "mcp-config.json"), textedit.JSON, mcpServers},
		{Project, e.WorkingDirPath(".mcp.json"), textedit.JSON, mcpServers},
	}
}

func gooseFiles(e Env) []File {
	path := e.XDGConfigPath([]string{"Block", "goose", "config", "config.yaml"}, "goose", "config.yaml")
	return []File{{User, path, textedit.YAML, []string{"extensions"}}}
}

// clineFiles returns the files of the program and of the VS Code extension.
func clineFiles(e Env) []File {
	return []File{
		{User, e.HomePath(".cline", "data", "settings", "cline_mcp_settings.json"), textedit.JSON, mcpServers},
		{User, e.AppSettingsPath("Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json"), textedit.JSON, mcpServers},
	}
}

// clineTargetFile returns the file of the extension, unless only the program is installed.
func clineTargetFile(e Env) File {
	files := clineFiles(e)
	extension := filepath.Dir(filepath.Dir(files[1].Path))
	if !PathExists(extension) && (PathExists(files[0].Path) || e.findProgram("cline") != "") {
		return files[0]
	}
	return files[1]
}

// lmstudioFiles returns LM Studio's files. Older versions store the file in the cache folder.
func lmstudioFiles(e Env) []File {
	return []File{{User, firstExisting(e.HomePath(".lmstudio", "mcp.json"), e.HomePath(".cache", "lm-studio", "mcp.json")), textedit.JSON, mcpServers}}
}

func kiroFiles(e Env) []File {
	return []File{
		{User, e.HomePath(".kiro", "settings", "mcp.json"), textedit.JSON, mcpServers},
		{Project, e.WorkingDirPath(".kiro", "settings", "mcp.json"), textedit.JSON, mcpServers},
	}
}

func junieFiles(e Env) []File {
	return []File{
		{User, e.HomePath(".junie", "mcp", "mcp.json"), textedit.JSON, mcpServers},
		{Project, e.WorkingDirPath(".junie", "mcp", "mcp.json"), textedit.JSON, mcpServers},
	}
}
