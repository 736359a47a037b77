package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/search"
)

func upstreamSet(r *run) *cobra.Command {
	var key string
	var unset bool
	cmd := &cobra.Command{
		Use:   "set <server> <key> <value>...",
		Short: "Set how a server is trusted and limited",
		Long: `Sets one key of a server in the configuration file, keeping its comments and order,
and puts it into effect. The keys:

  trust           manual, scan or auto: what becomes of tools that nobody has approved
  enabled_tools   names or patterns: the only tools that may be called
  disabled_tools  names or patterns: tools that may not be called
  hint_overrides  one JSON object: pattern to hints that count instead of the server's

How a server is launched is not changed like this: remove it and add it anew.`,
		Example: "  mcpproxy upstream set github trust manual\n" +
			"  mcpproxy upstream set github disabled_tools 'delete_*' transfer_repo\n" +
			"  mcpproxy upstream set github hint_overrides '{\"list_*\": {\"readOnlyHint\": true}}'\n" +
			"  mcpproxy upstream set github disabled_tools --unset",
		Args: func(cmd *cobra.Command, args []string) error {
			return exactly("server", "key")(cmd, args[:min(len(args), 2)])
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				return r.live(cmd, typed, serverNames), cobra.ShellCompDirectiveNoFileComp
			case len(args) == 1:
				return gateway.ChangeableKeys(), cobra.ShellCompDirectiveNoFileComp
			case args[1] == "trust":
				return config.TrustWords(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: does(r, api.ChangeServer, func(args []string) (in api.Change, err error) {
			in.Name, in.Key = args[0], args[1]
			in.Value, err = setting(in.Key, args[2:], unset)
			key = in.Key
			return in, err
		}, func(p *printer, v gateway.ServerView) {
			fmt.Fprintf(p, "%s of %s is %s.\n", key, oneLine(v.Name), map[bool]string{false: "set", true: "taken out"}[unset])
		}),
	}
	cmd.Flags().BoolVar(&unset, "unset", false, "take the key out of the file")
	return cmd
}

// setting is the value of a key as it stands in the file; nil takes it out.
func setting(key string, values []string, unset bool) (json.RawMessage, error) {
	keys := gateway.ChangeableKeys()
	switch {
	case !slices.Contains(keys, key):
		hint := "The keys are " + strings.Join(keys, ", ") + "."
		if near := search.Nearest(key, keys, 1); len(near) > 0 {
			hint = "Did you mean " + near[0] + "?"
		}
		return nil, usage("There is no key '"+printable(key)+"' that can be set like this.", hint)
	case unset && len(values) > 0:
		return nil, usage("Give either a value or --unset.", "")
	case unset:
		return nil, nil
	case len(values) == 0:
		return nil, usage("Missing argument: value.", "Or take the key out with --unset.")
	case strings.HasSuffix(key, "_tools"):
		return json.Marshal(values)
	case len(values) > 1:
		return nil, usage("Unexpected argument '"+printable(values[1])+"'.", "The key "+key+" has one value.")
	case key == "trust":
		return json.Marshal(values[0])
	}
	if !json.Valid([]byte(values[0])) {
		return nil, usage("Invalid value for "+key+": it must be JSON.", `Give one object, in single quotes for the shell: '{"list_*": {"readOnlyHint": true}}'.`)
	}
	return json.RawMessage(values[0]), nil
}
