package registry

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/dialpolicy"
)

// runner is how packages of a kind are started.
type runner struct {
	command string
	hints   []string // names of the runner in entries
	base    []string // base URLs of the registry; others are refused
	args    []string
	single  []string // accepted runtime arguments
	name    *regexp.Regexp
	version *regexp.Regexp
}

var runners = map[string]runner{
	"npm": {command: "npx", hints: []string{"", "npx"}, base: []string{"", "https://registry.npmjs.org"}, args: []string{"-y"}, single: []string{"-y", "--yes", "-q", "--quiet"},
		name: regexp.MustCompile(`^(@[A-Za-z0-9][A-Za-z0-9._~-]*/)?[A-Za-z0-9][A-Za-z0-9._~-]*$`), version: regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)},
	"pypi": {command: "uvx", hints: []string{"", "uvx"}, base: []string{"", "https://pypi.org", "https://pypi.org/simple"}, single: []string{"-q", "--quiet", "--isolated"},
		name: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`), version: regexp.MustCompile(`^[0-9]+(\.[0-9]+)*[0-9A-Za-z.+!_-]*$`)},
	"oci": {command: "docker", hints: []string{"", "docker"}, base: []string{"", "https://docker.io", "https://ghcr.io"}, args: []string{"run", "-i", "--rm"},
		single: []string{"run", "-i", "--interactive", "--rm", "--init", "--read-only"},
		name:   regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)},
}

// interpreter matches the names that uvx takes for an interpreter of Python, and not for a package.
var interpreter = regexp.MustCompile(`(?i)^(pythonw?|python[0-9].*|(cpython|pypy|graalpy|pyodide).*|(cp|pp|gp)[0-9.]+t?)$`)

// buildPackage builds the command of a package.
func (b *builder) buildPackage(p Package) {
	r, known := runners[p.RegistryType]
	switch {
	case !known:
		b.fail("MCPProxy starts packages of the kinds npm, pypi and oci only")
	case p.Transport.Type != "" && p.Transport.Type != "stdio":
		b.fail("the package starts an HTTP server of its own: start it yourself, and add its address with --url")
	case !slices.Contains(r.base, strings.TrimSuffix(p.RegistryBaseURL, "/")):
		b.fail("the package is in another registry than the public one")
	case !slices.Contains(r.hints, p.RuntimeHint) && len(p.RuntimeArguments) > 0:
		b.fail("its runtime arguments are for another program than %s", r.command)
	case p.FileSHA256 != "":
		b.fail("the entry has a SHA-256 of the package file, which MCPProxy cannot verify for this kind")
	case len(p.Identifier) > 300 || !r.name.MatchString(p.Identifier) || p.RegistryType == "pypi" && interpreter.MatchString(p.Identifier):
		b.fail("the name of the package is not allowed")
	case p.RegistryType != "oci" && (len(p.Version) > 100 || !r.version.MatchString(p.Version)):
		b.fail("the package has no exact version")
	}
	if b.err != nil {
		return
	}
	name := p.Identifier + "@" + p.Version
	if p.RegistryType == "oci" {
		if name = p.Identifier; strings.LastIndexByte(name, ':') <= strings.LastIndexByte(name, '/') { // no tag and no digest
			if name += ":" + p.Version; p.Version == "" || !r.name.MatchString(name) {
				b.fail("the image has no tag")
			}
		}
	}
	runtime := b.checkRuntime(p.RegistryType, b.arguments(p.RuntimeArguments))
	b.launch.Command, b.launch.Args = r.command, append(slices.Clone(r.args), runtime...)
	for _, v := range p.EnvironmentVariables {
		b.addVariable(p.RegistryType, v)
	}
	b.launch.Args = append(append(b.launch.Args, name), b.arguments(p.PackageArguments)...)
}

// runnerVariables are variables that change what a runner, an interpreter or docker loads, starts or contacts;
// harmlessVariables are those of them that do not.
var (
	runnerVariables = regexp.MustCompile(`(?i)^(PATH|PATHEXT|HOME|HOMEDRIVE|HOMEPATH|USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAMDATA|COMSPEC|SYSTEMROOT|WINDIR|SHELL|TMPDIR|TMP|TEMP|PREFIX|IFS|ENV|BASH_ENV|BASHOPTS|SHELLOPTS|PS4|PROMPT_COMMAND` +
		`|(LD|DYLD|XDG|GCONV|GLIBC|MALLOC)_.*|LOCPATH|HOSTALIASES|GODEBUG|((HTTPS?|FTP|ALL|NO)_?)?PROXY|(SSL|OPENSSL)_.*|SSLKEYLOGFILE|(REQUESTS|CURL)_CA_BUNDLE|CURL_HOME` +
		`|(DOCKER|BUILDKIT|BUILDX|COMPOSE|MOBY|CONTAINERS)_.*|CONTAINER_(HOST|CONNECTION|SSHKEY|TLS.*|PROXY)|REGISTRY_AUTH_FILE|SSH_(AUTH_SOCK|ASKPASS.*|AGENT_PID)|GIT_.*` +
		`|(NODE|NPM|NPX|YARN|PNPM|BUN|DENO|COREPACK)_.*|ELECTRON_RUN_AS_NODE|(PYTHON|UV|UVX|PIP|PIPX|CONDA)_.*|PYTHON[A-Z0-9]*|VIRTUAL_ENV|(JAVA|JDK|_JAVA|PERL|RUBY|GEM|BUNDLE)_.*|CLASSPATH|PERL5.*|RUBY(OPT|LIB))$`)
	harmlessVariables = regexp.MustCompile(`^(NODE_ENV|NPM_TOKEN|PYTHON(UNBUFFERED|IOENCODING|UTF8)|GIT_(TOKEN|USER|USERNAME|PASSWORD|(AUTHOR|COMMITTER)_(NAME|EMAIL)))$`)
	environmentName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// changesRunner reports whether a variable may not be in the environment of a runner.
func changesRunner(name string) bool {
	return runnerVariables.MatchString(name) && !harmlessVariables.MatchString(name)
}

// addVariable sets a variable. A container gets a fixed value as an argument, because the environment is that of docker
// itself; a value of the user stays there, so that no command line has a secret.
func (b *builder) addVariable(kind string, v Parameter) {
	if !environmentName.MatchString(v.Name) {
		b.fail("it has a name that is not allowed")
		return
	}
	b.ofUser = false
	values := b.resolve("env", v.Name, v)
	inEnv := kind != "oci" || b.ofUser
	if changesRunner(v.Name) && (inEnv && (len(values) > 0 || v.Value != "") || v.IsRequired && len(values) == 0) {
		if len(b.values.Given[v.Name]) > 0 {
			b.fail("%s cannot have a value of yours, because it changes what %s loads or contacts", v.Name, runners[kind].command)
		}
		b.fail("it sets the variable %s, which changes what %s loads or contacts", v.Name, runners[kind].command)
	}
	for _, value := range values {
		if !inEnv {
			b.launch.Args = append(b.launch.Args, "-e", v.Name+"="+value)
			continue
		}
		if b.launch.Env == nil {
			b.launch.Env = map[string]string{}
		}
		if b.launch.Env[v.Name] = value; kind == "oci" {
			b.launch.Args = append(b.launch.Args, "-e", v.Name)
		}
	}
}

// arguments returns the words of arguments. --flag has its value behind =, and -f in the next word.
func (b *builder) arguments(all []Parameter) (words []string) {
	for i, p := range all {
		name := p.Name
		switch {
		case p.Type == "positional":
			name = cmp.Or(p.ValueHint, "argument"+string(rune('1'+min(i, 8))))
		case p.Type != "named" || !strings.HasPrefix(name, "-") || strings.Contains(name, "="):
			b.fail("it has an argument that is neither positional nor a flag")
			return nil
		}
		if p.Type == "named" && p.Value == "" && p.Default == "" && !p.IsRequired && p.Format != "filepath" && p.ValueHint == "" && len(p.Choices) == 0 && p.Description == "" && !p.IsSecret {
			words = append(words, b.literal(name)) // a flag without a value
			continue
		}
		for _, value := range b.resolve("argument", name, p) {
			switch {
			case p.Type == "positional":
				words = append(words, value)
			case p.Format == "boolean" && value == "true":
				words = append(words, name)
			case p.Format == "boolean" && value == "false":
			case strings.HasPrefix(name, "--"):
				words = append(words, name+"="+value)
			default:
				words = append(words, name, value)
			}
		}
	}
	return words
}

var (
	dockerVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(=.*)?$`)
	pythonVersion  = regexp.MustCompile(`^3(\.[0-9]+){0,2}$`)
)

