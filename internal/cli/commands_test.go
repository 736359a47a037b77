package cli

import (
	"strings"
	"testing"
)

// All commands and flags in commands.md exist, and each command has a run function.
func TestCommandsMatchTheirDocs(t *testing.T) {
	t.Parallel()
	root := newInvocation(Deps{}).newRootCommand()
	for _, text := range parseCommandTexts() {
		cmd, _, err := root.Find(strings.Fields(text.path)[1:])
		if err != nil || cmd.CommandPath() != text.path {
			t.Errorf("%s: %v", text.path, err)
			continue
		}
		if !cmd.HasSubCommands() && cmd.Args(cmd, []string{"a", "b", "c"}) == nil && !strings.Contains(text.arguments, "...") && cmd.Name() != "help" {
			t.Errorf("%s does nothing", text.path)
		}
		for flag := range text.flags {
			known := cmd.PersistentFlags().Lookup(flag) != nil || cmd.Flags().Lookup(flag) != nil
			for _, below := range cmd.Commands() {
				known = known || below.Flags().Lookup(flag) != nil
			}
			if !known {
				t.Errorf("%s: commands.md describes the flag --%s, which does not exist", text.path, flag)
			}
		}
	}
}
