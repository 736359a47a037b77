package classify

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/testutil/volume"
)

// sampled is the number of lines that are run, of those classified as reads.
const sampled = 300

// traced are the system calls that change files or start programs.
const traced = "trace=execve,open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,chmod,fchmodat,chown,fchownat,truncate,mknod,mknodat,utimensat"

var (
	changes  = regexp.MustCompile(`^(?:\[pid +\d+\] |\d+ +)?(\w+)\((?:AT_FDCWD(?:<[^>]*>)?, |\d+(?:<[^>]*>)?, )?"?([^",]*)"?(.*)= \d+`)
	harmless = regexp.MustCompile(`^/dev/(null|tty|console|stdout|stderr|fd/|pts/|shm/)|^/proc/self/|^$`)
	// ownState matches files that programs keep for themselves: caches, logs, temporary files, git's index.
	ownState = regexp.MustCompile(`^(/tmp|HOME)/|^HERE/\.git/(index|index\.lock) |^/var/(cache|lib)/apt/`)
)

// interpreters are the programs that run scripts, and those that git, npm and commands around ls start.
var interpreters = []string{"sh", "bash", "dash", "env", "node", "python", "python3", "perl", "grep", "gzip", "xz", "ls", "git", "docker", "go", "cargo", "rustup", "pip"}

// TestSampleOfReads runs some of the lines that are classified as reads, and checks that none changes a file or starts
// another program.
func TestSampleOfReads(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil || !volume.IsFull() {
		t.Skip("requires strace and a full run")
	}
	t.Setenv("PATH", "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin") // excludes wrappers of version managers
	lines := installedReads(t)
	random := rand.New(rand.NewPCG(volume.Seed(t, 1), 0))
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	dir := scratch(t)
	ran, own := 0, 0
	for _, line := range lines[:min(sampled, len(lines))] {
		ran++
		for _, done := range effectsOf(t, strace, dir, line) {
			done = strings.ReplaceAll(strings.ReplaceAll(done, dir+"/home", "HOME"), dir, "HERE")
			if ownState.MatchString(done) {
				t.Logf("%s: own state: %s", line, done)
				own++
				continue
			}
			t.Errorf("%s: %s", line, done)
		}
	}
	t.Logf("%d of %d lines were run; %d changes were to the programs' own caches, logs and index", ran, len(lines), own)
}

// installedReads returns the lines that are classified as reads and whose programs are installed.
func installedReads(t *testing.T) (lines []string) {
	programs, options := helpTexts(t)
	for _, program := range programs {
		first, _, _ := strings.Cut(program, " ")
		if _, err := exec.LookPath(first); err != nil {
			continue
		}
		for _, o := range options[program] {
			for _, line := range linesWith(program, options[program], o) {
				if classifyShell(line).Operation == policy.Read {
					lines = append(lines, line)
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// scratch creates a directory with files to read, a repository, and a home directory.
func scratch(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	setup := "mkdir home; printf 'b\\na\\n' > a; cp a b; tar cf a.tar a; gzip -k a; zip -q a.zip a; xz -k a; git init -q .; git add a; git -c user.name=x -c user.email=x@x commit -qm x; git stash list"
	cmd := exec.CommandContext(t.Context(), "sh", "-c", setup)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("%v: %s", err, out)
	}
	return dir
}

// effectsOf runs a line, and returns the files that it changed and the programs that it started.
func effectsOf(t *testing.T, strace, dir, line string) (effects []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	log := filepath.Join(dir, "home", "trace")
	cmd := exec.CommandContext(ctx, strace, "-f", "-qq", "-s", "300", "-o", log, "-e", traced, "sh", "-c", line)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir + "/home", "LANG=C"}
	_ = cmd.Run() // many lines fail, which does not matter
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	program, _, _ := strings.Cut(line, " ")
	for call := range strings.Lines(string(text)) {
		m := changes.FindStringSubmatch(call)
		if m == nil {
			continue
		}
		name, path, rest := m[1], m[2], m[3]
		switch {
		case name == "execve":
			if base := filepath.Base(path); base != program && !slices.Contains(interpreters, base) && !strings.HasPrefix(base, program) {
				effects = append(effects, "starts "+path)
			}
		case strings.HasPrefix(name, "open") && !strings.Contains(rest, "O_WRONLY") && !strings.Contains(rest, "O_RDWR") && !strings.Contains(rest, "O_CREAT"):
		case harmless.MatchString(path):
		default:
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			effects = append(effects, path+" by "+name)
		}
	}
	return effects
}
