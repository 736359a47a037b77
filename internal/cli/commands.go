package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// commandSpec is the implementation of a command: its flags, arguments and run function. Its texts are in commands.md.
type commandSpec struct {
	// flags maps flag names to pointers to variables. The variables contain the default values.
	flags map[string]any
	args  cobra.PositionalArgs // nil means the arguments of the synopsis
	// complete completes the arguments. If it is nil, the first argument is completed according to its name in the
	// synopsis.
	complete cobra.CompletionFunc
	// completeFlags complete values of flags for which commands.md names no kind of value.
	completeFlags map[string]cobra.CompletionFunc
	run           func(*cobra.Command, []string) error // nil: a group of commands
	list          bool                                 // it prints a list, so that -q applies; true for each command named list
}

// commaListFlag is a flag with comma-separated values.
type commaListFlag []string

//go:embed commands.md
var commandsMarkdown string

// commandText is a section of commands.md.
type commandText struct {
	path      string   // such as "mcpproxy tools list"
	arguments string   // such as "<server:tool>"
	groups    []string // for the program all groups in order, for a command its group
	short     string
	long      string
	example   string
	flags     map[string]flagText
}

type flagText struct{ letter, values, usage string }

// parseCommandTexts parses commands.md: the program itself first, parents before children.
func parseCommandTexts() []commandText {
	var all []commandText
	for _, section := range strings.Split(commandsMarkdown, "\n## ")[1:] {
		head, body, _ := strings.Cut(section, "\n")
		t := commandText{path: head, flags: map[string]flagText{}}
		if at := strings.IndexAny(head, "<["); at >= 0 {
			t.path, t.arguments = head[:at-1], head[at:]
		}
		t.short, body, _ = strings.Cut(body, "\n")
		var long, examples []string
		for line := range strings.SplitSeq(body, "\n") {
			if example, ok := strings.CutPrefix(line, "$ "); ok {
				examples = append(examples, "  "+example)
			} else if group, ok := strings.CutPrefix(line, "@ "); ok {
				t.groups = append(t.groups, group)
			} else if flag, ok := strings.CutPrefix(line, "- --"); ok {
				t.parseFlagLine(flag)
			} else {
				long = append(long, line)
			}
		}
		t.long, t.example = strings.TrimSpace(strings.Join(long, "\n")), strings.Join(examples, "\n")
		all = append(all, t)
	}
	return all
}

// parseFlagLine parses the line of a flag in the form "name -letter {values}  usage".
func (t *commandText) parseFlagLine(line string) {
	head, usage, _ := strings.Cut(line, "  ")
	head, values, _ := strings.Cut(head, " {")
	name, letter, _ := strings.Cut(head, " -")
	t.flags[name] = flagText{letter, strings.TrimSuffix(values, "}"), usage}
}

// newCommandTree builds the command tree. The keys of all are command paths. It adds the groups that contain the
// commands.
func (r *invocation) newCommandTree(all map[string]commandSpec) *cobra.Command {
	made, texts := map[string]*cobra.Command{}, map[string]commandText{}
	for _, t := range parseCommandTexts() {
		above := t.path[:max(strings.LastIndexByte(t.path, ' '), 0)]
		for flag, text := range texts[above].flags {
			if _, own := t.flags[flag]; !own {
				t.flags[flag] = text
			}
		}
		cmd := r.newCobraCommand(t, all[t.path])
		delete(all, t.path)
		cmd.Use = strings.TrimSpace(t.path[len(above):] + " " + t.arguments)
		made[t.path], texts[t.path] = cmd, t
		if parent := made[above]; parent != nil {
			parent.AddCommand(cmd)
			cmd.GroupID = strings.Join(t.groups, "")
			continue
		}
		for _, group := range t.groups {
			cmd.AddGroup(&cobra.Group{ID: group, Title: group + ":"})
		}
	}
	for path := range all {
		panic("commands.md has no section for " + path)
	}
	return made["mcpproxy"]
}

// aliasesOfName returns the aliases of a command with the last word name.
func aliasesOfName(name string) []string {
	return map[string][]string{"list": {"ls"}, "show": {"get"}, "get": {"show"}, "remove": {"rm", "delete"}, "delete": {"rm", "remove"}, "pause": {"stop-calls"}}[name]
}

