package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

func (r *run) configCommand() *cobra.Command {
	return group("config", "The configuration file",
		"  mcpproxy config path\n  mcpproxy config validate\n  mcpproxy config show",
		r.configValidate(), r.configShow(), r.configPathCommand())
}

// validity is what `config validate` says of a file that is right.
type validity struct {
	Path     string   `json:"path"`
	Exists   bool     `json:"exists"`
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"`
}

func (r *run) configValidate() *cobra.Command {
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
			return r.print(v, func(w io.Writer) { r.writeValidity(w, v) })
		},
	}
}

func (r *run) writeValidity(w io.Writer, v validity) {
	if v.Exists {
		fmt.Fprintf(w, "%s is valid.\n", printable(v.Path))
	} else {
		fmt.Fprintf(w, "There is no file %s yet: the defaults hold.\n", printable(v.Path))
	}
	for _, warning := range v.Warnings {
		r.note("%s %s", r.paint(care, "Warning:"), printable(warning))
	}
}

func (r *run) configShow() *cobra.Command {
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
			return r.print(current, func(w io.Writer) {
				raw, err := encode(current)
				if err != nil {
					r.note("The configuration cannot be shown: %v", err)
					return
				}
				fmt.Fprintln(w, prettyJSON(raw))
			})
		},
	}
}

func (r *run) configPathCommand() *cobra.Command {
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
			return r.print(v, func(w io.Writer) { fmt.Fprintln(w, printable(v.Path)) })
		},
	}
}
