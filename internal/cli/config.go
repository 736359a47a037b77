package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

func configCommand(r *run) *cobra.Command {
	return group("config", "The configuration file",
		"  mcpproxy config path\n  mcpproxy config validate\n  mcpproxy config show",
		configValidate(r), configShow(r), configPathCommand(r))
}

// validity is what `config validate` says of a file that is right.
type validity struct {
	Path     string   `json:"path"`
	Exists   bool     `json:"exists"`
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"`
}

func configValidate(r *run) *cobra.Command {
	return &cobra.Command{
		Use:     "validate [file]",
		Short:   "Say everything that is wrong with the file",
		Example: "  mcpproxy config validate\n  mcpproxy config validate ./mcp_config.json",
		Args:    atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := r.configFile()
			if len(args) > 0 {
				path, err = config.ResolvePath(args[0], r.lookup)
			}
			if err != nil {
				return err
			}
			live, err := config.Open(path, config.Options{DataDir: r.dataDir, Lookup: r.lookup})
			if err != nil {
				return err
			}
			_, err = os.Stat(path)
			v := validity{path, !errors.Is(err, fs.ErrNotExist), true, append([]string{}, live.Warnings()...)}
			if !v.Exists && len(args) > 0 {
				return problem.Newf(problem.NotFound, "There is no file %s.", printable(path))
			}
			return r.print(v, func(p *printer) { writeValidity(p, v) })
		},
	}
}

func writeValidity(p *printer, v validity) {
	if v.Exists {
		fmt.Fprintf(p, "%s is valid.\n", printable(v.Path))
	} else {
		fmt.Fprintf(p, "There is no file %s yet: the defaults hold.\n", printable(v.Path))
	}
	for _, warning := range v.Warnings {
		p.note("%s %s", p.paint(care, "Warning:"), printable(warning))
	}
}

func configShow(r *run) *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "The effective configuration, with defaults and without secrets",
		Example: "  mcpproxy config show\n  mcpproxy config show -o yaml",
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			path, err := r.configFile()
			if err != nil {
				return err
			}
			live, err := config.Open(path, config.Options{DataDir: r.dataDir, Lookup: r.lookup})
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
		},
	}
}

func configPathCommand(r *run) *cobra.Command {
	return &cobra.Command{
		Use:     "path",
		Short:   "Where the file is, or would be",
		Example: "  mcpproxy config path\n  $EDITOR \"$(mcpproxy config path)\"",
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			path, err := r.configFile()
			if err != nil {
				return err
			}
			v := struct {
				Path string `json:"path"`
			}{path}
			return r.print(v, func(p *printer) { fmt.Fprintln(p, printable(v.Path)) })
		},
	}
}
