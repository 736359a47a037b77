package cli

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// command is the implementation of a command. Its texts are in commands.md.
type command struct {
	// flags are pointers to the variables of the flags, which hold their defaults.
	flags map[string]any
	args  cobra.PositionalArgs // nil: as in the synopsis
	// complete completes the arguments; nil completes the first one by its name.
	complete cobra.CompletionFunc
	run      func(*cobra.Command, []string) error // nil: a group of commands
}

// commaList is a flag with comma-separated values.
type commaList []string

//go:embed commands.md
var commandsText string

// commandText is a section of commands.md.
type commandText struct {
	path      string // as typed: "mcpproxy tools list"
	arguments string // "<server:tool>"
	short     string
	long      string
	example   string
	flags     map[string]flagText
}

type flagText struct{ letter, values, usage string }

// commandTexts parses commands.md: the program itself first, parents before children.
func commandTexts() []commandText {
	var all []commandText
	for _, section := range strings.Split(commandsText, "\n## ")[1:] {
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
			} else if flag, ok := strings.CutPrefix(line, "- --"); ok {
				t.addFlag(flag)
			} else {
				long = append(long, line)
			}
		}
		t.long, t.example = strings.TrimSpace(strings.Join(long, "\n")), strings.Join(examples, "\n")
		all = append(all, t)
	}
	return all
}

// addFlag parses the line of a flag: name -letter {values}  usage.
func (t *commandText) addFlag(line string) {
	head, usage, _ := strings.Cut(line, "  ")
	head, values, _ := strings.Cut(head, " {")
	name, letter, _ := strings.Cut(head, " -")
	t.flags[name] = flagText{letter, strings.TrimSuffix(values, "}"), usage}
}

// tree builds the command tree from commands by path, and the groups that contain them.
func (r *run) tree(all map[string]command) *cobra.Command {
	made, texts := map[string]*cobra.Command{}, map[string]commandText{}
	for _, t := range commandTexts() {
		above := t.path[:max(strings.LastIndexByte(t.path, ' '), 0)]
		for flag, text := range texts[above].flags {
			if _, own := t.flags[flag]; !own {
				t.flags[flag] = text
			}
		}
		cmd := r.command(t, all[t.path])
		delete(all, t.path)
		cmd.Use = strings.TrimSpace(t.path[len(above):] + " " + t.arguments)
		made[t.path], texts[t.path] = cmd, t
		if parent := made[above]; parent != nil {
			parent.AddCommand(cmd)
		}
	}
	for path := range all {
		panic("commands.md has no section for " + path)
	}
	return made["mcpproxy"]
}

// command builds one command.
func (r *run) command(t commandText, c command) *cobra.Command {
	cmd := &cobra.Command{Short: t.short, Long: t.long, Example: t.example, Args: c.args, ValidArgsFunction: c.complete, RunE: c.run}
	names := strings.Fields(strings.NewReplacer("<", "", ">", "").Replace(t.arguments))
	switch {
	case c.run == nil:
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, helpOrUnknown
	case cmd.Args != nil:
	case strings.HasPrefix(t.arguments, "["):
		cmd.Args = atMost(len(names))
	default:
		cmd.Args = exactly(names...)
	}
	if complete := r.values(strings.Join(names, " ")); complete != nil && c.complete == nil {
		cmd.ValidArgsFunction = firstOnly(complete)
	}
	flags := cmd.Flags()
	if t.path == "mcpproxy" {
		flags = cmd.PersistentFlags()
	}
	for name, variable := range c.flags {
		text := t.flags[name]
		if strings.Contains(text.usage, "%s") {
			text.usage = fmt.Sprintf(text.usage, strings.Join(vocabulary(text.values), ", "))
		}
		addFlag(flags, name, text, variable)
		if complete := r.values(text.values); complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, complete)
		}
	}
	return cmd
}

func addFlag(flags *pflag.FlagSet, name string, text flagText, variable any) {
	switch v := variable.(type) {
	case *string:
		flags.StringVarP(v, name, text.letter, *v, text.usage)
	case *bool:
		flags.BoolVarP(v, name, text.letter, *v, text.usage)
	case *atMostFlag:
		flags.VarP(v, name, text.letter, text.usage)
	case *time.Duration:
		flags.VarP((*waitFlag)(v), name, text.letter, text.usage)
	case *[]string:
		flags.StringArrayVarP(v, name, text.letter, *v, text.usage)
	case *commaList:
		flags.StringSliceVarP((*[]string)(v), name, text.letter, *v, text.usage)
	default:
		panic(fmt.Sprintf("the flag --%s has a variable of type %T", name, v))
	}
}
