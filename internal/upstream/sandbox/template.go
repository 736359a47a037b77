package sandbox

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/upstream/pin"
	"mcpproxy/internal/upstream/process"
)

// launch contains the program that a command runs, and the paths that it must read in addition to the system folders.
type launch struct {
	program string // absolute
	args    []string
	reads   []string
	install []string // a command that makes the package available; nil if it is
	// npmFolder is the folder with the package-lock.json of a package that npx runs.
	npmFolder string
}

// probeTimeout limits a run of an interpreter that reports where it is installed.
const probeTimeout = 10 * time.Second

// resolveLaunch returns what a command runs. env and dir are those of the server.
func resolveLaunch(command string, args, env []string, dir string) (launch, error) {
	program := findProgram(command, env, dir)
	if program == "" {
		return launch{}, errNotResolved("the command %s is not found", command)
	}
	switch l, why, ok := pin.ReadLaunch(command, args); {
	case l.Kind == pin.Docker || len(l.Runner) > 0 && l.Runner[0] != command: // cmd /c npx
	case why != "":
		return launch{}, errNotResolved(`the command cannot run in a sandbox: %s. Change it, or start the installed program itself`, why)
	case ok && l.Kind == pin.NPM:
		return npxLaunch(program, l, env)
	case ok:
		return uvxLaunch(program, l, env, dir)
	}
	if runner := process.DetectRunner(command, args); runner.Name != "" {
		return launch{}, errNotResolved(`%s installs or starts the server elsewhere. Use npx or uvx as the command, name the installed program itself, or set sandbox.mode to "container"`, runner.Name)
	}
	return programLaunch(program, args, env, dir)
}

// programLaunch returns the launch of a program that is installed.
func programLaunch(program string, args, env []string, dir string) (launch, error) {
	switch name := pin.ProgramName(program); {
	case name == "node":
		return nodeLaunch(program, args, env, dir)
	case strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy"):
		return pythonLaunch(program, args, env, dir)
	}
	l := launch{program: program, args: args, reads: installationOf(program)}
	interpreter := shebang(program)
	if len(interpreter) == 0 {
		return l, nil
	}
	words := interpreter[1:]
	name := interpreter[0]
	if filepath.Base(name) == "env" {
		words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, "=") })
		if len(words) == 0 {
			return l, nil
		}
		name, words = words[0], words[1:]
	}
	found := findProgram(name, env, dir)
	if found == "" {
		return launch{}, errNotResolved("%s needs %s, which is not found", program, name)
	}
	inner, err := programLaunch(found, slices.Concat(words, []string{program}, args), env, dir)
	inner.reads = append(inner.reads, l.reads...)
	return inner, err
}

// findProgram returns the absolute path of a command; "" if it is not found.
func findProgram(command string, env []string, dir string) string {
	if strings.ContainsRune(command, '/') && !filepath.IsAbs(command) {
		command = filepath.Join(dir, command)
	}
	found := process.FindCommand(command, pin.Variable(env, "PATH"))
	if found == "" {
		return ""
	}
	if abs, err := filepath.Abs(found); err == nil {
		return abs
	}
	return ""
}

// shebang returns the words of the first line of a script, without "#!"; nil for other files.
func shebang(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 512).ReadSlice('\n')
	text, ok := strings.CutPrefix(string(line), "#!")
	if !ok {
		return nil
	}
	return strings.Fields(text)
}

// installationOf returns what a program needs of its own installation: its files, and the folder above bin if that
// belongs to this program.
func installationOf(program string) []string {
	reads := []string{program}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return reads
	}
	reads = append(reads, real)
	if dir := filepath.Dir(real); filepath.Base(dir) == "bin" && isInstallation(filepath.Dir(dir)) {
		reads = append(reads, filepath.Dir(dir))
	}
	return reads
}

// isInstallation reports whether a folder belongs to one program. The home folder and the folders that many programs
// share do not.
func isInstallation(dir string) bool {
	home, _ := os.UserHomeDir()
	shared := []string{"/", "/usr", "/usr/local", home, filepath.Join(home, ".local"), filepath.Join(home, "go")}
	return !slices.Contains(shared, dir) && !isWithin(home, dir)
}

// projectOf returns the folder of the project that a script belongs to: the one with its node_modules or package.json,
// else the folder of the script. It returns the script alone if that would be the home folder or one above it.
func projectOf(script, marker string) string {
	dir := filepath.Dir(script)
	if above, _, ok := strings.Cut(script, "/node_modules/"); ok && marker == "package.json" {
		return above + "/node_modules"
	}
	found := dir
	for d := dir; d != filepath.Dir(d) && isInstallation(d); d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, marker)); err == nil {
			found = d
			break
		}
	}
	if !isInstallation(found) {
		return script
	}
	return found
}

// ask runs a program outside of the sandbox and returns the lines that it writes.
func ask(env []string, dir, program string, args ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir = env, dir
	out, err := cmd.Output()
	return strings.Fields(string(out)), err
}
