package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand(r *invocation) commandSpec {
	return commandSpec{run: func(*cobra.Command, []string) error {
		noted := readBuildSettings()
		v := struct {
			Version string `json:"version"`
			Commit  string `json:"commit,omitempty"`
			Date    string `json:"date,omitempty"`
			Go      string `json:"go"`
			System  string `json:"system"`
		}{r.Version, cmp.Or(r.Commit, noted["vcs.revision"]), cmp.Or(r.Date, noted["vcs.time"]), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
		return r.printOutput(v, func(p *printer) {
			fmt.Fprintf(p, "mcpproxy %s (", v.Version)
			if v.Commit != "" {
				fmt.Fprintf(p, "commit %.12s of %s, ", v.Commit, cmp.Or(v.Date, "unknown date"))
			}
			fmt.Fprintf(p, "%s, %s)\n", v.Go, v.System)
		})
	}}
}

// readBuildSettings returns the build settings that the go command recorded. It returns none if the sources were
// modified.
func readBuildSettings() map[string]string {
	noted := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			noted[s.Key] = s.Value
		}
	}
	if noted["vcs.modified"] == "true" {
		return nil
	}
	return noted
}
