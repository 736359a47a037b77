package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/problem"
)

// Component is a part of the program that follows the configuration. Prepare
// gets everything ready for next without touching what is live, and may
// refuse. When every component is prepared, the configuration is swapped and
// the commits run in the order of the components. commit may be nil; a commit
// that is never called must cost nothing.
type Component interface {
	Prepare(next *Config) (commit func(), err error)
}

// Options are what Open needs besides the path.
type Options struct {
	// Listen and DataDir are what the command line says; they outrank the
	// environment and the file.
	Listen  string
	DataDir string
	// Lookup is the environment; nil means that of the process.
	Lookup func(name string) (string, bool)
	// Addresses are where the process listens, host:port, besides what the file
	// says; nil: nowhere.
	Addresses func() []string
	Logger    *slog.Logger // nil: nothing is logged
	// Presence has what widens wait for a person where presence demands it: for the one
	// process that has the file in force. Verify says what is signed.
	Presence bool
	// Observe is told of every change and of every refused file, one after the
	// other. It must not call Reload.
	Observe func(Change)
	// Applied is told of every text that is in force from now on, one after the
	// other; of that of Open it is not. It must not change the file.
	Applied func(InForce)
}

// Live is the configuration that is in force.
type Live struct {
	path    string
	named   bool // the path was given, by flag or variable
	options Options
	dataDir string // what outranks data_dir of the file, absolute
	started *Config

	// How long Run lets a file come to rest, and how often it looks by itself.
	settle, poll time.Duration

	current atomic.Pointer[Config]
	outcome atomic.Pointer[outcome]
	inForce atomic.Pointer[InForce]
	waiting atomic.Pointer[Unconfirmed]

	mu         sync.Mutex // held while a file is applied; guards what follows
	components []Component
	swapped    bool // the current configuration is not that of Open
	existed    bool // there was a file
	last       reading
	base       baseline
	wanted     *Config // what the file says: but for what waits, the current one
}

// reading is what came of reading the file: data is nil when there was none.
type reading struct {
	data []byte
	err  error
}

func (r reading) same(o reading) bool {
	if r.err != nil || o.err != nil {
		return r.err != nil && o.err != nil && r.err.Error() == o.err.Error()
	}
	return bytes.Equal(r.data, o.data) && (r.data == nil) == (o.data == nil)
}

// outcome is what the last file gave besides a configuration.
type outcome struct {
	err      error
	warnings []string
}

// Open reads the file at path ("" means ResolvePath); a missing file means the
// defaults. It does not watch yet: that is Run.
func Open(path string, opt Options) (*Live, error) {
	opt.Lookup = orProcess(opt.Lookup)
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	_, byVariable := opt.Lookup(EnvPath)
	named := path != "" || byVariable
	path, err := ResolvePath(path, opt.Lookup)
	if err != nil {
		return nil, err
	}
	l := &Live{path: path, named: named, options: opt, settle: 100 * time.Millisecond, poll: 2 * time.Second}
	if l.dataDir, err = outranking(opt); err != nil {
		return nil, err
	}
	l.last = l.read()
	if l.last.err != nil {
		return nil, l.last.err
	}
	l.existed = l.last.data != nil
	if l.wanted, err = l.parse(l.last.data); err != nil {
		return nil, err
	}
	c, err := start(l, l.wanted)
	if err != nil {
		return nil, err
	}
	l.started = c
	l.current.Store(c)
	l.inForce.Store(&InForce{Data: l.last.data, Since: time.Now(), By: ByHand, Keys: keysOf(differences(Default(), c))})
	l.conclude(nil)
	return l, nil
}

// start returns what of the file is in force at the start, before anybody can say what is
// signed.
func start(l *Live, wanted *Config) (*Config, error) {
	l.waiting.Store(&Unconfirmed{Presence: wanted.Presence})
	if !l.options.Presence {
		return wanted, nil
	}
	dir, err := absolute(wanted.DataDir, l.options.Lookup)
	if err != nil {
		return nil, err
	}
	l.base = baseline{dir: filepath.Join(dir, baselineDir), logger: l.options.Logger}
	if err := l.base.load(wanted, l.parse); err != nil {
		return nil, err
	}
	live, found := l.base.hold(wanted)
	l.waiting.Store(l.base.waits(found, wanted.Presence))
	return live, nil
}

