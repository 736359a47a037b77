package cli

import (
	"context"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
)

func newToolsSetCommand(r *invocation) commandSpec {
	var given ops.ToolSettings
	var changes []config.ToolSettingChange
	return commandSpec{
		flags: map[string]any{"alias": &given.Alias, "description": &given.Description, "add-description": &given.AddDescription, "always": &given.Always},
		args: func(cmd *cobra.Command, args []string) error {
			for _, one := range []struct {
				flag, key string
				value     any
			}{
				{"alias", "alias", given.Alias}, {"description", "description", given.Description},
				{"add-description", "add_description", given.AddDescription}, {"always", "always", given.Always},
			} {
				if !cmd.Flags().Changed(one.flag) {
					continue
				}
				change := config.ToolSettingChange{Key: one.key}
				if one.value != "" && one.value != false { // else the setting is removed
					value, err := wirejson.MarshalWithoutHTMLEscape(one.value)
					if err != nil {
						return err
					}
					change.Value = value
				}
				changes = append(changes, change)
			}
			if len(changes) == 0 {
				return newUsageError("Nothing to set: pass --alias, --description, --add-description or --always.", "Usage: `"+cmd.UseLine()+"`.")
			}
			return exactArguments("server:tool")(cmd, args)
		},
		run: operationRunFunc(r, api.ChangeTool, func(ctx context.Context, c *api.Client, args []string) (api.ToolChange, error) {
			id, err := parseToolID(args[0])
			return api.ToolChange{ToolChange: ops.ToolChange{ToolRef: ops.ToolRef(id), Changes: changes}}, err
		}, writeToolSettings),
	}
}

func writeToolSettings(p *printer, v ops.ToolView) {
	if v.Settings == nil {
		p.writeLine("%s has the server's name and description.", toOneLine(v.Name))
		return
	}
	var f fieldList
	f.add("Tool", toOneLine(v.Name))
	addToolSettingFields(&f, v)
	f.add("Your description", toOneLine(v.Settings.Description))
	f.add("You added", toOneLine(v.Settings.AddDescription))
	f.write(p)
}

// addToolSettingFields adds the user's settings for a tool, marked as such.
func addToolSettingFields(f *fieldList, v ops.ToolView) {
	if v.ShadowedBy != "" {
		f.add("Hidden", "its name is the alias of "+toOneLine(v.ShadowedBy)+"; available only on /mcp/servers/"+toOneLine(v.Server))
	}
	s := v.Settings
	if s == nil {
		return
	}
	f.add("Your alias", toOneLine(s.Alias))
	if s.Always {
		f.add("Always", "first in each answer of retrieve_tools")
	}
}
