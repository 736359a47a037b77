package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/app"
	"mcpproxy/internal/demo"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/notify"
	"mcpproxy/internal/problem"
)

// errNotBuiltIn means that the program was built without the implementation of the command.
var errNotBuiltIn = errors.New("this program was built without the command")

func newServeCommand(r *invocation) commandSpec {
	var listen string
	return commandSpec{flags: map[string]any{"listen": &listen}, run: func(cmd *cobra.Command, _ []string) error {
		if r.Serve == nil {
			return errNotBuiltIn
		}
		person, _, _ := detectTerminal(r.Stderr)
		return r.Serve(cmd.Context(), app.Options{Terminal: person, ConfigPath: r.configPath, DataDir: r.dataDir, Listen: listen, Version: r.Version, Stderr: r.Stderr})
	}}
}

func newDemoCommand(r *invocation) commandSpec {
	o := demo.Options{Version: r.Version, Out: r.Stdout}
	return commandSpec{flags: map[string]any{"once": &o.Once, "listen": &o.Listen}, run: func(cmd *cobra.Command, _ []string) error {
		if r.Demo == nil {
			return errNotBuiltIn
		}
		return r.Demo(cmd.Context(), o)
	}}
}

// bashCompletionFallback changes the bash script so that it works without the package bash-completion, which some
// systems lack. The script then splits words at white space and completes file names with bash itself.
var bashCompletionFallback = strings.NewReplacer(
	`    _get_comp_words_by_ref "$@" cur prev words cword
`, `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line=${COMP_LINE:0:COMP_POINT}
    read -r -a words <<<"$line"
    if [[ $line == *[[:space:]] ]]; then
        words+=("")
    fi
    cword=$((${#words[@]}-1))
    cur=${words[cword]}
    prev=${words[cword-1]}
`,
	` _filedir`, ` __mcpproxy_filedir`,
	`"_filedir `, `"__mcpproxy_filedir `,
	"__start_mcpproxy()\n", `__mcpproxy_filedir()
{
    if declare -F _filedir >/dev/null 2>&1; then
        _filedir "$@"
    fi
}

__start_mcpproxy()
`)

// shells lists the shells that have a completion script.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletionCommand(r *invocation) commandSpec {
	return commandSpec{
		args: exactArguments("shell"), complete: newFixedCompletion(shells...),
		run: func(cmd *cobra.Command, args []string) error {
			script, err := generateCompletionScript(cmd.Root(), args[0])
			if err != nil {
				return err
			}
			_, err = r.Stdout.Write(script)
			return err
		},
	}
}

// generateCompletionScript returns the completion script for a shell.
func generateCompletionScript(root *cobra.Command, shell string) (script []byte, err error) {
	var out bytes.Buffer
	switch shell {
	case "bash":
		err = root.GenBashCompletionV2(&out, true)
		return []byte(bashCompletionFallback.Replace(out.String())), err
	case "zsh":
		err = root.GenZshCompletion(&out)
	case "fish":
		err = root.GenFishCompletion(&out, true)
	case "powershell":
		err = root.GenPowerShellCompletionWithDesc(&out)
	default:
		err = newUsageError("Invalid shell '"+shell+"': must be bash, zsh, fish, or powershell", "")
	}
	return out.Bytes(), err
}

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

func newNotifyTestCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) error {
		out, err := api.TestNotifications.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		if err := r.printOutput(out, func(p *printer) { writeNotifyTest(p, out) }); err != nil {
			return err
		}
		for _, one := range out.Receivers {
			if one.Error != "" {
				return problem.New(problem.ServerUnavailable, "A receiver did not accept the notification.", "Fix `notify` in the configuration, then run `mcpproxy notify test` again.")
			}
		}
		return nil
	})}
}

func writeNotifyTest(p *printer, out notify.TestResult) {
	list[notify.ReceiverResult]{
		none: "No receiver is configured: notify.desktop is off, and notify.webhooks has no entry.",
		columns: []column[notify.ReceiverResult]{
			{title: "RECEIVER", text: func(o notify.ReceiverResult) string { return o.Receiver }},
			{title: "RESULT", text: func(o notify.ReceiverResult) string {
				if o.Error != "" {
					return "failed: " + o.Error
				}
				return "sent"
			}},
		},
	}.write(p, out.Receivers)
}
