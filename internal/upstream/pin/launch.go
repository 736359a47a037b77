package pin

import (
	"path"
	"slices"
	"strings"
)

// Launch is a launch by npx, uvx or docker. ReadLaunch sets all fields but Name and Wanted.
type Launch struct {
	Kind   Kind
	Name   string // of the package or image
	Wanted string // the requested version, range or tag; "" if none
	// Packages are the packages or the image, as the command names them. Only npx takes more than one.
	Packages []string
	// Runner is the program with the words before its flags, such as npx or docker run.
	Runner []string
	Flags  []string // flags of the runner, without those that name the package
	Bin    string   // the program of the package; "" if the command does not name it
	Args   []string // arguments of the server
}

// runnerFlags are the flags of a runner. A flag in neither list makes the launch one that cannot be pinned, because its
// value could be mistaken for the package.
type runnerFlags struct{ single, valued, pkg []string }

var flagsOf = map[Kind]runnerFlags{
	NPM: {single: []string{"-y", "--yes", "-q", "--quiet", "--silent", "--prefer-offline", "--prefer-online", "--offline", "--ignore-scripts"},
		valued: []string{"--registry", "--cache", "--loglevel", "--userconfig"}, pkg: []string{"-p", "--package"}},
	PyPI: {single: []string{"-q", "--quiet", "--offline", "--isolated", "--no-progress", "--native-tls", "--refresh", "--no-cache", "-n"},
		valued: []string{"--python", "-p", "--with", "--index", "--default-index", "--index-url", "-i", "--extra-index-url", "--cache-dir", "--prerelease", "--env-file", "--constraints", "--overrides"}, pkg: []string{"--from"}},
	Docker: {single: []string{"-i", "-t", "-it", "-ti", "--interactive", "--tty", "--rm", "--init", "--privileged", "--read-only", "-d", "--detach", "-q", "--quiet"},
		valued: []string{"-e", "--env", "--env-file", "-v", "--volume", "--mount", "--tmpfs", "-p", "--publish", "--name", "--network", "--net", "-w", "--workdir", "-u", "--user", "--entrypoint",
			"-m", "--memory", "--cpus", "--platform", "--pull", "-l", "--label", "--add-host", "--cap-add", "--cap-drop", "--security-opt", "--gpus", "--device", "-h", "--hostname", "--ulimit", "--shm-size", "--runtime", "--pids-limit", "--dns", "--log-driver"}},
}

// FindLaunch reads a command that starts one package of a registry. why tells why it cannot be pinned; it is "" if the
// command starts no package.
func FindLaunch(command string, args []string) (l Launch, why string, ok bool) {
	if l, why, ok = ReadLaunch(command, args); !ok {
		return l, why, false
	}
	if len(l.Packages) > 1 {
		return l, "it names several packages", false
	}
	if why = l.readPackage(l.Packages[0]); why != "" {
		return l, why, false
	}
	return l, "", true
}

// ReadLaunch reads the words of a command. why tells why they are not clear; it is "" if the command starts no package.
// It does not read the names of the packages.
func ReadLaunch(command string, args []string) (l Launch, why string, ok bool) {
	words := append([]string{command}, args...)
	if len(words) > 2 && ProgramName(words[0]) == "cmd" && strings.EqualFold(words[1], "/c") {
		words = words[2:]
	}
	rest := words[1:]
	switch name := ProgramName(words[0]); {
	case name == "npx":
		l = Launch{Kind: NPM, Runner: words[:1]}
	case name == "uvx":
		l = Launch{Kind: PyPI, Runner: words[:1]}
	case (name == "docker" || name == "podman") && len(rest) > 0 && rest[0] == "run":
		l, rest = Launch{Kind: Docker, Runner: words[:2]}, rest[1:]
	default:
		return l, "", false
	}
	if rest, why = l.readFlags(rest); why != "" {
		return l, why, false
	}
	named := len(l.Packages) > 0
	switch {
	case len(rest) > 0 && named:
		l.Bin, l.Args = rest[0], rest[1:]
	case len(rest) > 0:
		l.Packages, l.Args = rest[:1], rest[1:]
	case !named:
		return l, "the command names no package", false
	}
	if l.Kind == PyPI && l.Bin == "" {
		name, _, _ := splitPyPI(l.Packages[0])
		l.Bin = withoutExtras(name)
	}
	return l, "", true
}

