package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"mcpproxy/internal/clientfile"
	"mcpproxy/internal/rawjson"
)

// Env is the account whose clients are judged.
type Env struct {
	GOOS   string // as in runtime
	Home   string
	Dir    string // where a client would be started: its project's files are read
	Root   string // before the paths of the whole machine; "" in earnest
	Getenv func(name string) string
}

// SystemEnv is the account and the working directory of this process.
func SystemEnv(goos string) (Env, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Env{}, err
	}
	dir, err := os.Getwd()
	return Env{GOOS: goos, Home: home, Dir: dir, Getenv: os.Getenv}, err
}

// The scopes of files.
const (
	managedScope = "managed"
	userScope    = "user"
	projectScope = "project"
	localScope   = "local"
	systemScope  = "system" // of the whole machine, weaker than the user's
)

// home is a path in the account.
func (e Env) home(elements ...string) string {
	return filepath.Join(append([]string{e.Home}, elements...)...)
}

// dir is a path in the working directory.
func (e Env) dir(elements ...string) string {
	return filepath.Join(append([]string{e.Dir}, elements...)...)
}

// or is a directory that a variable names, or one in the account.
func (e Env) or(variable string, elements ...string) string {
	if set := e.Getenv(variable); set != "" {
		return set
	}
	return e.home(elements...)
}

// system is a path of the whole machine: of Linux, macOS or Windows.
func (e Env) system(linux, mac, windows string) string {
	return filepath.Join(e.Root, map[string]string{"darwin": mac, "windows": windows}[e.GOOS]+map[bool]string{true: linux}[e.GOOS != "darwin" && e.GOOS != "windows"])
}

// application is where applications keep their settings.
func (e Env) application(elements ...string) string {
	switch e.GOOS {
	case "darwin":
		return e.home(append([]string{"Library", "Application Support"}, elements...)...)
	case "windows":
		return filepath.Join(append([]string{e.or("APPDATA", "AppData", "Roaming")}, elements...)...)
	}
	return filepath.Join(append([]string{e.or("XDG_CONFIG_HOME", ".config")}, elements...)...)
}

// config is a path in ~/.config, on macOS too, or where a client has it on Windows.
func (e Env) config(windows []string, elements ...string) string {
	if e.GOOS == "windows" && windows != nil {
		return filepath.Join(append([]string{e.or("APPDATA", "AppData", "Roaming")}, windows...)...)
	}
	return filepath.Join(append([]string{e.or("XDG_CONFIG_HOME", ".config")}, elements...)...)
}

// most is how many files of one directory are read.
const most = 100

// inside are the files of a directory with an extension, in the order of their
// names.
func inside(f file, extension string) []file {
	names, _ := filepath.Glob(filepath.Join(f.path, "*"+extension))
	slices.Sort(names)
	var all []file
	for _, name := range names[:min(len(names), most)] {
		one := f
		one.path = name
		all = append(all, one)
	}
	return all
}

// upwards are the directories from the root of the project, which has .git, down to
// the working directory; that one alone where there is no root.
func (e Env) upwards() []string {
	var dirs []string
	for dir := e.Dir; ; dir = filepath.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dirs
		}
		if dir == filepath.Dir(dir) {
			return []string{e.Dir}
		}
	}
}

var mcpServers = []string{"mcpServers"}

func claudeFiles(e Env) []file {
	dir := e.or("CLAUDE_CONFIG_DIR", ".claude")
	global := e.home(".claude.json")
	if set := e.Getenv("CLAUDE_CONFIG_DIR"); set != "" {
		global = filepath.Join(set, ".claude.json")
	}
	managed := e.system("/etc/claude-code", "/Library/Application Support/ClaudeCode", `C:\Program Files\ClaudeCode`)
	files := []file{
		{servers, userScope, global, clientfile.JSON, mcpServers},
		{servers, projectScope, e.dir(".mcp.json"), clientfile.JSON, mcpServers},
		{servers, localScope, global, clientfile.JSON, []string{"projects", e.Dir, "mcpServers"}},
		{rules, userScope, filepath.Join(dir, "settings.json"), clientfile.JSON, nil},
		{rules, projectScope, e.dir(".claude", "settings.json"), clientfile.JSON, nil},
		{rules, localScope, e.dir(".claude", "settings.local.json"), clientfile.JSON, nil},
		{rules, managedScope, filepath.Join(managed, "managed-settings.json"), clientfile.JSON, nil},
	}
	return append(files, inside(file{rules, managedScope, filepath.Join(managed, "managed-settings.d"), clientfile.JSON, nil}, ".json")...)
}

func cursorFiles(e Env) []file {
	return []file{
		{servers, userScope, e.home(".cursor", "mcp.json"), clientfile.JSON, mcpServers},
		{servers, projectScope, e.dir(".cursor", "mcp.json"), clientfile.JSON, mcpServers},
		{rules, userScope, e.home(".cursor", "permissions.json"), clientfile.JSON, nil},
		{rules, projectScope, e.dir(".cursor", "permissions.json"), clientfile.JSON, nil},
	}
}

