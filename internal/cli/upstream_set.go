package cli

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/search"
)

func upstreamSet(r *run) command {
	var key, infer string
	var unset bool
	return command{
		flags: map[string]any{"unset": &unset, "infer-hints": &infer},
		args: func(cmd *cobra.Command, args []string) error {
			if infer != "" {
				return exactly("server")(cmd, args)
			}
			return exactly("server", "key")(cmd, args[:min(len(args), 2)])
		},
		complete: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				return r.live(serverNames)(cmd, args, typed)
			case len(args) == 1:
				return gateway.ChangeableKeys(), cobra.ShellCompDirectiveNoFileComp
			case args[1] == "trust":
				return config.TrustWords(), cobra.ShellCompDirectiveNoFileComp
			case args[1] == "infer_hints":
				return config.InferWords(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		run: does(r, api.ChangeServer, func(args []string) (in api.Change, err error) {
			if infer != "" {
				args = append(args, "infer_hints", infer)
			}
			in.Name, in.Key = args[0], args[1]
			in.Value, err = setting(in.Key, args[2:], unset)
			key = in.Key
			return in, err
		}, func(p *printer, v gateway.ServerView) {
			p.line("%s of %s is %s.", key, oneLine(v.Name), map[bool]string{false: "set", true: "taken out"}[unset])
		}),
	}
}

// setting is the value of a key as it stands in the file; nil takes it out.
func setting(key string, values []string, unset bool) (json.RawMessage, error) {
	keys := gateway.ChangeableKeys()
	switch {
	case !slices.Contains(keys, key):
		hint := "The keys are " + strings.Join(keys, ", ") + "."
		if near := search.Meant(key, keys); near != "" {
			hint = "Did you mean " + near + "?"
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
	case key == "trust", key == "infer_hints":
		return json.Marshal(values[0])
	}
	if !json.Valid([]byte(values[0])) {
		return nil, usage("Invalid value for "+key+": it must be JSON.", `Give one object, in single quotes for the shell: '{"list_*": {"readOnlyHint": true}}'.`)
	}
	return json.RawMessage(values[0]), nil
}
