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

// Deps is what the commands need. What is nil is the process's own.
type Deps struct {
	Version string
	Commit  string // of the sources; "" = what the go command has noted in the program
	Date    string // of the commit, RFC 3339; the same
	Serve   func(ctx context.Context, o app.Options) error
	Demo    func(ctx context.Context, o demo.Options) error
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	Local   *time.Location
	Getenv  func(name string) string
	// CompletionTime is how long a shell waits for names; 0 = a moment.
	CompletionTime time.Duration
	// Manager is who starts programs for the user; nil = that of the system.
	Manager autostart.Manager
	// Program is the path that a service runs; "" = by which this process was started.
	Program string
	// Ask asks the person a question and returns the answer. Without it the
	// terminal of the process is asked, if there is one.
	Ask func(ctx context.Context, question string) (string, error)
}

func newRun(d Deps) *run {
	d.Stdin = cmp.Or[io.Reader](d.Stdin, os.Stdin)
	d.Stdout = cmp.Or[io.Writer](d.Stdout, os.Stdout)
	d.Stderr = cmp.Or[io.Writer](d.Stderr, os.Stderr)
	d.Local = cmp.Or(d.Local, time.Local)
	if d.Now == nil {
		d.Now = time.Now
	}
	r := &run{Deps: d}
	r.terminal, r.width = terminal(d.Stdout)
	// Who sets COLUMNS wants lines of that width wherever they go.
	if set, _ := r.lookup("COLUMNS"); set != "" {
		if n, err := strconv.Atoi(set); err == nil && n > 0 {
			r.width = n
		}
	}
	return r
}

// run is one run of a command: its flags and where its output goes.
type run struct {
	Deps
	configPath string
	dataDir    string
	output     string
	asJSON     bool
	noColor    bool
	terminal   bool     // stdout is one
	width      int      // no line is wider; 0 = any may be: nothing is cut on its way to a program
	notes      []string // to be said after the data
	signer     signer
}

// lookup is the environment.
func (r *run) lookup(name string) (string, bool) {
	if r.Getenv == nil {
		return os.LookupEnv(name)
	}
	v := r.Getenv(name)
	return v, v != ""
}

// terminal reports whether w is one, and how wide.
func terminal(w io.Writer) (is bool, width int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return true, 0
	}
	return true, width
}

// color reports whether stdout may be coloured.
func (r *run) color() bool {
	off, _ := r.lookup("NO_COLOR")
	kind, _ := r.lookup("TERM")
	return r.terminal && !r.noColor && off == "" && kind != "dumb"
}
