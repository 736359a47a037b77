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

func newUsageError(message, hint string) *problem.Problem {
	return problem.New(problem.Usage, message, hint)
}

// toFlagUsageError converts an error about flags to a usage error with a hint to the command's help. If there is an
// unknown subcommand, it reports that instead.
func toFlagUsageError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return unknownCommandError(cmd, words[0])
	}
	message := capitalizeFirst(err.Error())
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.Unwrap() != nil {
		message = fmt.Sprintf("Invalid value '%s' for --%s: %v", toPrintable(invalid.GetValue()), invalid.GetFlag().Name, invalid.Unwrap())
	}
	return newUsageError(message, "See `"+cmd.CommandPath()+" --help`.")
}

func capitalizeFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// runCommandGroup is the run function of a command group.
func runCommandGroup(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommandError(cmd, args[0])
}

// removedCallToolForms are command lines for the removed call_tool.
var removedCallToolForms = []string{"mcpproxy call tool", "mcpproxy call call_tool", "mcpproxy call_tool", "mcpproxy call-tool"}

func unknownCommandError(parent *cobra.Command, name string) error {
	if slices.Contains(removedCallToolForms, parent.CommandPath()+" "+name) {
		return newUsageError(policy.CallToolNotFoundText, "Name the lane: `mcpproxy call tool-read`, `mcpproxy call tool-write` or `mcpproxy call tool-destructive`.")
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
		hint = "Name the lane before the tool: " + strings.Join(names, ", ") + ". `mcpproxy tools show " + shellQuoteWord(name) + "` shows the right one."
	}
	return newUsageError(fmt.Sprintf("Unknown command '%s' for `%s`.", name, parent.CommandPath()), hint)
}

// suggestName adds the most similar completion to the error for an unknown name.
func suggestName(cmd *cobra.Command, args []string, complete cobra.CompletionFunc, err error) error {
	var p *problem.Problem
	if !errors.As(err, &p) || p.Code.ExitCode() != problem.ExitNotFound || strings.Contains(p.Hint, "Did you mean") {
		return err
	}
	for i, arg := range args {
		names, _ := complete(cmd, args[:i], "")
		if near := search.ClosestName(arg, names); near != "" && !slices.Contains(names, arg) {
			return p.WithHint("Did you mean '" + toOneLine(near) + "'? " + p.Hint)
		}
	}
	return err
}

// exactArguments requires exactly one argument for each name.
func exactArguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return newUsageError("Missing argument: "+names[len(args)]+".", "Usage: `"+cmd.UseLine()+"`.")
		}
		return checkMaxArguments(cmd, args, len(names))
	}
}

// atMostArguments allows up to n arguments.
func atMostArguments(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return checkMaxArguments(cmd, args, n) }
}

func checkMaxArguments(cmd *cobra.Command, args []string, n int) error {
	if len(args) > n {
		return newUsageError("Unexpected argument '"+args[n]+"'.", "Usage: `"+cmd.UseLine()+"`.")
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
