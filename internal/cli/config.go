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

// validity is what `config validate` says of a file that is right.
type validity struct {
	Path     string   `json:"path"`
	Exists   bool     `json:"exists"`
	Valid    bool     `json:"valid"`
	Warnings []string `json:"warnings"`
}

func configValidate(r *run) command {
	return command{run: func(_ *cobra.Command, args []string) error {
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
		return r.print(v, func(p *printer) { writeValidity(p, v) })
	}}
}

func writeValidity(p *printer, v validity) {
	if v.Exists {
		p.line("%s is valid.", printable(v.Path))
	} else {
		p.line("There is no file %s yet: the defaults hold.", printable(v.Path))
	}
	for _, warning := range v.Warnings {
		p.note("%s %s", p.paint(care, "Warning:"), printable(warning))
	}
}

// open reads the configuration as the daemon would.
func (r *run) open(path string) (*config.Live, error) {
	return config.Open(path, config.Options{DataDir: r.dataDir, Lookup: r.lookup})
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
