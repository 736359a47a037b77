package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/scan"
	"mcpproxy/internal/tool"
)

// addTrust adds what was decided about a tool.
func (r *run) addTrust(f *fields, t *gateway.Trust) {
	if t == nil {
		return
	}
	f.add("Waits", waitsBecause(t.Reason))
	if t.Approved != "" {
		f.add("Approved", strings.TrimSpace(r.moment(t.ApprovedAt)+" by "+oneLine(t.ApprovedBy)))
	}
	if t.OffBy != "" {
		f.add("Switched off", strings.TrimSpace(r.moment(t.OffAt)+" by "+oneLine(t.OffBy)))
	}
}

func (r *run) toolsSwitch(use string, on bool) *cobra.Command {
	word, long := "off", "Switches a tool off: nobody can call it until it is switched on again. It can still be found with its reason."
	if on {
		word, long = "on", "Switches a tool on that was switched off. What locks it besides, such as the configuration, stays."
	}
	return &cobra.Command{
		Use:               use + " <server:tool>",
		Short:             "Switch a tool " + word,
		Long:              long,
		Example:           "  mcpproxy tools " + use + " github:delete_repo",
		Args:              exactly("server:tool"),
		ValidArgsFunction: r.complete(toolNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			id, err := toolID(args[0])
			if err != nil {
				return err
			}
			v, err := c.SwitchTool(ctx, id, on)
			if err != nil {
				return err
			}
			return r.print(v, func(w io.Writer) {
				fmt.Fprintf(w, "%s is switched %s.\n", oneLine(v.Name), word)
				if on {
					r.stillLocked(v)
				}
			})
		}),
	}
}

// stillLocked says why a tool cannot be called all the same.
func (r *run) stillLocked(v gateway.ToolView) {
	for _, s := range policy.Statuses() {
		if v.Status == s.String() {
			r.note("It cannot be called all the same, its status is %s. %s", v.Status, s.Remedy())
		}
	}
}

func (r *run) toolsDiff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff <server:tool>",
		Short: "What an approval of a tool would change",
		Long: `Shows a tool's definition beside the one that is approved: hint by hint, texts
word by word as [-removed-]{+added+}, other values line by line. A tool that was
never approved is shown whole. Characters that cannot be seen, or that move
others, stand as their code points, such as <U+202E>.`,
		Example:           "  mcpproxy tools diff github:create_issue\n  mcpproxy tools diff github:create_issue -o json",
		Args:              exactly("server:tool"),
		ValidArgsFunction: r.complete(waitingTools),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			id, err := toolID(args[0])
			if err != nil {
				return err
			}
			d, err := c.DiffTool(ctx, id)
			if err != nil {
				return err
			}
			return r.print(d, func(w io.Writer) { r.writeDiff(w, d) })
		}),
	}
}

// approveFlags are the flags of tools approve.
type approveFlags struct {
	consent
	server       string
	all          bool
	withFindings bool
}

func (r *run) toolsApprove() *cobra.Command {
	var f approveFlags
	cmd := &cobra.Command{
		Use:   "approve <server:tool> | <server>:* | --server <server> --all",
		Short: "Approve a tool's definition",
		Long: `Shows what would be approved, as ` + "`mcpproxy tools diff`" + ` does, and asks. What is
approved is exactly what was shown: if it is another by then, nothing happens.

With <server>:* or --server --all it lists and approves all tools of a server that
wait, but those that the scanner has found something in, or could not look at in
full: approve these one by one, or with --with-findings. A definition that
was blocked is only approved by itself.

Without a terminal give --fingerprint, as an earlier diff shows it, or --yes.`,
		Example: "  mcpproxy tools approve github:create_issue\n" +
			"  mcpproxy tools approve github:create_issue --fingerprint 4f2a…\n" +
			"  mcpproxy tools approve 'github:*'\n  mcpproxy tools approve --server github --all --yes",
		Args:              atMost(1),
		ValidArgsFunction: r.complete(waitingTools),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			server, id, err := f.which(args)
			switch {
			case err != nil:
				return err
			case server != "":
				return r.approveAll(ctx, c, server, f)
			}
			return r.approveOne(ctx, c, id, f.consent)
		}),
	}
	f.flags(cmd, "definition")
	flags := cmd.Flags()
	flags.StringVar(&f.server, "server", "", "with --all: the `server`")
	flags.BoolVar(&f.all, "all", false, "all tools of --server that wait")
	flags.BoolVar(&f.withFindings, "with-findings", false, "with <server>:* or --all: those with findings, too")
	_ = cmd.RegisterFlagCompletionFunc("server", r.completeFlag(serverNames))
	return cmd
}

