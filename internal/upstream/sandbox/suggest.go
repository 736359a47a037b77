package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mcpproxy/internal/upstream/pin"
	"mcpproxy/internal/upstream/process"
)

// Trial is the result of starting a server in a sandbox.
type Trial struct {
	Ready   bool   // it listed its tools
	Failure string // why it did not
	Output  string // the end of what it wrote
	Err     error  // why its sandbox could not be set up
	// Writer is a tool that changes things, and Reacher one that reaches other systems; "" if the server lists none.
	Writer, Reacher string
}

// Suggestion is a proposed sandbox of a server.
type Suggestion struct {
	Rules   Rules
	Reasons []string // why it contains each path and the network
	LeftOut []string // what it does not contain, and why
	Ready   bool     // the server listed its tools with exactly these rules
	Failure string   // why it did not; "" without a trial
	Started bool     // the server was started at least once
	Untried bool     // the server was not started with exactly these rules, because they allow more than its sandbox
}

const (
	maxTrials         = 6 // each can show another denial
	maxSuggestedPaths = 16
	maxShownWord      = 200 // bytes of a path in a reason
)

// Suggest proposes a strict sandbox for a command: from the paths and addresses in its arguments and environment, and,
// if try is not nil, from what trial runs are denied. The first one has no network, and none has more access than
// current, the sandbox of the server. It never proposes secrets, folders that contain some, folders that many
// programs share, or to write what other programs run.
func (s *System) Suggest(c process.Command, current Rules, try func(Rules) Trial) (Suggestion, error) {
	home, ok := c.Env["HOME"]
	if !ok {
		home, _ = os.UserHomeDir()
	}
	g := suggester{home: home, dir: c.Dir, secrets: secretsOf(home, s.private), Suggestion: Suggestion{Rules: Rules{Mode: Strict, Network: NoNetwork}}}
	args := c.Args
	if l, _, ok := pin.ReadLaunch(c.Name, c.Args); ok {
		args = l.Args
	}
	g.readArguments(args)
	g.readEnvironment(c.Env)
	if try == nil {
		g.allowNetwork(g.networkReason)
		return g.Suggestion, nil
	}
	if gaps := s.NotEnforced(g.Rules); len(gaps) > 0 {
		return Suggestion{}, &UnenforceableError{gaps}
	}
	if _, err := resolveLaunch(c.Name, c.Args, process.Environment(c.Env), c.Dir); err != nil {
		return Suggestion{}, err
	}
	guessed := false // the network is allowed only because the server did not start without it
	failure := ""    // of the last trial
	for range maxTrials {
		if g.Untried = !g.Rules.isWithin(current, home); g.Untried {
			g.Failure = ""
			break
		}
		t := try(g.Rules)
		if t.Err != nil {
			return Suggestion{}, t.Err
		}
		g.Started, g.Ready, g.Failure, failure = true, t.Ready, t.Failure, t.Failure
		changed := g.addDenials(t.Output)
		switch {
		case !t.Ready && !changed && g.Rules.Network == NoNetwork:
			guessed = g.networkReason == ""
			if guessed {
				g.networkReason = "the server did not start without one"
			}
			changed = g.allowNetwork(g.networkReason)
		case t.Ready:
			if t.Reacher != "" && g.networkReason == "" {
				g.networkReason = "its tool " + t.Reacher + " reaches other systems"
			}
			changed = g.allowNetwork(g.networkReason) || changed
			changed = t.Writer != "" && g.writeNamed(t.Writer) || changed
		}
		if !changed {
			break
		}
		g.Ready = false // not known for the new rules
	}
	if guessed && !g.Ready {
		g.Rules.Network = NoNetwork
		if g.Untried && g.Rules.isWithin(current, home) { // the last trial was with these rules
			g.Untried, g.Failure = false, failure
		}
		g.Reasons = slices.DeleteFunc(g.Reasons, func(r string) bool { return strings.HasPrefix(r, "network: ") })
	}
	return g.Suggestion, nil
}

type suggester struct {
	Suggestion
	home, dir string
	secrets   []string
	// networkReason is why the server needs a network; "" if nothing says so.
	networkReason string
	named         []namedPath // in its arguments and environment
}

