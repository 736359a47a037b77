package config

import (
	"context"
	"log/slog"
)

// Component is a part of the program that follows the configuration. Prepare
// gets everything ready for next without touching what is live, and may
// refuse. When every component is prepared, the configuration is swapped and
// the commits run in the order of the components. commit may be nil.
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
	Logger *slog.Logger // nil: nothing is logged
	// Observe is told of every change and of every refused file, one after the
	// other. It must not call Reload.
	Observe func(Change)
}

// Change is what happened to the configuration. It holds no values.
type Change struct {
	// Keys are the paths that changed: "tools_limit", "mcpServers.github".
	Keys []string
	// NeedsRestart are the keys whose new value waits for a restart.
	NeedsRestart []string
	// Err is why the file was refused; nil when it was applied.
	Err error
}

// Live is the configuration that is in force.
type Live struct{}

// Open reads the file at path; a missing file means the defaults. It does not
// watch yet: that is Run.
func Open(path string, opt Options) (*Live, error) { panic("todo") }

// Current is the configuration in force: one atomic load. Nobody keeps it.
func (l *Live) Current() *Config { panic("todo") }

// Path is where the file is, or would be.
func (l *Live) Path() string { panic("todo") }

// Run watches the file and applies it to the components until ctx ends.
func (l *Live) Run(ctx context.Context, components ...Component) { panic("todo") }

// Reload reads the file, prepares all components, swaps and commits; on any
// failure nothing changes.
func (l *Live) Reload() error { panic("todo") }

// LastError is why the last file was refused; nil after a good one.
func (l *Live) LastError() error { panic("todo") }

// NeedsRestart are the keys whose value in the file waits for a restart.
func (l *Live) NeedsRestart() []string { panic("todo") }

// Warnings are what is not wrong but should be put right, such as a file that
// others can read.
func (l *Live) Warnings() []string { panic("todo") }
