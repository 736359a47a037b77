package pin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/ondisk"
)

// Command is the argument with which the program starts a pinned package: see Main.
const Command = "run-pinned"

// Pinned returns the command that starts exactly the pinned version of a launch. program is MCPProxy, and dir is the
// folder of the installed packages. The error tells why the pin does not fit the launch.
func Pinned(p Pin, program, dir, command string, args []string) (string, []string, error) {
	l, why, ok := FindLaunch(command, args)
	switch {
	case !ok:
		return "", nil, fmt.Errorf("the command cannot be pinned (%s)", cmp.Or(why, "it does not start npx, uvx or docker"))
	case l.Kind != p.Kind || l.Name != p.Name:
		return "", nil, fmt.Errorf("the pin is for %s:%s, but the command starts %s:%s", p.Kind, p.Name, l.Kind, l.Name)
	case p.Kind == Docker:
		out := append(append([]string{}, l.Runner[1:]...), l.Flags...)
		out = append(out, l.Name+"@"+p.Integrity)
		if l.Bin != "" {
			out = append(out, l.Bin)
		}
		return l.Runner[0], append(out, l.Args...), nil
	}
	return program, append([]string{Command, p.String(), dir, command}, args...), nil
}

// Exact returns the command that makes the runner itself choose the pinned version, for a server that runs in a sandbox.
// See Pin.CheckNPM.
func Exact(p Pin, command string, args []string) (string, []string, error) {
	l, why, ok := FindLaunch(command, args)
	if !ok || l.Kind != p.Kind || l.Name != p.Name {
		return "", nil, fmt.Errorf("the pin of %s:%s does not fit the command (%s)", p.Kind, p.Name, cmp.Or(why, "another package"))
	}
	out := append(append([]string{}, l.Runner[1:]...), l.Flags...)
	switch {
	case p.Kind == PyPI:
		out = append(out, "--from", p.Name+"=="+p.Version, l.Bin)
	case l.Bin != "":
		out = append(out, "--package", p.Name+"@"+p.Version, l.Bin)
	default:
		out = append(out, p.Name+"@"+p.Version)
	}
	return l.Runner[0], append(out, l.Args...), nil
}

// Main installs a pinned package if necessary, and becomes its server. args are the pin, the folder of the packages, and
// the original command. It returns only with an exit code, after it has written an error to standard error.
func Main(args []string) int {
	if len(args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: mcpproxy "+Command+" PIN DIRECTORY COMMAND [ARGUMENT...]")
		return 2
	}
	err := run(args[0], args[1], args[2], args[3:])
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func run(text, dir, command string, args []string) error {
	p, err := Parse(text)
	if err != nil {
		return err
	}
	l, why, ok := FindLaunch(command, args)
	if !ok || l.Kind != p.Kind || l.Name != p.Name {
		return errors.New("the pin does not fit the command: " + why)
	}
	ctx := context.Background()
	home := filepath.Join(dir, string(p.Kind), p.folder())
	if p.Kind == PyPI {
		return l.runUVX(ctx, p, dir)
	}
	if err := l.installNPM(ctx, p, home); err != nil {
		return err
	}
	program, err := NPMProgram(filepath.Join(home, "node_modules"), l.Name, l.Bin)
	if err != nil {
		return err
	}
	_ = os.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	return become(program, l.Args)
}

// MismatchError is the error about a package whose integrity is not the pinned one.
type MismatchError struct {
	Pin   Pin
	Found string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("The registry has %s, approved is %s.\nRefused to start %s@%s: its integrity is not the approved one. It was replaced at the registry: ask its publisher, "+
		"or run `mcpproxy upstream update` or `mcpproxy upstream rollback`.", e.Found, e.Pin.Integrity, e.Pin.Name, e.Pin.Version)
}

const installed = "mcpproxy-installed" // a file in the folder of a completely installed package

// installNPM installs the package into the folder, unless it is there. It compares the integrity before anything is
// downloaded, and npm verifies the download against it.
func (l *Launch) installNPM(ctx context.Context, p Pin, home string) error {
	if _, err := os.Stat(filepath.Join(home, installed)); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o700); err != nil {
		return err
	}
	for { // another process may install it now
		lock, err := ondisk.LockFile(home + lockSuffix)
		if err == nil {
			defer func() { _ = lock.Close() }()
			break
		}
		if !errors.Is(err, ondisk.ErrLocked) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	if _, err := os.Stat(filepath.Join(home, installed)); err == nil {
		return nil
	}
	_ = os.RemoveAll(home) // a partial installation
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	manifest := `{"private":true,"dependencies":{` + strconv.Quote(p.Name) + `:` + strconv.Quote(p.Version) + `}}`
	if err := os.WriteFile(filepath.Join(home, "package.json"), []byte(manifest), 0o600); err != nil {
		return err
	}
	flags := append(l.NPMFlags(), "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
	if err := npm(ctx, home, append([]string{"install", "--package-lock-only", "--ignore-scripts"}, flags...)); err != nil {
		return fmt.Errorf("%s@%s cannot be resolved: %w", p.Name, p.Version, err)
	}
	if err := p.CheckNPM(home); err != nil {
		_ = os.RemoveAll(home)
		return err
	}
	if err := npm(ctx, home, append([]string{"ci"}, flags...)); err != nil {
		return fmt.Errorf("%s@%s cannot be installed: %w", p.Name, p.Version, err)
	}
	return os.WriteFile(filepath.Join(home, installed), nil, 0o600)
}

// Prune removes the packages in a folder that no pin needs. Nothing may be installed at the same time. The returned
// function deletes their files, which can take seconds.
func Prune(dir string, pins []string) (deleteFiles func() error) {
	needed := map[string]bool{}
	for _, text := range pins {
		if p, err := Parse(text); err == nil {
			needed[filepath.Join(dir, string(p.Kind), p.folder())] = true
		}
	}
	var gone []string
	for _, kind := range []Kind{NPM, PyPI} {
		entries, _ := os.ReadDir(filepath.Join(dir, string(kind)))
		for _, e := range entries {
			path := filepath.Join(dir, string(kind), e.Name())
			if needed[strings.TrimSuffix(path, lockSuffix)] {
				continue
			}
			if removed := strings.TrimSuffix(path, removedSuffix) + removedSuffix; path == removed || os.Rename(path, removed) == nil {
				gone = append(gone, removed)
			} // else an earlier deletion was not finished: the next Prune removes this one
		}
	}
	return func() (err error) {
		for _, path := range gone {
			err = errors.Join(err, os.RemoveAll(path))
		}
		return err
	}
}

// Suffixes of files next to the folder of a package.
const (
	lockSuffix    = ".lock"
	removedSuffix = ".removed" // of a folder whose files are being deleted
)

// CheckNPM compares the version and the integrity of the package in the package-lock.json of a folder with the pin. npm
// has verified what it downloaded against them.
func (p Pin) CheckNPM(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return err
	}
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return err
	}
	found := lock.Packages["node_modules/"+p.Name]
	if found.Version != p.Version || found.Integrity != p.Integrity {
		return &MismatchError{p, cmp.Or(found.Integrity, "none")}
	}
	return nil
}