// outranking is the data directory of the command line or the environment.
func outranking(opt Options) (string, error) {
	dir := cmp.Or(opt.DataDir, variable(EnvDataDir, opt.Lookup))
	if dir == "" {
		return "", nil
	}
	return absolute(dir, opt.Lookup)
}

// Current is the configuration in force: one atomic load. Nobody keeps it.
func (l *Live) Current() *Config { return l.current.Load() }

// Path is where the file is, or would be.
func (l *Live) Path() string { return l.path }

// LastError is why the last file was refused; nil after a good one.
func (l *Live) LastError() error { return l.outcome.Load().err }

// Warnings are what is not wrong but should be put right, such as a file that
// others can read.
func (l *Live) Warnings() []string { return l.outcome.Load().warnings }

// NeedsRestart are the keys whose value in the file waits for a restart.
func (l *Live) NeedsRestart() []string {
	return changed(l.started, l.Current(), func(k key) bool { return k.restart })
}

// follow registers the components of Run. They may have been made from an
// earlier configuration than the current one.
func (l *Live) follow(components []Component) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.components = components
	if !l.swapped {
		return
	}
	commits, err := prepare(l.components, l.Current())
	if err != nil {
		l.refuse(err)
		return
	}
	commit(commits)
}

// check applies the file if it is not as it was.
func (l *Live) check() {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.read()
	if r.same(l.last) {
		l.conclude(l.LastError()) // its mode may have changed
		return
	}
	_ = l.apply(r) // kept as LastError, logged and observed
}

// apply takes over what was read. The caller holds mu.
func (l *Live) apply(r reading) error {
	l.last = r
	switch {
	case r.err != nil:
		return l.refuse(r.err)
	case r.data == nil && l.existed:
		// Not the defaults: that would stop every server because of an editor
		// that is about to put the file back.
		return l.refuse(problem.Newf(problem.InvalidConfig, "%s is gone; the configuration from before stays in force.", l.path).
			WithHint("Put the file back, or restart MCPProxy to have the defaults."))
	}
	l.existed = l.existed || r.data != nil
	next, err := l.parse(r.data)
	if err != nil {
		return l.refuse(err)
	}
	return l.enforce(next, ByHand)
}

// enforce has next be in force, but for what waits for a person. The caller holds mu.
func (l *Live) enforce(next *Config, by string) error {
	live, found := l.base.hold(next)
	keys := changed(l.Current(), live, everyKey)
	var commits []func()
	if len(keys) > 0 {
		var err error
		if commits, err = prepare(l.components, live); err != nil {
			return l.refuse(err)
		}
	}
	l.wanted = next
	told := wait(l, found)
	l.take(live, commits, by)
	told()
	return nil
}

// wait has what was found wait for a person, and returns what tells of it.
func wait(l *Live, found []Difference) (tell func()) {
	before := keysOf(l.Unconfirmed().Differences)
	l.waiting.Store(l.base.waits(found, l.wanted.Presence))
	return func() {
		if keys := keysOf(found); len(keys) > 0 && !slices.Equal(keys, before) {
			l.options.observe(Change{Waits: keys, NeedsRestart: l.NeedsRestart()})
		}
	}
}

// take makes next the configuration in force, for which everything is prepared: what
// counts of the last text that was read or written.
func (l *Live) take(next *Config, commits []func(), by string) {
	applied := InForce{Data: l.last.data, Since: time.Now(), By: by, Keys: keysOf(differences(l.Current(), next))}
	tell := l.swap(next, commits)
	l.conclude(nil)
	before := l.InForce()
	another := applied.ETag() != before.ETag()
	if another {
		l.inForce.Store(&applied)
	}
	tell() // who asks then is told the same
	if another && l.options.Applied != nil {
		l.options.Applied(applied)
	}
}