func codexFiles(e Env) []file {
	key := []string{"mcp_servers"}
	files := []file{
		{servers, systemScope, e.system("/etc/codex/config.toml", "/etc/codex/config.toml", `C:\ProgramData\OpenAI\Codex\config.toml`), clientfile.TOML, key},
		{servers, userScope, filepath.Join(e.or("CODEX_HOME", ".codex"), "config.toml"), clientfile.TOML, key},
	}
	for _, dir := range e.upwards() {
		files = append(files, file{servers, projectScope, filepath.Join(dir, ".codex", "config.toml"), clientfile.TOML, key})
	}
	managed := e.system("/etc/codex/managed_config.toml", "/etc/codex/managed_config.toml", "")
	if e.GOOS == "windows" {
		managed = e.home(".codex", "managed_config.toml")
	}
	return append(files, file{servers, managedScope, managed, clientfile.TOML, key})
}

func geminiFiles(e Env) []file {
	system := e.system("/etc/gemini-cli", "/Library/Application Support/GeminiCli", `C:\ProgramData\gemini-cli`)
	override := filepath.Join(system, "settings.json")
	if set := e.Getenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH"); set != "" {
		override = set
	}
	files := []file{
		{servers, systemScope, filepath.Join(system, "system-defaults.json"), clientfile.JSON, mcpServers},
		{servers, userScope, e.home(".gemini", "settings.json"), clientfile.JSON, mcpServers},
		{servers, projectScope, e.dir(".gemini", "settings.json"), clientfile.JSON, mcpServers},
		{servers, managedScope, override, clientfile.JSON, mcpServers},
	}
	user := file{rules, userScope, e.home(".gemini", "policies"), clientfile.TOML, nil}
	project := file{rules, projectScope, e.dir(".gemini", "policies"), clientfile.TOML, nil}
	managed := file{rules, managedScope, filepath.Join(system, "policies"), clientfile.TOML, nil}
	files = append(files, inside(user, ".toml")...)
	files = append(files, inside(project, ".toml")...)
	return append(files, inside(managed, ".toml")...)
}

// opencodeFiles: of two endings of a name the later one is read later.
func opencodeFiles(e Env) []file {
	key := []string{"mcp"}
	var files []file
	add := func(scope string, paths ...string) {
		for _, path := range paths {
			files = append(files, file{servers, scope, path, clientfile.JSON, key})
		}
	}
	global := e.config(nil, "opencode")
	add(userScope, filepath.Join(global, "config.json"), filepath.Join(global, "opencode.json"), filepath.Join(global, "opencode.jsonc"))
	if set := e.Getenv("OPENCODE_CONFIG"); set != "" {
		add(userScope, set)
	}
	for _, dir := range e.upwards() {
		add(projectScope, filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc"))
	}
	for _, dir := range e.upwards() {
		add(projectScope, filepath.Join(dir, ".opencode", "opencode.json"), filepath.Join(dir, ".opencode", "opencode.jsonc"))
	}
	return files
}

func gooseFiles(e Env) []file {
	windows := []string{"Block", "goose", "config"}
	return []file{
		{servers, userScope, e.config(append(windows, "config.yaml"), "goose", "config.yaml"), clientfile.YAML, []string{"extensions"}},
		{rules, userScope, e.config(append(windows, "permission.yaml"), "goose", "permission.yaml"), clientfile.YAML, nil},
	}
}

func zedFiles(e Env) []file {
	return []file{{servers, userScope, e.config([]string{"Zed", "settings.json"}, "zed", "settings.json"), clientfile.JSON, []string{"context_servers"}}}
}

func vscodeFiles(e Env) []file {
	return []file{
		{servers, userScope, e.application("Code", "User", "mcp.json"), clientfile.JSON, []string{"servers"}},
		{servers, projectScope, e.dir(".vscode", "mcp.json"), clientfile.JSON, []string{"servers"}},
		{rules, userScope, e.application("Code", "User", "settings.json"), clientfile.JSON, nil},
	}
}

func copilotFiles(e Env) []file {
	dir := e.or("COPILOT_HOME", ".copilot")
	return []file{
		{servers, userScope, filepath.Join(dir, "mcp-config.json"), clientfile.JSON, mcpServers},
		{servers, projectScope, e.dir(".mcp.json"), clientfile.JSON, mcpServers},
		{rules, userScope, filepath.Join(dir, "permissions-config.json"), clientfile.JSON, nil},
	}
}

func clineFiles(e Env) []file {
	return []file{{servers, userScope, e.application("Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json"), clientfile.JSON, mcpServers}}
}

func kiroFiles(e Env) []file {
	return []file{
		{servers, userScope, e.home(".kiro", "settings", "mcp.json"), clientfile.JSON, mcpServers},
		{servers, projectScope, e.dir(".kiro", "settings", "mcp.json"), clientfile.JSON, mcpServers},
	}
}

// inHome is the one file of a client in the account.
func inHome(elements ...string) func(Env) []file {
	return func(e Env) []file {
		return []file{{servers, userScope, e.home(elements...), clientfile.JSON, mcpServers}}
	}
}

func desktopFiles(e Env) []file {
	return []file{{servers, userScope, e.application("Claude", "claude_desktop_config.json"), clientfile.JSON, mcpServers}}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func quoted(s string) string { return strconv.Quote(rawjson.Clip(s, 80)) }