// checkRuntime returns the accepted arguments of a runner, without those that it has anyway. Other arguments could grant
// access, or start something else.
func (b *builder) checkRuntime(kind string, words []string) (out []string) {
	r := runners[kind]
	for i := 0; i < len(words); i++ {
		name, value, joined := strings.Cut(words[i], "=")
		takes := func() string {
			if !joined && i+1 < len(words) {
				i++
				return words[i]
			}
			return value
		}
		switch {
		case !joined && slices.Contains(r.single, name):
			if !slices.Contains(r.args, name) && !slices.Contains([]string{"run", "--yes", "--interactive"}, name) {
				out = append(out, name)
			}
			continue
		case kind == "pypi" && name == "--python":
			if v := takes(); pythonVersion.MatchString(v) {
				out = append(out, name, v)
				continue
			}
		case kind == "oci" && (name == "-e" || name == "--env"):
			if v := takes(); dockerVariable.MatchString(v) {
				out = append(out, "-e", v)
				continue
			}
		case kind == "oci" && name == "--network":
			if v := takes(); v == "none" || v == "bridge" {
				out = append(out, name, v)
				continue
			}
		case kind == "oci" && (name == "-v" || name == "--volume" || name == "--mount"):
			if v := takes(); b.isMountOfUser(name, v) {
				out = append(out, name, v)
				continue
			}
		}
		if len(b.missing) == 0 || kind != "oci" {
			b.fail("the runtime argument %.60q is not accepted, because it can grant access or start something else", words[i])
		}
		return nil
	}
	return out
}

