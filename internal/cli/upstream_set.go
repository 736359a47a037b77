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

func newUpstreamSetCommand(r *invocation) commandSpec {
	var infer string
	var unset bool
	members := map[string]*envOrHeaderChangeFlags{"env": {flag: "--env", between: "="}, "headers": {flag: "--header", between: ":"}}
	env, headers := members["env"], members["headers"]
	return commandSpec{
		flags: map[string]any{
			"unset": &unset, "env": &env.given, "unset-env": &env.unset, "header": &headers.given, "unset-header": &headers.unset,
			"infer-hints": &infer,
		},
		args: func(cmd *cobra.Command, args []string) error {
			if env.anyGiven() || headers.anyGiven() || infer != "" {
				return exactArguments("server")(cmd, args)
			}
			return exactArguments("server", "key")(cmd, args[:min(len(args), 2)])
		},
		complete: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			switch {
			case len(args) == 0:
				return r.completeFromDaemon(serverNames)(cmd, args, typed)
			case len(args) == 1:
				return ops.ChangeableServerKeys(), cobra.ShellCompDirectiveNoFileComp
			case args[1] == "trust":
				return config.TrustValues(), cobra.ShellCompDirectiveNoFileComp
			case args[1] == "infer_hints":
				return config.InferValues(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			in := api.Change{ServerChange: ops.ServerChange{ServerRef: ops.ServerRef{Name: args[0]}}}
			var err error
			switch {
			case env.anyGiven() && (headers.anyGiven() || infer != "" || unset), headers.anyGiven() && (infer != "" || unset):
				return newUsageError("Change one setting at a time: pass --env, --header, --infer-hints, or --unset with a key.", "")
			case infer != "":
				args = append(args, "infer_hints", infer)
				in.Key = "infer_hints"
			case env.anyGiven():
				in.Key = "env"
			case headers.anyGiven():
				in.Key = "headers"
			default:
				in.Key = args[1]
				if m := members[in.Key]; m != nil {
					m.setFromArguments(in.Key, args[2:], unset)
				}
			}
			if given := members[in.Key]; given != nil && given.anyGiven() {
				in.Value, err = given.toJSON()
			} else {
				in.Value, err = encodeSettingValue(in.Key, args[2:], unset)
			}
			if err != nil {
				return err
			}
			v, err := callDaemonOrOffline(r, ctx, c, api.ChangeServer, in, func(f ops.OfflineAdmin, in api.Change) (ops.ServerView, error) {
				return f.ChangeServer(in.ServerChange)
			})
			if err != nil {
				return err
			}
			return r.printOutput(v, func(p *printer) {
				p.writeLine("%s %s of %s.", map[bool]string{false: "Set", true: "Removed"}[in.Value == nil], in.Key, toOneLine(v.Name))
				noteServerWarnings(p, v)
				if v.Quarantined {
					p.addNote("To review it, run `mcpproxy upstream approve %s`.", shellQuoteWord(v.Name))
				}
			})
		}),
	}
}

// envOrHeaderChangeFlags are the flags that set and remove members of a configuration key, such as env.
type envOrHeaderChangeFlags struct {
	flag, between string
	given, unset  []string
}

func (m *envOrHeaderChangeFlags) anyGiven() bool { return len(m.given)+len(m.unset) > 0 }

// setFromArguments sets or removes members named in the arguments after the key. It ignores a JSON object, which
// replaces the whole key, and an unset without members, which removes it.
func (m *envOrHeaderChangeFlags) setFromArguments(key string, values []string, unset bool) {
	m.flag = key
	switch {
	case unset:
		m.unset = values
	case len(values) > 0 && !strings.HasPrefix(values[0], "{"):
		m.given = values
	}
}

// toJSON returns the changes as a JSON object, in which null removes a member.
func (m *envOrHeaderChangeFlags) toJSON() (json.RawMessage, error) {
	set, err := parsePairs(m.flag, m.given, m.between)
	if err != nil {
		return nil, err
	}
	all := map[string]*string{}
	for name, value := range set {
		all[name] = &value
	}
	for _, name := range m.unset {
		if _, both := all[name]; both || name == "" {
			return nil, newUsageError("Invalid value '"+toPrintable(name)+"' for --unset-"+strings.TrimPrefix(m.flag, "--")+": it must be a name that the command does not also set.", "")
		}
		all[name] = nil
	}
	return wirejson.MarshalWithoutHTMLEscape(all)
}

// encodeSettingValue returns the JSON value of a configuration key, or nil to remove the key.
func encodeSettingValue(key string, values []string, unset bool) (json.RawMessage, error) {
	keys := ops.ChangeableServerKeys()
	switch {
	case !slices.Contains(keys, key):
		hint := "The keys are " + strings.Join(keys, ", ") + "."
		if near := search.ClosestName(key, keys); near != "" {
			hint = "Did you mean " + near + "?"
		}
		return nil, newUsageError("The key '"+toPrintable(key)+"' cannot be set here.", hint)
	case unset && len(values) > 0:
		return nil, newUsageError("Give either a value or --unset.", "")
	case unset:
		return nil, nil
	case len(values) == 0:
		return nil, newUsageError("Missing argument: value.", "To remove the key, pass --unset.")
	case strings.HasSuffix(key, "_tools") || key == "command":
		return json.Marshal(values)
	case len(values) > 1:
		return nil, newUsageError("Unexpected argument '"+toPrintable(values[1])+"'.", "The key "+key+" has one value.")
	case slices.Contains([]string{"trust", "infer_hints", "call_timeout", "url", "working_dir"}, key):
		return wirejson.MarshalWithoutHTMLEscape(values[0])
	}
	if !json.Valid([]byte(values[0])) {
		return nil, newUsageError("Invalid value for "+key+": it must be JSON.", `Give one object, in single quotes for the shell: '{"list_*": {"readOnlyHint": true}}'.`)
	}
	return json.RawMessage(values[0]), nil
}
