package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// configValidationResult is the result of `config validate` for a valid file.
type configValidationResult struct {
	Path     string   `json:"path"`
	Exists   bool     `json:"exists"`
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"`
}

func newConfigValidateCommand(r *invocation) commandSpec {
	return commandSpec{run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (v configValidationResult, err error) {
		path, err := r.resolveConfigPath()
		if len(args) > 0 {
			path, err = config.ResolvePath(args[0], r.lookupEnv)
		}
		if err != nil {
			return v, err
		}
		live, err := r.openConfigAt(path)
		if err != nil {
			return v, err
		}
		_, err = os.Stat(path)
		v = configValidationResult{path, !errors.Is(err, fs.ErrNotExist), true, append([]string{}, live.Warnings()...)}
		switch {
		case v.Exists:
			return v, nil
		case len(args) > 0:
			return v, problem.Newf(problem.NotFound, "The file %s does not exist.", toPrintable(path))
		}
		return v, deletedConfigFileError(ctx, c, path)
	}, writeConfigValidation)}
}

// deletedConfigFileError returns an error if a daemon is running and its configuration file was deleted. The daemon
// keeps the previous configuration, while a new daemon would use the defaults.
func deletedConfigFileError(ctx context.Context, c *api.Client, path string) error {
	s, err := api.GetStatus.Call(ctx, c, ops.Nothing{})
	if err != nil || s.ConfigPath != path || s.ConfigError == "" {
		return nil // without a daemon, only the file matters
	}
	return problem.New(problem.InvalidConfig, s.ConfigError, "Restore the file, or restart MCPProxy to use the defaults.")
}

func writeConfigValidation(p *printer, v configValidationResult) {
	if v.Exists {
		p.writeLine("%s is valid.", toPrintable(v.Path))
	} else {
		p.writeLine("The file %s does not exist: the defaults apply.", toPrintable(v.Path))
	}
	for _, warning := range v.Warnings {
		p.addNote("%s %s", p.colorize(colorWarning, "Warning:"), toPrintable(warning))
	}
}

// openConfig reads the configuration as the daemon would.
func (r *invocation) openConfig() (*config.LiveConfig, error) { return r.openConfigAt(r.configPath) }

func (r *invocation) openConfigAt(path string) (*config.LiveConfig, error) {
	return config.OpenLiveConfig(path, config.Options{DataDir: r.dataDir, Lookup: r.lookupEnv})
}

func newConfigShowCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) error {
		answer, err := api.GetConfig.Call(ctx, c, ops.Nothing{})
		source := "The active configuration. The file is " + toPrintable(answer.Path) + "."
		if api.IsDaemonAbsentError(err) {
			answer.InForce, err = r.encodeConfigFile()
			source = "MCPProxy is not running. This is the configuration of the file."
		}
		if err != nil {
			return err
		}
		if answer.Error != "" {
			source += " It is not applied: " + toPrintable(answer.Error)
		}
		return r.printOutput(answer.InForce, func(p *printer) {
			fmt.Fprintln(p, formatPrintableJSON(answer.InForce))
			p.addNote("%s", source)
		})
	})}
}

// encodeConfigFile returns the configuration of the file, without secrets.
func (r *invocation) encodeConfigFile() (json.RawMessage, error) {
	live, err := r.openConfig()
	if err != nil {
		return nil, err
	}
	return wirejson.MarshalWithoutHTMLEscape(live.Current())
}

func newConfigPathCommand(r *invocation) commandSpec {
	return commandSpec{run: func(*cobra.Command, []string) error {
		path, err := r.resolveConfigPath()
		if err != nil {
			return err
		}
		v := struct {
			Path string `json:"path"`
		}{path}
		return r.printOutput(v, func(p *printer) { fmt.Fprintln(p, toPrintable(v.Path)) })
	}}
}

// confirmedConfigChanges is the output of `config confirm`. It lists the confirmed changes.
type confirmedConfigChanges struct {
	Confirmed []ops.KeyDifference `json:"confirmed"`
}

func newConfigConfirmCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) error {
		before, err := api.GetConfig.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		if before.Error != "" {
			return problem.New(problem.InvalidConfig, before.Error, "Correct the file first. To check it, run `mcpproxy config validate`.")
		}
		waits := before.UnconfirmedWhy != "" || len(before.Unconfirmed) > 0
		if waits {
			writeUnconfirmedChanges(r.newPrinter(r.Stderr), before)
			if _, err = api.ConfirmConfig.Call(ctx, c, ops.Nothing{}); err != nil {
				return err
			}
		}
		return r.printOutput(confirmedConfigChanges{before.Unconfirmed}, func(p *printer) {
			if waits {
				p.writeLine("All changes in %s are active.", toPrintable(before.Path))
			} else {
				p.writeLine("Nothing in %s awaits confirmation.", toPrintable(before.Path))
			}
		})
	})}
}

// writeUnconfirmedChanges shows the unconfirmed changes, each with the current value and the value in the file.
func writeUnconfirmedChanges(p *printer, c ops.Config) {
	if c.UnconfirmedWhy != "" {
		p.writeWrapped("", "The confirmed changes are not valid: "+toPrintable(c.UnconfirmedWhy)+".")
	}
	if len(c.Unconfirmed) > 0 {
		p.writeLine("These changes grant more access and await confirmation:")
	}
	for _, d := range c.Unconfirmed {
		p.writeLine("%s", escapeInvisibleLine(d.Key))
		p.writeWrapped("  - ", escapeInvisibleLine(string(d.From)))
		p.writeWrapped("  + ", escapeInvisibleLine(string(d.To)))
	}
	if slices.ContainsFunc(c.Unconfirmed, func(d ops.KeyDifference) bool { return strings.Contains(string(d.To), "***") }) {
		p.writeWrapped("", "*** hides a secret. Check it in the file: a command can look like a secret.")
	}
}