// npm runs npm in a folder. Its output goes to standard error, because standard output belongs to the protocol.
func npm(ctx context.Context, dir string, args []string) error {
	cmd := exec.CommandContext(ctx, "npm", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	return cmd.Run()
}

// NPMProgram returns the file that npx would start: the program bin, or that of a package if bin is "". modules is the
// folder node_modules in which the package is installed.
func NPMProgram(modules, name, bin string) (string, error) {
	if bin == "" {
		text, err := os.ReadFile(filepath.Join(modules, filepath.FromSlash(name), "package.json"))
		if err != nil {
			return "", err
		}
		var manifest struct{ Bin json.RawMessage }
		if err := json.Unmarshal(text, &manifest); err != nil {
			return "", err
		}
		bin = name[strings.LastIndexByte(name, '/')+1:]
		var several map[string]string
		if json.Unmarshal(manifest.Bin, &several) == nil && several[bin] == "" {
			if len(several) > 1 {
				return "", fmt.Errorf("%s has several programs: name one, as in npx --package %s PROGRAM", name, name)
			}
			for bin = range several {
			}
		}
	}
	if bin == "" || strings.ContainsAny(bin, `/\`) || strings.HasPrefix(bin, ".") {
		return "", fmt.Errorf("the program %q is not in the package", bin)
	}
	return filepath.Join(modules, ".bin", bin), nil
}

// runUVX becomes uvx, after CheckPyPI.
func (l *Launch) runUVX(ctx context.Context, p Pin, dir string) error {
	offline, err := l.CheckPyPI(ctx, p, dir)
	if err != nil {
		return err
	}
	args := append([]string{}, l.Flags...)
	if offline {
		args = append(args, "--offline")
	}
	args = append(args, "--from", p.Name+"=="+p.Version, l.Bin)
	program, err := exec.LookPath(l.Runner[0])
	if err != nil {
		return err
	}
	return become(program, append(args, l.Args...))
}

// CheckPyPI compares the files of the pinned version at the index with the pin. If the index cannot be reached, offline
// is true, and uv can use only what it has downloaded before. Then an earlier comparison is needed, which left a mark in
// dir, the folder of the packages.
func (l *Launch) CheckPyPI(ctx context.Context, p Pin, dir string) (offline bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	mark := filepath.Join(dir, string(p.Kind), p.folder())
	found, err := l.viewPyPI(ctx, p.Version, os.Environ())
	switch _, seen := os.Stat(mark); {
	case err == nil && found.Integrity != p.Integrity:
		return false, &MismatchError{p, found.Integrity}
	case err == nil:
		return false, os.MkdirAll(mark, 0o700)
	case seen != nil:
		return false, err
	}
	return true, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// become replaces this process by a program, or runs it where that is not possible.
func become(program string, args []string) error {
	if runtime.GOOS != "windows" {
		return execProgram(program, append([]string{program}, args...), os.Environ())
	}
	cmd := exec.Command(program+".cmd", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	if err == nil {
		os.Exit(0)
	}
	return err
}