// namedPath is a path that the launch of a server names for its data.
type namedPath struct{ path, from string }

var (
	networkURL   = regexp.MustCompile(`^(?:https?|wss?|postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|nats|ldaps?|ssh|s3)://`)
	fileURL      = regexp.MustCompile(`^(?:file|sqlite)://`)
	serviceToken = regexp.MustCompile(`(?i)(?:^|_)(?:token|pat|api_?key|access_key|secret|password|dsn)$`)
	// settingName matches names of flags and variables whose paths a server only reads.
	settingName = regexp.MustCompile(`(?i)config|settings|schema|cert|credential|exec|browser|command|(?:^|[-_])(?:ca|key)(?:$|[-_])|^(?:NODE|PYTHON|LD|JAVA|SSL)_?[A-Z]*$`)
	// ownVariable matches variables of shells, package managers and runtimes.
	ownVariable = regexp.MustCompile(`(?i)^(?:PATH|HOME|SHELL|PWD|TMPDIR|TMP|TEMP|XDG_.*|npm_config_.*|UV_.*|PIP_.*)$`)
	script      = regexp.MustCompile(`\.(?:[cm]?[jt]s|py)$`)
)

// readArguments finds paths and addresses in the arguments of a server.
func (g *suggester) readArguments(args []string) {
	flag := ""
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch isFlag := strings.HasPrefix(arg, "-"); {
		case isFlag && joined:
			g.readWord(name, "the argument "+name, value)
			flag = ""
		case isFlag:
			flag = arg
		default:
			if i > 0 && flag == "" || !script.MatchString(arg) {
				g.readWord(flag, "the argument "+clip(arg), arg)
			}
			flag = ""
		}
	}
}

// readEnvironment finds paths, addresses and credentials of services in the environment of a server.
func (g *suggester) readEnvironment(env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if ownVariable.MatchString(name) {
			continue
		}
		g.readWord(name, "the variable "+name, env[name])
		if serviceToken.MatchString(name) && g.networkReason == "" && !filepath.IsAbs(env[name]) {
			g.networkReason = "the variable " + name + " is the credential of a service"
		}
	}
}

// readWord reads the value of a flag or a variable.
func (g *suggester) readWord(name, from, value string) {
	if networkURL.MatchString(value) {
		if g.networkReason == "" {
			g.networkReason = from + " is an address"
		}
		return
	}
	if rest := fileURL.ReplaceAllString(value, ""); rest != value {
		value = rest
	}
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		value = filepath.Join(g.home, rest)
	}
	if !filepath.IsAbs(value) && g.dir != "" && strings.ContainsRune(value, '/') && exists(filepath.Join(g.dir, value)) {
		value = filepath.Join(g.dir, value)
	}
	if all := filepath.SplitList(value); len(all) > 1 && !slices.ContainsFunc(all, func(p string) bool { return !filepath.IsAbs(p) }) {
		for _, p := range all {
			g.readWord(name, from, p)
		}
		return
	}
	if !filepath.IsAbs(value) {
		return
	}
	path := filepath.Clean(value)
	switch parent := filepath.Dir(path); {
	case slices.ContainsFunc(systemFolders, func(s string) bool { return isWithin(path, s) }): // readable already
	case exists(path):
		if g.allow(&g.Rules.Read, "read", path, from) && !settingName.MatchString(name) {
			g.named = append(g.named, namedPath{path, from})
		}
	case exists(parent) && parent != "/": // a file that the server will make
		g.allow(&g.Rules.Write, "write", parent, from+" is in it, and does not exist yet")
	}
}

// writeNamed moves the named paths from read to write, because a tool changes things.
func (g *suggester) writeNamed(tool string) (changed bool) {
	for _, n := range g.named {
		path, why := n.path, n.from+", and its tool "+tool+" changes things"
		if info, err := os.Stat(path); err == nil && !info.IsDir() && g.objection("write", filepath.Dir(path)) == "" {
			path = filepath.Dir(path) // a database makes other files next to its own
		}
		changed = g.allow(&g.Rules.Write, "write", path, why) || changed
	}
	g.named = nil
	return changed
}