// which is what is to be approved: all of a server, or one tool.
func (f approveFlags) which(args []string) (server string, id tool.ID, err error) {
	switch {
	case f.all != (f.server != ""):
		return "", id, usage("--server and --all go together.", "Say `mcpproxy tools approve --server NAME --all`.")
	case f.all && len(args) > 0:
		return "", id, usage("Give either a tool, or --server and --all.", "")
	case f.all:
		server = f.server
	case len(args) == 0:
		return "", id, usage("Missing argument: server:tool.", "See `mcpproxy approvals` for what waits.")
	default:
		if id, err = toolID(args[0]); err != nil {
			return "", id, err
		}
		if id.Tool == "*" && f.fingerprint == "" { // with one, it is the name of a tool
			server = id.Server
		}
	}
	if server == "" && f.withFindings {
		return "", id, usage("--with-findings is for many tools at once.", "A single tool is shown with its findings and approved by its name.")
	}
	if server != "" && f.fingerprint != "" {
		return "", id, usage("--fingerprint is for a single tool.", "")
	}
	return server, id, nil
}

func (r *run) approveOne(ctx context.Context, c *api.Client, id tool.ID, given consent) error {
	fingerprint := given.fingerprint
	if fingerprint == "" {
		d, err := c.DiffTool(ctx, id)
		if err != nil {
			return err
		}
		if d.Reason == "" {
			return r.print(d, func(w io.Writer) { fmt.Fprintf(w, "%s is approved already.\n", visibleLine(d.Name)) })
		}
		if r.output == formatTable {
			r.writeDiff(r.Stdout, d)
			fmt.Fprintln(r.Stdout)
		}
		if err := r.consented(ctx, given, "Approve this definition of "+visibleLine(d.Name)+"?", seeThenSay("tools diff", "tools approve", id.String(), d.Fingerprint)); err != nil {
			return err
		}
		fingerprint = d.Fingerprint
	}
	v, err := c.ApproveTool(ctx, id, fingerprint)
	if err != nil {
		return lookAgain(err, "approved", "mcpproxy tools diff "+quotedWord(id.String()))
	}
	return r.print(v, func(w io.Writer) {
		fmt.Fprintf(w, "Approved %s.\n", visibleLine(v.Name))
		r.stillLocked(v)
	})
}

// seeThenSay is how to approve without a terminal.
func seeThenSay(look, approve, name, fingerprint string) string {
	name = quotedWord(name)
	return fmt.Sprintf("Look with `mcpproxy %s %s`, then approve exactly that with `mcpproxy %s %s --fingerprint %s`; or approve whatever it is with --yes.",
		look, name, approve, name, visibleLine(fingerprint))
}

// lookAgain says what to do when something else was there than was seen.
func lookAgain(err error, done, command string) error {
	if p := problem.From(err); p.Code == problem.Conflict {
		return p.WithHint("Nothing was " + done + ". See what is there now with `" + command + "`.")
	}
	return err
}

func (r *run) toolsBlock() *cobra.Command {
	var fingerprint string
	cmd := &cobra.Command{
		Use:   "block <server:tool>",
		Short: "Refuse a tool's definition",
		Long: `Refuses the definition that a tool has now. When it was the approved one, it is so
no more. Neither it nor another definition of the tool is accepted without you from
then on, whatever the trust of its server.`,
		Example:           "  mcpproxy tools block github:create_issue",
		Args:              exactly("server:tool"),
		ValidArgsFunction: r.complete(toolNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			id, err := toolID(args[0])
			if err != nil {
				return err
			}
			pinned := fingerprint
			if pinned == "" {
				d, err := c.DiffTool(ctx, id)
				if err != nil {
					return err
				}
				pinned = d.Fingerprint
			}
			v, err := c.BlockTool(ctx, id, pinned)
			if err != nil {
				return lookAgain(err, "blocked", "mcpproxy tools diff "+quotedWord(id.String()))
			}
			return r.print(v, func(w io.Writer) { fmt.Fprintf(w, "Blocked %s.\n", visibleLine(v.Name)) })
		}),
	}
	cmd.Flags().StringVar(&fingerprint, "fingerprint", "", "block exactly the definition with this `fingerprint`")
	return cmd
}

