package cli

import (
	"context"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
)

// addTrust adds the decisions about a tool.
func addTrust(p *printer, f *fields, t *ops.Trust) {
	if t == nil {
		return
	}
	f.add("Waits", waitReason(t.Reason))
	if t.Approved != "" {
		f.add("Approved", strings.TrimSpace(p.moment(t.ApprovedAt)+" by "+oneLine(t.ApprovedBy)))
	}
	if t.OffBy != "" {
		f.add("Switched off", strings.TrimSpace(p.moment(t.OffAt)+" by "+oneLine(t.OffBy)))
	}
}

func writeSwitchedOff(p *printer, v ops.ToolView) {
	p.line("%s is switched off.", oneLine(v.Name))
}

func writeSwitchedOn(p *printer, v ops.ToolView) {
	p.line("%s is switched on.", oneLine(v.Name))
	noteStillLocked(p, v.Status)
}

func toolsDiff(r *run) command {
	kind := kindFlag("tool")
	return command{
		flags: map[string]any{"kind": (*string)(&kind)}, complete: firstOnly(r.live(waitingTools)),
		run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
			of, err := kind.definition(args[0])
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
}

func toolsApprove(r *run) command {
	var f approveFlags
	kind := kindFlag("tool")
	return command{
		flags: map[string]any{
			"kind": (*string)(&kind), "yes": &f.yes, "fingerprint": &f.fingerprint,
			"server": &f.server, "all": &f.all, "with-findings": &f.withFindings,
		},
		args: atMost(1), complete: firstOnly(r.live(waitingTools)),
		run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
			kind, err := kind.kind()
			if err != nil {
				return err
			}
			server, one, err := f.selection(kind, args)
			switch {
			case err != nil:
				return err
			case server != "":
				return approveAll(r, ctx, c, kind, server, f)
			}
			return approveOne(r, ctx, c, one, f.consent)
		}),
	}
}

func toolsBlock(r *run) command { return decideOne(r, blockOne) }

func toolsUnblock(r *run) command { return decideOne(r, unblockOne) }

// decideOne returns a command that decides about one definition: the listed one, unless a fingerprint is given.
func decideOne(r *run, decide func(*run, context.Context, *api.Client, definition, ops.SeenFingerprint) error) command {
	var seen ops.SeenFingerprint
	kind := kindFlag("tool")
	return command{
		flags: map[string]any{"kind": (*string)(&kind), "fingerprint": &seen.Fingerprint},
		run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
			of, err := kind.definition(args[0])
			if err != nil {
				return err
			}
			return decide(r, ctx, c, of, seen)
		}),
	}
}
