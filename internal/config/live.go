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

// ReloadableComponent is a part of the program that follows the configuration. Prepare gets ready for the next
// configuration without changing anything, and may reject it. When every component is prepared, the configuration is
// swapped and the commits run in the order of the components. commit may be nil, and may never be called.
type ReloadableComponent interface {
	PrepareConfig(next *Config) (commit func(), err error)
}

// Options configure Open.
type Options struct {
	// Listen and DataDir are command line flags; they override the environment and the configuration file.
	Listen  string
	DataDir string
	// Lookup looks up environment variables; nil uses the process's.
	Lookup func(name string) (string, bool)
	// Addresses returns the process's listen addresses, host:port, in addition to the file's address. nil means no
	// additional addresses.
	Addresses func() []string
	Logger    *slog.Logger // nil: no logging
	// Presence makes changes that grant more access await confirmation if the configuration requires presence. Only
	// the process that applies the file sets it. SetVerifier provides the verifier of the signatures.
	Presence bool
	// Observe receives every change and every rejected file, sequentially. It must not
	// call Reload.
	Observe func(Change)
	// Applied receives every applied text, sequentially, except the one that OpenLiveConfig applies. It must not
	// change the file.
	Applied func(AppliedText)
}

// LiveConfig provides the current configuration, and applies changes of the file.
type LiveConfig struct {
	path    string
	named   bool // the path was set by flag or variable
	options Options
	dataDir string // overrides data_dir of the file, absolute
	started *Config

	// How long Run waits for a file to settle, and how often it polls.
	settleTime, pollInterval time.Duration

	current     atomic.Pointer[Config]
	loadResult  atomic.Pointer[loadResult]
	appliedText atomic.Pointer[AppliedText]
	unconfirmed atomic.Pointer[UnconfirmedChanges]

	mu         sync.Mutex // held while a file is applied; guards the fields below
	components []ReloadableComponent
	swapped    bool // the configuration changed since OpenLiveConfig
	existed    bool // there was a file
	last       fileContent
	confirmed  confirmedConfig
	wanted     *Config // the file's configuration: the current one plus the changes that await confirmation
}

// fileContent is the result of reading the file. data is nil if there is no file.
type fileContent struct {
	data []byte
	err  error
}

func (r fileContent) equals(o fileContent) bool {
	if r.err != nil || o.err != nil {
		return r.err != nil && o.err != nil && r.err.Error() == o.err.Error()
	}
	return bytes.Equal(r.data, o.data) && (r.data == nil) == (o.data == nil)
}

// loadResult is the outcome of the last file.
type loadResult struct {
	err      error
	warnings []string
}

// OpenLiveConfig reads the file at path; "" means the path that ResolvePath returns. If the file is missing, the
// defaults apply. Run watches it.
func OpenLiveConfig(path string, opt Options) (*LiveConfig, error) {
	opt.Lookup = lookupOrEnv(opt.Lookup)
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	_, byVariable := opt.Lookup(EnvPath)
	named := path != "" || byVariable
	path, err := ResolvePath(path, opt.Lookup)
	if err != nil {
		return nil, err
	}
	l := &LiveConfig{path: path, named: named, options: opt, settleTime: 100 * time.Millisecond, pollInterval: 2 * time.Second}
	if l.dataDir, err = dataDirOverride(opt); err != nil {
		return nil, err
	}
	l.last = l.readFile()
	if l.last.err != nil {
		return nil, l.last.err
	}
	l.existed = l.last.data != nil
	if l.wanted, err = l.parseText(l.last.data); err != nil {
		return nil, err
	}
	c, err := initialConfig(l, l.wanted)
	if err != nil {
		return nil, err
	}
	l.started = c
	l.current.Store(c)
	l.appliedText.Store(&AppliedText{Data: l.last.data, Since: time.Now(), By: ByHand, Keys: differenceKeys(findDifferences(DefaultConfig(), c))})
	l.setLoadResult(nil)
	return l, nil
}

// initialConfig returns the configuration at the start, before signatures can be verified.
func initialConfig(l *LiveConfig, wanted *Config) (*Config, error) {
	l.unconfirmed.Store(&UnconfirmedChanges{Presence: wanted.Presence})
	if !l.options.Presence {
		return wanted, nil
	}
	dir, err := toAbsolutePath(wanted.DataDir, l.options.Lookup)
	if err != nil {
		return nil, err
	}
	l.confirmed = confirmedConfig{dir: filepath.Join(dir, baselineDir), logger: l.options.Logger}
	if err := l.confirmed.loadConfirmed(wanted, l.parseText); err != nil {
		return nil, err
	}
	live, found := l.confirmed.withholdAccessIncreases(wanted)
	l.unconfirmed.Store(l.confirmed.newUnconfirmed(found, wanted.Presence))
	return live, nil
}