func (g *suggester) allowNetwork(why string) bool {
	if why == "" || g.Rules.Network == AllNetwork {
		return false
	}
	g.Rules.Network = AllNetwork
	g.Reasons = append(g.Reasons, "network: "+why)
	return true
}

// allow adds a path to the rules, unless they contain it or something is against it.
func (g *suggester) allow(list *[]string, key, path, why string) bool {
	if slices.ContainsFunc(slices.Concat(g.Rules.Write, *list), func(p string) bool { return isWithin(path, p) }) {
		return false
	}
	against := g.objection(key, path)
	if against == "" && len(g.Rules.Read)+len(g.Rules.Write) >= maxSuggestedPaths {
		against = "there are too many paths"
	}
	if against != "" {
		g.leaveOut(key + " " + clip(path) + ", because " + against + " (" + why + ")")
		return false
	}
	*list = append(*list, path)
	if key == "write" {
		g.Rules.Read = slices.DeleteFunc(g.Rules.Read, func(p string) bool { return isWithin(p, path) })
		g.Reasons = slices.DeleteFunc(g.Reasons, func(r string) bool { return strings.HasPrefix(r, "read "+clip(path)+": ") })
	}
	g.Reasons = append(g.Reasons, key+" "+clip(path)+": "+why)
	return true
}

func (g *suggester) leaveOut(what string) {
	if !slices.Contains(g.LeftOut, what) && len(g.LeftOut) < maxSuggestedPaths {
		g.LeftOut = append(g.LeftOut, what)
	}
}

// sharedFolders are folders that many programs use.
var sharedFolders = []string{"/", "/tmp", "/var", "/var/tmp", "/var/lib", "/home", "/run", "/mnt", "/media", "/srv", "/etc", "/boot", "/root"}

// Files and folders that other programs run, or read when they start. A server that can write there runs without its
// sandbox the next time. The first are relative to the home folder, and not in secrets.txt; a * at the end matches any rest of the name.
var (
	startupPaths = []string{
		".bash*", ".profile", ".zsh*", ".zprofile", ".zlog*", ".oh-my-zsh", ".config/zsh", ".config/fish", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".pam_environment",
		".xprofile", ".xinitrc", ".xsession*", ".xsessionrc", ".config/autostart*", ".config/systemd", ".config/plasma-workspace", ".config/i3", ".config/sway", ".config/hypr",
		".local/bin", ".local/lib", ".local/share/systemd", ".local/share/applications", ".local/share/dbus-1", "bin", "go/bin", ".cargo", ".rustup", ".nvm", ".npm-global", ".pyenv", ".rbenv", ".bun", ".deno", ".volta",
		".vscode*", ".cursor*", ".config/nvim", ".local/share/nvim", ".vim*", ".emacs*", ".config/emacs", ".gitconfig", ".config/git",
		"Library/LaunchAgents",
	}
	startupFolders = []string{"/var/spool/cron", "/var/spool/at", "/Library/LaunchAgents", "/Library/LaunchDaemons"}
	// startupNames are names of folders anywhere, such as in a repository.
	startupNames = []string{".git", ".githooks", ".husky", ".vscode", ".idea", ".cursor"}
)

// isStartup reports whether path is, or contains, something that other programs run or read when they start.
func (g *suggester) isStartup(path string) bool {
	isIn := func(s string) bool {
		prefix, isPrefix := strings.CutSuffix(s, "*")
		return isWithin(path, s) || isPrefix && strings.HasPrefix(path, prefix) || isWithin(prefix, path)
	}
	names := strings.Split(path, "/")
	for i, name := range names {
		if slices.Contains(startupNames, name) || name == "hooks" && exists(filepath.Join(strings.Join(names[:i], "/"), "HEAD")) { // of a bare repository
			return true
		}
	}
	return slices.ContainsFunc(startupFolders, isIn) || g.home != "" && slices.ContainsFunc(startupPaths, func(s string) bool { return isIn(filepath.Join(g.home, s)) })
}

