package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/term"

	"mcpproxy/internal/app"
	"mcpproxy/internal/app/autostart"
	"mcpproxy/internal/demo"
)

// Deps are the dependencies of the commands. A nil field means the value of the process, such as os.Stdout.
type Deps struct {
	Version string
	Commit  string // commit of the sources; "" means the one that the go command recorded
	Date    string // date of the commit in RFC 3339; "" means the same
	Serve   func(ctx context.Context, o app.Options) error
	Demo    func(ctx context.Context, o demo.Options) error
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	Local   *time.Location
	Getenv  func(name string) string
	// CompletionTimeout limits how long a shell waits for completions; 0 means completionTimeout.
	CompletionTimeout time.Duration
	// Manager manages the user's services; nil means the service manager of the system.
	Manager autostart.Manager
	// Program is the path of the program that a service runs; "" means this program.
	Program string
	// Ask asks the user a question and returns the answer. If it is nil, the command asks on the terminal of the
	// process, if there is one.
	Ask func(ctx context.Context, question string) (string, error)
}

func newInvocation(d Deps) *invocation {
	d.Stdin = cmp.Or[io.Reader](d.Stdin, os.Stdin)
	d.Stdout = cmp.Or[io.Writer](d.Stdout, os.Stdout)
	d.Stderr = cmp.Or[io.Writer](d.Stderr, os.Stderr)
	d.Local = cmp.Or(d.Local, time.Local)
	if d.Now == nil {
		d.Now = time.Now
	}
	r := &invocation{Deps: d}
	r.terminal, r.width, r.height = detectTerminal(d.Stdout)
	// COLUMNS applies even if stdout is not a terminal.
	if set, _ := r.lookupEnv("COLUMNS"); set != "" {
		if n, err := strconv.Atoi(set); err == nil && n > 0 {
			r.width = n
		}
	}
	return r
}

// invocation is one run of a command: its flags and outputs.
type invocation struct {
	Deps
	configPath string
	dataDir    string
	output     string
	asJSON     bool
	noColor    bool
	noPager    bool
	wide       bool     // tables show all columns in full width
	quiet      bool     // lists show only names or IDs
	terminal   bool     // stdout is a terminal
	width      int      // maximum width of a line; 0 means no limit, for programs
	height     int      // height of the terminal in lines; 0 if unknown
	notes      []string // messages to print after the data
	signer     presenceSigner
}

// lookupEnv returns an environment variable.
func (r *invocation) lookupEnv(name string) (string, bool) {
	if r.Getenv == nil {
		return os.LookupEnv(name)
	}
	v := r.Getenv(name)
	return v, v != ""
}

// detectTerminal reports whether w is a terminal, and returns its size.
func detectTerminal(w io.Writer) (is bool, width, height int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, 0, 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return true, 0, 0
	}
	return true, width, height
}

// allowsColor reports whether output to stdout may contain colors.
func (r *invocation) allowsColor() bool {
	off, _ := r.lookupEnv("NO_COLOR")
	kind, _ := r.lookupEnv("TERM")
	return r.terminal && !r.noColor && off == "" && kind != "dumb"
}
