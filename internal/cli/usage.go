package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
)

func usage(message, hint string) *problem.Problem { return problem.New(problem.Usage, message, hint) }

// flagError names the command whose help lists the flags. An unknown subcommand is reported first.
func flagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return unknownCommand(cmd, words[0])
	}
	message := sentence(err.Error())
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.Unwrap() != nil {
		message = fmt.Sprintf("Invalid value '%s' for --%s: %v", printable(invalid.GetValue()), invalid.GetFlag().Name, invalid.Unwrap())
	}
	return usage(message, "See `"+cmd.CommandPath()+" --help`.")
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// helpOrUnknown is the run function of a command group.
func helpOrUnknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

// oldCallTool are the forms in which users call the removed call_tool.
var oldCallTool = []string{"mcpproxy call tool", "mcpproxy call call_tool", "mcpproxy call_tool", "mcpproxy call-tool"}

func unknownCommand(parent *cobra.Command, name string) error {
	if slices.Contains(oldCallTool, parent.CommandPath()+" "+name) {
		return usage(policy.CallToolNotFoundText, "Say what the call does: `mcpproxy call tool-read`, `mcpproxy call tool-write` or `mcpproxy call tool-destructive`.")
	}
	var names []string
	for _, c := range parent.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	hint := "See `" + parent.CommandPath() + " --help`."
	if near := search.ClosestName(name, names); near != "" {
		hint = "Did you mean `" + parent.CommandPath() + " " + near + "`?"
	} else if parent.Name() == "call" && strings.Contains(name, ":") {
		hint = "Say what the call does before the name: " + strings.Join(names, ", ") + ". `mcpproxy tools show " + quotedWord(name) + "` says which one fits."
	}
	return usage(fmt.Sprintf("Unknown command '%s' for `%s`.", name, parent.CommandPath()), hint)
}

// exactly requires arguments with these names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usage("Missing argument: "+names[len(args)]+".", "Usage: `"+cmd.UseLine()+"`.")
		}
		return tooMany(cmd, args, len(names))
	}
}

// atMost allows up to n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return tooMany(cmd, args, n) }
}

func tooMany(cmd *cobra.Command, args []string, n int) error {
	if len(args) > n {
		return usage("Unexpected argument '"+args[n]+"'.", "Usage: `"+cmd.UseLine()+"`.")
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