// isMountOfUser reports whether a mount of docker is of a folder that the user has named.
func (b *builder) isMountOfUser(flag, value string) bool {
	source, plain := "", true
	if flag == "--mount" {
		for _, part := range strings.Split(value, ",") {
			switch key, v, _ := strings.Cut(part, "="); key {
			case "type":
				plain = plain && v == "bind"
			case "src", "source":
				source = v
			case "dst", "destination", "target", "readonly", "ro":
			default:
				plain = false
			}
		}
	} else {
		source, _, _ = strings.Cut(value, ":")
	}
	for _, given := range b.values.Given {
		if plain && slices.Contains(given, source) && strings.HasPrefix(source, "/") {
			return true
		}
	}
	return false
}

// buildRemote builds the address of a remote server.
func (b *builder) buildRemote(t Transport) {
	if t.Type != "streamable-http" && t.Type != "sse" {
		b.fail("its transport is neither streamable-http nor sse")
		return
	}
	rest, ok := strings.CutPrefix(t.URL, "https://")
	if !ok {
		b.fail("its address does not begin with https://")
		return
	}
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	hostEnd := len("https://") + len(host)
	for _, text := range placeholder.FindAllString(t.URL, -1) {
		if _, declared := t.Variables[strings.Trim(text, "{}")]; !declared {
			b.fail("its address has the variable %s, which the entry does not declare", text)
			return
		}
	}
	for _, address := range b.fill(t.URL, t.Variables, false, func(at int, value string) string {
		switch {
		case at < hostEnd && !hostLabel.MatchString(value):
			b.fail("a variable in the host of its address must be one label: letters, digits and dashes")
		case strings.HasPrefix(value, "${"):
			return value // a secret of the path or the query, which is resolved when the server starts
		}
		return url.PathEscape(value)
	}) {
		b.checkAddress(address)
		b.launch.URL = address
	}
	for _, h := range t.Headers {
		for _, value := range b.resolve("header", h.Name, h) {
			if b.launch.Headers == nil {
				b.launch.Headers = map[string]string{}
			}
			b.launch.Headers[h.Name] = value
		}
	}
	if b.launch.URL == "" && b.values.Given == nil {
		b.launch.URL = b.literal(t.URL) // to show it
	}
}

var hostLabel = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// checkAddress accepts an address of a public host. Names are resolved, and checked again, when they are dialled.
func (b *builder) checkAddress(address string) {
	u, err := url.Parse(strings.ReplaceAll(address, "${", "$("))
	switch {
	case err != nil || u.Hostname() == "":
		b.fail("its address is not a URL")
	case u.User != nil:
		b.fail("its address has a user name or password")
	case u.Fragment != "":
		b.fail("its address has a fragment")
	case u.Port() != "" && u.Port() != "443" && u.Port() != "8443":
		b.fail("its address has a port other than 443 and 8443")
	case dialpolicy.IsLoopbackHost(u.Hostname()) || !strings.Contains(u.Hostname(), ".") && !strings.Contains(u.Hostname(), ":"):
		b.fail("its address is not a public host")
	default:
		if addr, err := netip.ParseAddr(u.Hostname()); err == nil && (dialpolicy.Policy{}).CheckAddr(addr) != nil || isOddAddress(u.Hostname()) {
			b.fail("its address is not a public host")
		}
	}
}

// isOddAddress reports whether a host is a number in another form than netip reads, such as 0x7f.1, or a name of
// private networks.
func isOddAddress(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, err := netip.ParseAddr(host); err != nil && last != "" && last[0] >= '0' && last[0] <= '9' {
		return true
	}
	return slices.Contains([]string{"localhost", "local", "internal", "localdomain", "lan", "home", "arpa"}, last)
}