// readFlags reads the flags of the runner, and the packages that flags name.
func (l *Launch) readFlags(words []string) (rest []string, why string) {
	known := flagsOf[l.Kind]
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "-") {
			return words[i:], ""
		}
		if word == "--" {
			return words[i+1:], ""
		}
		name, value, joined := strings.Cut(word, "=")
		needsValue := slices.Contains(known.valued, name) || slices.Contains(known.pkg, name)
		if needsValue && !joined {
			if i++; i == len(words) {
				return nil, "the flag " + name + " has no value"
			}
			value = words[i]
		}
		switch {
		case slices.Contains(known.pkg, name):
			l.Packages = append(l.Packages, value)
		case needsValue && !joined:
			l.Flags = append(l.Flags, name, value)
		case needsValue || slices.Contains(known.single, name):
			l.Flags = append(l.Flags, word)
		default:
			return nil, "MCPProxy does not know the flag " + name
		}
	}
	return nil, ""
}

// readPackage reads the name and the requested version of a package.
func (l *Launch) readPackage(pkg string) (why string) {
	l.Name = pkg
	switch l.Kind {
	case NPM:
		l.Name, l.Wanted, why = SplitNPM(pkg)
	case PyPI:
		l.Name, l.Wanted, why = splitPyPI(pkg)
	case Docker:
		if strings.Contains(pkg, "@") {
			return "the image has a digest already"
		}
		if at := strings.LastIndexByte(pkg, ':'); at > strings.LastIndexByte(pkg, '/') {
			l.Name, l.Wanted = pkg[:at], pkg[at+1:]
		}
	}
	if why == "" && (l.Name == "" || l.Name[0] == '-' || strings.ContainsAny(pkg, "$#\x00\r\n\t ")) {
		why = "the command names no package"
	}
	return why
}

// SplitNPM returns the name and the requested version of a package of npm. why tells why it is not from a registry.
func SplitNPM(spec string) (name, version, why string) {
	name = spec
	if at := strings.LastIndexByte(spec, '@'); at > 0 {
		name, version = spec[:at], spec[at+1:]
	}
	if strings.ContainsAny(name, ":\\") || name != "" && strings.ContainsRune("./~", rune(name[0])) || strings.Count(name, "/") > 1 ||
		strings.Contains(name, "/") && name[0] != '@' || strings.ContainsAny(version, ":/") {
		why = "the package is not from an npm registry"
	}
	return name, version, why
}

// splitPyPI returns the name, with extras, and the requested version of a Python package.
func splitPyPI(spec string) (name, version, why string) {
	name, version, exact := strings.Cut(spec, "==")
	if !exact {
		name, version, _ = strings.Cut(spec, "@")
	}
	if version == "latest" {
		version = ""
	}
	if strings.ContainsAny(name, "/:<>~!; ") || strings.ContainsAny(version, "/:,*") || strings.HasPrefix(name, ".") {
		why = "the package is not one version from a Python index"
	}
	return name, version, why
}

func withoutExtras(name string) string { name, _, _ = strings.Cut(name, "["); return name }

// ProgramName returns the base name of a program without a Windows extension.
func ProgramName(file string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(file, `\`, "/")))
	for _, kind := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, kind)
	}
	return name
}

// Flag returns the value of the last of these flags; "" if there is none.
func (l *Launch) Flag(names ...string) (value string) {
	for i, word := range l.Flags {
		name, joined, is := strings.Cut(word, "=")
		switch {
		case !slices.Contains(names, name):
		case is:
			value = joined
		case i+1 < len(l.Flags):
			value = l.Flags[i+1]
		}
	}
	return value
}