// swap makes next the configuration in force, for which everything is prepared, and returns what
// tells of it.
func (l *Live) swap(next *Config, commits []func()) (tell func()) {
	keys := changed(l.Current(), next, everyKey)
	l.current.Store(next)
	l.base.narrow(next)
	commit(commits)
	if len(keys) == 0 {
		return func() {}
	}
	l.swapped = true
	l.options.Logger.Info("the configuration is applied", "file", l.path, "changed", keys, "needs_restart", l.NeedsRestart())
	return func() { l.options.observe(Change{Keys: keys, NeedsRestart: l.NeedsRestart()}) }
}

// prepare asks every component; one that refuses leaves all as they were.
func prepare(all []Component, next *Config) ([]func(), error) {
	var commits []func()
	for _, c := range all {
		commit, err := c.Prepare(next)
		if err != nil {
			return nil, refusal(err)
		}
		if commit != nil {
			commits = append(commits, commit)
		}
	}
	return commits, nil
}

func commit(commits []func()) {
	for _, c := range commits {
		c()
	}
}

// refusal makes a component's error one that a person can read.
func refusal(err error) error {
	var p *problem.Problem
	if errors.As(err, &p) {
		return p
	}
	return problem.Newf(problem.InvalidConfig, "The configuration cannot be applied: %v", err).Because(err)
}

// refuse keeps err and tells of it.
func (l *Live) refuse(err error) error {
	l.conclude(err)
	l.options.Logger.Warn("the configuration file is refused, the one before stays in force", "file", l.path, "error", err)
	l.options.observe(Change{Err: err, NeedsRestart: l.NeedsRestart()})
	return err
}

func (o *Options) observe(c Change) {
	if o.Observe != nil {
		o.Observe(c)
	}
}

// conclude keeps what came of the last file.
func (l *Live) conclude(err error) {
	next := &outcome{err: err, warnings: slices.Concat(l.Unconfirmed().Warnings(), nowhere(l), laxMode(l.path), l.leadingBack(l.Current()))}
	if err == nil { // else the lines are those of another text
		next.warnings = append(next.warnings, l.Current().warnings...)
	}
	if last := l.outcome.Load(); last == nil || !slices.Equal(last.warnings, next.warnings) {
		for _, w := range next.warnings {
			l.options.Logger.Warn("the configuration file should be put right", "file", l.path, "warning", w)
		}
	}
	l.outcome.Store(next)
}

// nowhere warns of a file that was named and does not exist: the name may be
// misspelt. Of one that vanished LastError tells: what was in it holds.
func nowhere(l *Live) []string {
	if _, err := os.Stat(l.path); !l.named || l.existed || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return []string{l.path + " does not exist, so the defaults hold, without any server; check its name, or add servers with `mcpproxy upstream add`"}
}

// laxMode warns of a file that others can read or write: it may hold secrets.
func laxMode(path string) []string {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s has the mode %04o, so that other users can get at it; run: chmod 600 %s", path, info.Mode().Perm(), path)}
}

// read reads the file; that there is none is no error.
func (l *Live) read() reading {
	data, err := read(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return reading{}
	case err != nil:
		return reading{err: problem.Newf(problem.InvalidConfig, "%s cannot be read: %v", l.path, err).
			WithHint("Check the path and the permissions of the file.").Because(err)}
	}
	return reading{data: append([]byte{}, data...)}
}

// parse makes a configuration of the file's text, nil for no file.
func (l *Live) parse(data []byte) (*Config, error) {
	if data == nil {
		data = []byte("{}")
	}
	in := input{file: filepath.Base(l.path), data: data, lookup: l.options.Lookup, listen: l.options.Listen, dataDir: l.dataDir}
	c, err := in.parse()
	if err != nil {
		return nil, err
	}
	if _, err := absolute(c.DataDir, l.options.Lookup); err != nil {
		return nil, err
	}
	if l.started != nil && !loopback(l.started.Listen) && !c.RequireMCPAuth {
		// The new listen waits for a restart, require_mcp_auth would not.
		return nil, refused(in.file, []Mistake{{Path: "require_mcp_auth",
			Message: "MCPProxy listens on " + l.started.Listen + " until it is restarted, and needs require_mcp_auth as long",
			Hint:    "restart it to have both changes"}}, 0)
	}
	return c, nil
}