// newCobraCommand builds one command.
func (r *invocation) newCobraCommand(t commandText, c commandSpec) *cobra.Command {
	name := t.path[strings.LastIndexByte(t.path, ' ')+1:]
	cmd := &cobra.Command{Aliases: aliasesOfName(name), Short: t.short, Long: t.long, Example: t.example, Args: c.args, ValidArgsFunction: c.complete, RunE: c.run}
	names := strings.Fields(strings.NewReplacer("<", "", ">", "", "[", "", "]", "").Replace(t.arguments))
	switch {
	case c.run == nil:
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, runCommandGroup
	case cmd.Args != nil:
	case strings.HasPrefix(t.arguments, "["):
		cmd.Args = atMostArguments(len(names))
	default:
		cmd.Args = exactArguments(names...)
	}
	if complete := r.completionForValueKind(strings.Join(names, " ")); complete != nil && c.complete == nil {
		cmd.ValidArgsFunction = completeFirstArgument(complete)
	}
	if run, complete := cmd.RunE, cmd.ValidArgsFunction; complete != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return suggestName(cmd, args, complete, run(cmd, args)) }
	}
	flags := cmd.Flags()
	if t.path == "mcpproxy" {
		flags = cmd.PersistentFlags()
	}
	if name == "list" || c.list {
		registerFlag(flags, "quiet", t.flags["quiet"], &r.quiet)
	}
	for name, variable := range c.flags {
		text, described := t.flags[name]
		if strings.Contains(text.usage, "%s") {
			text.usage = fmt.Sprintf(text.usage, strings.Join(fixedValuesOfKind(text.values), ", "))
		}
		registerFlag(flags, name, text, variable)
		if !described {
			flags.Lookup(name).Hidden = true
		}
		complete := r.completionForValueKind(text.values)
		if own := c.completeFlags[name]; own != nil {
			complete = own
		}
		if complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, complete)
		}
	}
	return cmd
}

// registerFlag registers a flag. The type of the variable determines the type of the flag.
func registerFlag(flags *pflag.FlagSet, name string, text flagText, variable any) {
	switch v := variable.(type) {
	case *string:
		flags.StringVarP(v, name, text.letter, *v, text.usage)
	case *bool:
		flags.BoolVarP(v, name, text.letter, *v, text.usage)
	case *boundedIntFlag:
		flags.VarP(v, name, text.letter, text.usage)
	case *time.Duration:
		flags.VarP((*positiveDurationFlag)(v), name, text.letter, text.usage)
	case *[]string:
		flags.StringArrayVarP(v, name, text.letter, *v, text.usage)
	case *commaListFlag:
		flags.StringSliceVarP((*[]string)(v), name, text.letter, *v, text.usage)
	default:
		panic(fmt.Sprintf("the flag --%s has an unsupported variable type: %T", name, v))
	}
}

// boundedIntFlag is a flag with a number from 1 to max.
type boundedIntFlag struct {
	value *int
	max   int
}

// String formats the value. String, Set and Type implement pflag.Value.
func (f *boundedIntFlag) String() string {
	if f.value == nil {
		return ""
	}
	return strconv.Itoa(*f.value)
}

func (f *boundedIntFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > f.max {
		return fmt.Errorf("must be at least 1 and at most %d", f.max)
	}
	*f.value = n
	return nil
}

func (f *boundedIntFlag) Type() string { return "int" }

// positiveDurationFlag is a flag with a positive duration.
type positiveDurationFlag time.Duration

// String formats the value. String, Set and Type implement pflag.Value.
func (f *positiveDurationFlag) String() string {
	if *f == 0 {
		return "0"
	}
	return time.Duration(*f).String()
}

func (f *positiveDurationFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("must be a duration longer than 0, such as 500ms, 30s, 2m or 1h")
	}
	*f = positiveDurationFlag(d)
	return nil
}

func (f *positiveDurationFlag) Type() string { return "duration" }

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

// parseTimeFlag parses a duration before now, a time or a date, in local time by default. It returns the zero time for
// "".
func (r *invocation) parseTimeFlag(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, ok := activity.ParseDuration(s); ok {
		return r.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, r.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, newUsageError("Invalid value '"+s+"' for "+flag+": must be a span such as 2h or 7d, or a time such as 2026-01-15 10:30:00", "")
}