// bulk is what came of approving many tools.
type bulk struct {
	Approved []string              `json:"approved"`
	Skipped  []gateway.WaitingTool `json:"skipped"`
	Failed   []failed              `json:"failed"`
}

type failed struct {
	Name  string           `json:"name"`
	Error *problem.Problem `json:"error"`
}

func (r *run) approveAll(ctx context.Context, c *api.Client, server string, f approveFlags) error {
	if _, err := c.Server(ctx, server); err != nil {
		return err
	}
	waiting, err := c.Approvals(ctx)
	if err != nil {
		return err
	}
	for _, s := range waiting.Servers {
		if s.Name == server {
			return problem.Newf(problem.ToolLocked, "Server '%s' is quarantined: its tools are approved with it.", printable(server)).
				WithHint("Review it with `mcpproxy upstream approve " + quotedWord(server) + "`.")
		}
	}
	done := bulk{Approved: []string{}, Skipped: []gateway.WaitingTool{}, Failed: []failed{}}
	var wanted []gateway.WaitingTool
	for _, t := range waiting.Tools {
		switch {
		case t.Server != server:
		case t.Reason == "blocked" || !f.withFindings && suspicious(t):
			done.Skipped = append(done.Skipped, t)
		default:
			wanted = append(wanted, t)
		}
	}
	if r.output == formatTable {
		r.writeBulk(r.Stdout, wanted, done.Skipped)
	}
	r.noteLeftOut(waiting)
	if len(wanted) > 0 {
		if err := r.consented(ctx, f.consent, "Approve "+counted(len(wanted), "tool")+" of "+visibleLine(server)+"?",
			"Look with `mcpproxy approvals`, then approve them one by one, or all with --yes."); err != nil {
			return err
		}
	}
	return r.carryOut(ctx, c, wanted, done)
}

// suspicious says that a person has to look at the tool by itself.
func suspicious(t gateway.WaitingTool) bool {
	return t.Verdict != scan.Clean || len(t.Findings) > 0
}

func (r *run) writeBulk(w io.Writer, wanted, skipped []gateway.WaitingTool) {
	if len(wanted) > 0 {
		fmt.Fprintln(w, "To be approved:")
		r.waitingTable(wanted).write(w)
		fmt.Fprintln(w)
	}
	if len(skipped) > 0 {
		fmt.Fprintln(w, "Left out, to be approved one by one:")
		r.waitingTable(skipped).write(w)
		fmt.Fprintln(w)
	}
	if len(wanted)+len(skipped) == 0 {
		r.note("No tool of this server waits.")
	}
}

func (r *run) waitingTable(tools []gateway.WaitingTool) *table {
	t := &table{run: r, header: []string{"TOOL", "WAITS", "SCANNER", "LOOSENS", "SEE"}}
	for _, v := range tools {
		t.addWhole(visibleLine(v.Name), visibleLine(string(v.Reason)), r.verdict(v.Verdict, len(v.Findings)), strings.Join(v.Loosened, ", "),
			"mcpproxy tools diff "+quotedWord(v.Name))
	}
	return t
}

// carryOut approves each tool as it was listed. One that fails does not keep
// the others from being approved.
func (r *run) carryOut(ctx context.Context, c *api.Client, wanted []gateway.WaitingTool, done bulk) error {
	for _, t := range wanted {
		if _, err := c.ApproveTool(ctx, tool.ID{Server: t.Server, Tool: t.Tool}, t.Fingerprint); err != nil {
			done.Failed = append(done.Failed, failed{t.Name, problem.From(err)})
			continue
		}
		done.Approved = append(done.Approved, t.Name)
	}
	err := r.print(done, func(w io.Writer) {
		if len(done.Approved) > 0 {
			fmt.Fprintf(w, "Approved %s.\n", counted(len(done.Approved), "tool"))
		}
		for _, one := range done.Failed {
			r.note("Not approved: %s: %s", visibleLine(one.Name), printable(one.Error.Message))
		}
	})
	if err != nil || len(done.Failed) == 0 {
		return err
	}
	return problem.Newf(done.Failed[0].Error.Code, "%s could not be approved.", counted(len(done.Failed), "tool")).
		WithHint("See what waits now with `mcpproxy approvals`.")
}
