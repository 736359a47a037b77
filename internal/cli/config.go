package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// validity is the result of `config validate` for a valid file.
type validity struct {
	Path     string   `json:"path"`
	Exists   bool     `json:"exists"`
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"`
}

func configValidate(r *run) command {
	return command{run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		path, err := r.configFile()
		if len(args) > 0 {
			path, err = config.ResolvePath(args[0], r.lookup)
		}
		if err != nil {
			return err
		}
		live, err := r.open(path)
		if err != nil {
			return err
		}
		_, err = os.Stat(path)
		v := validity{path, !errors.Is(err, fs.ErrNotExist), true, append([]string{}, live.Warnings()...)}
		if !v.Exists && len(args) > 0 {
			return problem.Newf(problem.NotFound, "There is no file %s.", printable(path))
		}
		if !v.Exists {
			if err := missingFileError(ctx, c, path); err != nil {
				return err
			}
		}
		return r.print(v, func(p *printer) { writeValidity(p, v) })
	})}
}

// missingFileError returns the error of a running daemon whose file was deleted: it keeps the old configuration, while without a daemon the defaults
// would apply.
func missingFileError(ctx context.Context, c *api.Client, path string) error {
	s, err := api.GetStatus.Call(ctx, c, ops.Nothing{})
	if err != nil || s.ConfigPath != path || s.ConfigError == "" {
		return nil // only the file matters
	}
	return problem.New(problem.InvalidConfig, s.ConfigError, "Put the file back, or restart MCPProxy to have the defaults.")
}

func writeValidity(p *printer, v validity) {
	if v.Exists {
		p.line("%s is valid.", printable(v.Path))
	} else {
		p.line("There is no file %s yet: the defaults hold.", printable(v.Path))
	}
	for _, warning := range v.Warnings {
		p.note("%s %s", p.paint(hueWarning, "Warning:"), printable(warning))
	}
}

// open reads the configuration as the daemon would.
func (r *run) open(path string) (*config.LiveConfig, error) {
	return config.OpenLiveConfig(path, config.Options{DataDir: r.dataDir, Lookup: r.lookup})
}

func configShow(r *run) command {
	return command{run: func(*cobra.Command, []string) error {
		live, err := r.open(r.configPath)
		if err != nil {
			return err
		}
		current := live.Current()
		return r.print(current, func(p *printer) {
			raw, err := encode(current)
			if err != nil {
				p.note("The configuration cannot be shown: %v", err)
				return
			}
			fmt.Fprintln(p, prettyJSON(raw))
		})
	}}
}

func configPathCommand(r *run) command {
	return command{run: func(*cobra.Command, []string) error {
		path, err := r.configFile()
		if err != nil {
			return err
		}
		v := struct {
			Path string `json:"path"`
		}{path}
		return r.print(v, func(p *printer) { fmt.Fprintln(p, printable(v.Path)) })
	}}
}

// confirmation lists what `config confirm` has confirmed.
type confirmation struct {
	Confirmed []ops.KeyDifference `json:"confirmed"`
}

func configConfirm(r *run) command {
	return command{run: r.withClient(func(ctx context.Context, c *api.Client, _ []string) error {
		before, err := api.GetConfig.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		if before.Error != "" {
			return problem.New(problem.InvalidConfig, before.Error, "Correct the file first: `mcpproxy config validate`.")
		}
		waits := before.UnconfirmedWhy != "" || len(before.Unconfirmed) > 0
		if waits {
			writeUnconfirmed(r.printer(r.Stderr), before)
			if _, err = api.ConfirmConfig.Call(ctx, c, ops.Nothing{}); err != nil {
				return err
			}
		}
		return r.print(confirmation{before.Unconfirmed}, func(p *printer) {
			if waits {
				p.line("All of %s is in force.", printable(before.Path))
			} else {
				p.line("Nothing in %s waits for you.", printable(before.Path))
			}
		})
	})}
}

// writeUnconfirmed shows the unconfirmed changes: the value in force and the value of the file.
func writeUnconfirmed(p *printer, c ops.Config) {
	if c.UnconfirmedWhy != "" {
		p.text("", "Nothing that widens counts: "+printable(c.UnconfirmedWhy)+".")
	}
	if len(c.Unconfirmed) > 0 {
		p.line("These widen what is in force:")
	}
	for _, d := range c.Unconfirmed {
		p.line("%s", visibleLine(d.Key))
		p.text("  - ", visibleLine(string(d.From)))
		p.text("  + ", visibleLine(string(d.To)))
	}
	if slices.ContainsFunc(c.Unconfirmed, func(d ops.KeyDifference) bool { return strings.Contains(string(d.To), "***") }) {
		p.text("", "What *** stands for, look at in the file: a command can be made to look like a secret.")
	}
}