// dataDirOverride returns the data directory of the command line or the environment.
func dataDirOverride(opt Options) (string, error) {
	dir := cmp.Or(opt.DataDir, environmentVariable(EnvDataDir, opt.Lookup))
	if dir == "" {
		return "", nil
	}
	return toAbsolutePath(dir, opt.Lookup)
}

// Current returns the current configuration with one atomic load. Do not store the result.
func (l *LiveConfig) Current() *Config { return l.current.Load() }

// Path returns the path of the file, which may not exist.
func (l *LiveConfig) Path() string { return l.path }

// LastError returns why the last file was rejected; nil after a valid one.
func (l *LiveConfig) LastError() error { return l.loadResult.Load().err }

// Warnings returns problems that are not errors, such as a file that other users can read.
func (l *LiveConfig) Warnings() []string { return l.loadResult.Load().warnings }

// NeedsRestart returns the keys whose value in the file needs a restart.
func (l *LiveConfig) NeedsRestart() []string {
	return changedKeys(l.started, l.Current(), func(k configKey) bool { return k.restart })
}

// setComponents registers the components of Run. They may have been created with an earlier configuration, not the
// current one.
func (l *LiveConfig) setComponents(components []ReloadableComponent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.components = components
	if !l.swapped {
		return
	}
	commits, err := prepareComponents(l.components, l.Current())
	if err != nil {
		l.rejectFile(err)
		return
	}
	runCommits(commits)
}

// reloadIfChanged applies the file if it has changed.
func (l *LiveConfig) reloadIfChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.readFile()
	if r.equals(l.last) {
		l.setLoadResult(l.LastError()) // the file's mode may have changed
		return
	}
	_ = l.applyContent(r) // stored as LastError, logged and observed
}

// applyContent applies the file content. The caller holds mu.
func (l *LiveConfig) applyContent(r fileContent) error {
	l.last = r
	switch {
	case r.err != nil:
		return l.rejectFile(r.err)
	case r.data == nil && l.existed:
		// The defaults are not applied here: they would stop every server while an editor replaces the file.
		return l.rejectFile(problem.Newf(problem.InvalidConfig, "%s is missing; the previous configuration stays active.", l.path).
			WithHint("Restore the file, or restart MCPProxy to use the defaults."))
	}
	l.existed = l.existed || r.data != nil
	next, err := l.parseText(r.data)
	if err != nil {
		return l.rejectFile(err)
	}
	return l.applyAllowed(next, ByHand)
}

// applyAllowed applies next, except for changes that await confirmation. The caller holds mu.
func (l *LiveConfig) applyAllowed(next *Config, by string) error {
	live, found := l.confirmed.withholdAccessIncreases(next)
	keys := changedKeys(l.Current(), live, acceptEveryKey)
	var commits []func()
	if len(keys) > 0 {
		var err error
		if commits, err = prepareComponents(l.components, live); err != nil {
			return l.rejectFile(err)
		}
	}
	l.wanted = next
	told := setUnconfirmed(l, found)
	l.commitAppliedText(live, commits, by)
	told()
	return nil
}

// setUnconfirmed stores the changes that await confirmation, and returns a function that reports them to the
// observer.
func setUnconfirmed(l *LiveConfig, found []Difference) (tell func()) {
	before := differenceKeys(l.Unconfirmed().Differences)
	l.unconfirmed.Store(l.confirmed.newUnconfirmed(found, l.wanted.Presence))
	return func() {
		if keys := differenceKeys(found); len(keys) > 0 && !slices.Equal(keys, before) {
			l.options.notifyObserver(Change{Unconfirmed: keys, NeedsRestart: l.NeedsRestart()})
		}
	}
}

// commitAppliedText makes next the current configuration for the last text. Every component must be prepared for it.
func (l *LiveConfig) commitAppliedText(next *Config, commits []func(), by string) {
	applied := AppliedText{Data: l.last.data, Since: time.Now(), By: by, Keys: differenceKeys(findDifferences(l.Current(), next))}
	tell := l.swapCurrent(next, commits)
	l.setLoadResult(nil)
	before := l.AppliedText()
	another := applied.ETag() != before.ETag()
	if another {
		l.appliedText.Store(&applied)
	}
	tell() // after the swap, so that observers see the new configuration
	if another && l.options.Applied != nil {
		l.options.Applied(applied)
	}
}

