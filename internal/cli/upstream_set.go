package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
)

func upstreamSet(r *run) command {
	var infer string
	var unset bool
	members := map[string]*memberChanges{"env": {flag: "--env", between: "="}, "headers": {flag: "--header", between: ":"}}
	env, headers := members["env"], members["headers"]
	return command{
		flags: map[string]any{
			"unset": &unset, "env": &env.given, "unset-env": &env.unset, "header": &headers.given, "unset-header": &headers.unset,
			"infer-hints": &infer,
		},
		args: func(cmd *cobra.Command, args []string) error {
			if env.any() || headers.any() || infer != "" {
				return exactly("server")(cmd, args)
			}
			return exactly("server", "key")(cmd, args[:min(len(args), 2)])
		},
		complete: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				return r.live(serverNames)(cmd, args, typed)
			case len(args) == 1:
				return ops.ChangeableServerKeys(), cobra.ShellCompDirectiveNoFileComp
			case args[1] == "trust":
				return config.TrustValues(), cobra.ShellCompDirectiveNoFileComp
			case args[1] == "infer_hints":
				return config.InferValues(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
			in := api.Change{ServerChange: ops.ServerChange{ServerRef: ops.ServerRef{Name: args[0]}}}
			var err error
			switch {
			case env.any() && (headers.any() || infer != "" || unset), headers.any() && (infer != "" || unset):
				return usage("One change at a time: give --env, or --header, or --infer-hints, or --unset with a key.", "")
			case infer != "":
				args = append(args, "infer_hints", infer)
				in.Key = "infer_hints"
			case env.any():
				in.Key = "env"
			case headers.any():
				in.Key = "headers"
			default:
				in.Key = args[1]
			}
			if given := members[in.Key]; given != nil && given.any() {
				in.Value, err = given.value()
			} else {
				in.Value, err = settingValue(in.Key, args[2:], unset)
			}
			if err != nil {
				return err
			}
			v, err := changeOrOffline(r, ctx, c, api.ChangeServer, in, func(f ops.OfflineAdmin, in api.Change) (ops.ServerView, error) {
				return f.ChangeServer(in.ServerChange)
			})
			if err != nil {
				return err
			}
			return r.print(v, func(p *printer) {
				p.line("%s of %s is %s.", in.Key, oneLine(v.Name), map[bool]string{false: "set", true: "taken out"}[in.Value == nil])
				writeWarnings(p, v)
				if v.Quarantined {
					p.note("It waits for your review: `mcpproxy upstream approve %s`.", quotedWord(v.Name))
				}
			})
		}),
	}
}

// memberChanges are the flags that change members of a key.
type memberChanges struct {
	flag, between string
	given, unset  []string
}

func (m *memberChanges) any() bool { return len(m.given)+len(m.unset) > 0 }

// value returns the members as JSON: null removes one.
func (m *memberChanges) value() (json.RawMessage, error) {
	set, err := pairs(m.flag, m.given, m.between)
	if err != nil {
		return nil, err
	}
	all := map[string]*string{}
	for name, value := range set {
		all[name] = &value
	}
	for _, name := range m.unset {
		if _, both := all[name]; both || name == "" {
			return nil, usage("Invalid value '"+printable(name)+"' for --unset-"+m.flag[2:]+": it must be the name of one that is not set at the same time.", "")
		}
		all[name] = nil
	}
	return wirejson.Marshal(all)
}

// settingValue returns the JSON value of a key; nil removes it.
func settingValue(key string, values []string, unset bool) (json.RawMessage, error) {
	keys := ops.ChangeableServerKeys()
	switch {
	case !slices.Contains(keys, key):
		hint := "The keys are " + strings.Join(keys, ", ") + "."
		if near := search.ClosestName(key, keys); near != "" {
			hint = "Did you mean " + near + "?"
		}
		return nil, usage("There is no key '"+printable(key)+"' that can be set like this.", hint)
	case unset && len(values) > 0:
		return nil, usage("Give either a value or --unset.", "")
	case unset:
		return nil, nil
	case len(values) == 0:
		return nil, usage("Missing argument: value.", "Or take the key out with --unset.")
	case strings.HasSuffix(key, "_tools") || key == "command":
		return json.Marshal(values)
	case len(values) > 1:
		return nil, usage("Unexpected argument '"+printable(values[1])+"'.", "The key "+key+" has one value.")
	case slices.Contains([]string{"trust", "infer_hints", "call_timeout", "url", "working_dir"}, key):
		return wirejson.Marshal(values[0])
	}
	if !json.Valid([]byte(values[0])) {
		return nil, usage("Invalid value for "+key+": it must be JSON.", `Give one object, in single quotes for the shell: '{"list_*": {"readOnlyHint": true}}'.`)
	}
	return json.RawMessage(values[0]), nil
}