// objection tells why a path is not proposed; "" if nothing is against it.
func (g *suggester) objection(key, path string) string {
	all := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		all = append(all, real)
	}
	for _, p := range all {
		switch {
		case slices.ContainsFunc(g.secrets, func(s string) bool { return isWithin(p, s) }):
			return "it is a secret, or belongs to MCPProxy"
		case g.home != "" && isWithin(g.home, p):
			return "it contains the home folder"
		case slices.ContainsFunc(g.secrets, func(s string) bool { return isWithin(s, p) }):
			return "it contains secrets"
		case slices.Contains(sharedFolders, p):
			return "many programs share it"
		case slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(s string) bool { return isWithin(p, s) }),
			key == "write" && slices.ContainsFunc(append([]string{"/etc", "/boot"}, systemFolders...), func(s string) bool { return isWithin(p, s) }):
			return "it belongs to the system"
		case key == "write" && g.isStartup(p):
			return "other programs run or read its files when they start"
		}
	}
	return ""
}

// denials match errors of programs about files: those of node, of Python, and of Go, C and shells.
var denials = []*regexp.Regexp{
	regexp.MustCompile(`\b(?P<error>EACCES|EPERM|EROFS)\b[^\n']*'(?P<path>/[^'\n]+)'`),
	regexp.MustCompile(`\[Errno (?P<error>13|1|30)\][^\n'"]*['"](?P<path>/[^'"\n]+)['"]`),
	regexp.MustCompile(`(?P<path>/[^\s:'"]+)['"]?: (?P<error>(?i:permission denied|operation not permitted|read-only file system))`),
}

var (
	noNetworkError = regexp.MustCompile(`EAI_AGAIN|ENOTFOUND|EAFNOSUPPORT|ENETUNREACH|getaddrinfo|(?i:address family not supported|name resolution|network is unreachable|socket: (?:operation not permitted|permission denied))|(?:connect|listen|bind) E(?:PERM|ACCES)|socket\.socket[^\n]*\n[^\n]*\[Errno 1\]`)
	writeError     = regexp.MustCompile(`(?i)EROFS|^30$|read-only`)
	writeCall      = regexp.MustCompile(`\b(?:mkdir|unlink|rename|rmdir|symlink|ftruncate|copyfile)\b`)
	// privateFile matches a file in the private temporary folder, which is the home folder of the server.
	privateFile = regexp.MustCompile(`/mcpproxy-sandbox-\d+/([^\s:'"]+)`)
)

// addDenials adds what a trial was denied, and reports whether that changed the rules.
func (g *suggester) addDenials(output string) (changed bool) {
	for _, pattern := range denials {
		for _, m := range pattern.FindAllStringSubmatch(output, -1) {
			path, code := filepath.Clean(m[pattern.SubexpIndex("path")]), m[pattern.SubexpIndex("error")]
			readable := slices.ContainsFunc(g.Rules.Read, func(p string) bool { return isWithin(path, p) })
			if !writeError.MatchString(code) && !writeCall.MatchString(m[0]) && !readable && exists(path) {
				changed = g.allow(&g.Rules.Read, "read", path, "a trial run was denied it") || changed
				continue
			}
			if info, err := os.Stat(path); err != nil || !info.IsDir() { // files are often replaced, which needs the folder
				path = filepath.Dir(path)
			}
			if exists(path) {
				changed = g.allow(&g.Rules.Write, "write", path, "a trial run was denied it") || changed
			}
		}
	}
	for _, m := range privateFile.FindAllStringSubmatch(output, -1) {
		if path := filepath.Join(g.home, m[1]); exists(path) && g.objection("read", path) == "" {
			g.leaveOut("read " + clip(path) + ", because HOME is a private folder in a strict sandbox: to use the file, also set HOME in env (the server looked for it)")
		}
	}
	if g.Rules.Network == NoNetwork && noNetworkError.MatchString(output) {
		if g.networkReason == "" {
			g.networkReason = "a trial run without one had an error"
		}
		changed = g.allowNetwork(g.networkReason) || changed
	}
	return changed
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// clip shortens a word for a reason.
func clip(word string) string {
	if len(word) > maxShownWord {
		return strings.ToValidUTF8(word[:maxShownWord], "") + "…"
	}
	return word
}
