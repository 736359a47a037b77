package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/tool"
)

// addTrust adds what was decided about a tool.
func addTrust(p *printer, f *fields, t *gateway.Trust) {
	if t == nil {
		return
	}
	f.add("Waits", waitsBecause(t.Reason))
	if t.Approved != "" {
		f.add("Approved", strings.TrimSpace(p.moment(t.ApprovedAt)+" by "+oneLine(t.ApprovedBy)))
	}
	if t.OffBy != "" {
		f.add("Switched off", strings.TrimSpace(p.moment(t.OffAt)+" by "+oneLine(t.OffBy)))
	}
}

func toolsSwitch(r *run, use string, on bool) *cobra.Command {
	do, word, long := api.DisableTool, "off", "Switches a tool off: nobody can call it until it is switched on again. It can still be found with its reason."
	if on {
		do, word, long = api.EnableTool, "on", "Switches a tool on that was switched off. What locks it besides, such as the configuration, stays."
	}
	return &cobra.Command{
		Use:               use + " <server:tool>",
		Short:             "Switch a tool " + word,
		Long:              long,
		Example:           "  mcpproxy tools " + use + " github:delete_repo",
		Args:              exactly("server:tool"),
		ValidArgsFunction: r.complete(toolNames),
		RunE: does(r, do, toolNamed, func(p *printer, v gateway.ToolView) {
			fmt.Fprintf(p, "%s is switched %s.\n", oneLine(v.Name), word)
			if on {
				stillLocked(p, v)
			}
		}),
	}
}

func toolsDiff(r *run) *cobra.Command {
	var of kindFlag
	cmd := &cobra.Command{
		Use:   "diff <server:tool>",
		Short: "What an approval of a tool would change",
		Long: `Shows a tool's definition beside the one that is approved: hint by hint, texts
word by word as [-removed-]{+added+}, other values line by line. A tool that was
never approved is shown whole. Characters that cannot be seen, or that move
others, stand as their code points, such as <U+202E>.

With --kind it shows a prompt, a resource, a template, or the instructions of a
server.`,
		Example: "  mcpproxy tools diff github:create_issue\n  mcpproxy tools diff github:create_issue -o json\n" +
			"  mcpproxy tools diff --kind prompt github:review\n  mcpproxy tools diff --kind instructions github",
		Args:              exactly("server:tool"),
		ValidArgsFunction: r.complete(waitingTools),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			of, err := of.definition(args[0])
			if err != nil {
				return err
			}
			d, err := of.diff(ctx, c)
			if err != nil {
				return err
			}
			return r.print(d.answer, func(p *printer) { writeDiff(p, d) })
		}),
	}
	of.add(cmd)
	return cmd
}

func toolsApprove(r *run) *cobra.Command {
	var f approveFlags
	var of kindFlag
	cmd := &cobra.Command{
		Use:   "approve <server:tool> | <server>:* | --server <server> --all",
		Short: "Approve a tool's definition",
		Long: `Shows what would be approved, as ` + "`mcpproxy tools diff`" + ` does, and asks. What is
approved is exactly what was shown: if it is another by then, nothing happens.

With <server>:* or --server --all it lists and approves all tools of a server that
wait, but those that the scanner has found something in, or could not look at in
full: approve these one by one, or with --with-findings. A definition that
was blocked is only approved by itself.

With --kind it is about prompts, resources, templates, or the instructions of a
server. All of a server at once: ` + "`mcpproxy upstream approve`" + `.

Without a terminal give --fingerprint, as an earlier diff shows it, or --yes.`,
		Example: "  mcpproxy tools approve github:create_issue\n" +
			"  mcpproxy tools approve github:create_issue --fingerprint 4f2a…\n" +
			"  mcpproxy tools approve 'github:*'\n  mcpproxy tools approve --server github --all --yes\n" +
			"  mcpproxy tools approve --kind resource github:repo://readme",
		Args:              atMost(1),
		ValidArgsFunction: r.complete(waitingTools),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			kind, err := of.kind()
			if err != nil {
				return err
			}
			which := f.tools
			if kind != tool.KindTool {
				which = f.offers
			}
			server, one, err := which(kind, args)
			switch {
			case err != nil:
				return err
			case server != "":
				return approveAll(r, ctx, c, kind, server, f)
			}
			return approveOne(r, ctx, c, one, f.consent)
		}),
	}
	f.flags(cmd, "definition")
	of.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.server, "server", "", "with --all: the `server`")
	flags.BoolVar(&f.all, "all", false, "all tools of --server that wait")
	flags.BoolVar(&f.withFindings, "with-findings", false, "with <server>:* or --all: those with findings, too")
	_ = cmd.RegisterFlagCompletionFunc("server", r.completeFlag(serverNames))
	return cmd
}

func toolsBlock(r *run) *cobra.Command {
	var seen gateway.Seen
	var of kindFlag
	cmd := &cobra.Command{
		Use:   "block <server:tool>",
		Short: "Refuse a tool's definition",
		Long: `Refuses the definition that a tool has now. When it was the approved one, it is so
no more. Neither it nor another definition of the tool is accepted without you from
then on, whatever the trust of its server. With --kind it is about a prompt, a
resource, a template, or the instructions of a server.`,
		Example:           "  mcpproxy tools block github:create_issue\n  mcpproxy tools block --kind prompt github:review",
		Args:              exactly("server:tool"),
		ValidArgsFunction: r.complete(toolNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			of, err := of.definition(args[0])
			if err != nil {
				return err
			}
			return blockOne(r, ctx, c, of, seen)
		}),
	}
	of.add(cmd)
	cmd.Flags().StringVar(&seen.Fingerprint, "fingerprint", "", "block exactly the definition with this `fingerprint`")
	return cmd
}