// swapCurrent makes next the current configuration, and returns a function that reports the change. Every component
// must be prepared for it.
func (l *LiveConfig) swapCurrent(next *Config, commits []func()) (tell func()) {
	keys := changedKeys(l.Current(), next, acceptEveryKey)
	l.current.Store(next)
	l.confirmed.narrowLimitTo(next)
	runCommits(commits)
	if len(keys) == 0 {
		return func() {}
	}
	l.swapped = true
	l.options.Logger.Info("the configuration is applied", "file", l.path, "changed", keys, "needs_restart", l.NeedsRestart())
	return func() { l.options.notifyObserver(Change{Keys: keys, NeedsRestart: l.NeedsRestart()}) }
}

// prepareComponents makes every component prepare for next. If one rejects it, nothing changes.
func prepareComponents(all []ReloadableComponent, next *Config) ([]func(), error) {
	var commits []func()
	for _, c := range all {
		commit, err := c.PrepareConfig(next)
		if err != nil {
			return nil, toComponentError(err)
		}
		if commit != nil {
			commits = append(commits, commit)
		}
	}
	return commits, nil
}

func runCommits(commits []func()) {
	for _, c := range commits {
		c()
	}
}

// toComponentError returns a component's error in readable form.
func toComponentError(err error) error {
	var p *problem.Problem
	if errors.As(err, &p) {
		return p
	}
	return problem.Newf(problem.InvalidConfig, "The configuration cannot be applied: %v", err).Because(err)
}

// rejectFile stores and reports err.
func (l *LiveConfig) rejectFile(err error) error {
	l.setLoadResult(err)
	l.options.Logger.Warn("the configuration file is rejected, the previous one stays active", "file", l.path, "error", err)
	l.options.notifyObserver(Change{Err: err, NeedsRestart: l.NeedsRestart()})
	return err
}

func (o *Options) notifyObserver(c Change) {
	if o.Observe != nil {
		o.Observe(c)
	}
}

// setLoadResult stores the outcome of the last file.
func (l *LiveConfig) setLoadResult(err error) {
	next := &loadResult{err: err, warnings: slices.Concat(l.Unconfirmed().Warnings(), missingFileWarnings(l), fileModeWarnings(l.path), l.selfReferenceWarnings(l.Current()))}
	if err == nil { // otherwise the line numbers refer to another text
		next.warnings = append(next.warnings, l.Current().warnings...)
	}
	if last := l.loadResult.Load(); last == nil || !slices.Equal(last.warnings, next.warnings) {
		for _, w := range next.warnings {
			l.options.Logger.Warn("the configuration file should be corrected", "file", l.path, "warning", w)
		}
	}
	l.loadResult.Store(next)
}

// missingFileWarnings returns a warning if a configured path has no file, because the path may be misspelled.
// LastError reports a file that was removed.
func missingFileWarnings(l *LiveConfig) []string {
	if _, err := os.Stat(l.path); !l.named || l.existed || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return []string{l.path + " does not exist, so the defaults apply and there are no servers; check its path, or add servers with `mcpproxy upstream add`"}
}

// fileModeWarnings returns a warning if other users can read or write the file.
func fileModeWarnings(path string) []string {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s has the mode %04o, so other users can access it; run: chmod 600 %s", path, info.Mode().Perm(), path)}
}

// readFile reads the file; a missing one is not an error.
func (l *LiveConfig) readFile() fileContent {
	data, err := readConfigFile(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fileContent{}
	case err != nil:
		return fileContent{err: problem.Newf(problem.InvalidConfig, "%s cannot be read: %v", l.path, err).
			WithHint("Check the path and the permissions of the file.").Because(err)}
	}
	return fileContent{data: append([]byte{}, data...)}
}

// parseText parses the text of the file; nil means that there is no file.
func (l *LiveConfig) parseText(data []byte) (*Config, error) {
	if data == nil {
		data = []byte("{}")
	}
	in := parseInput{file: filepath.Base(l.path), data: data, lookup: l.options.Lookup, listen: l.options.Listen, dataDir: l.dataDir}
	c, err := in.parseConfig()
	if err != nil {
		return nil, err
	}
	if _, err := toAbsolutePath(c.DataDir, l.options.Lookup); err != nil {
		return nil, err
	}
	if l.started != nil && !isLoopbackAddress(l.started.Listen) && !c.RequireMCPAuth {
		// A new listen address needs a restart, but require_mcp_auth does not.
		return nil, newMistakesError(in.file, []Mistake{{Path: "require_mcp_auth",
			Message: "MCPProxy listens on " + l.started.Listen + " until it is restarted, and needs require_mcp_auth as long",
			Hint:    "restart it to apply both changes"}}, 0)
	}
	return c, nil
}
