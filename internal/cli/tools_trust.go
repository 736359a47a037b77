package cli

import (
	"context"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
)

// addApprovalFields adds the fields about the approval of a tool and about disabling it.
func addApprovalFields(p *printer, f *fieldList, t *ops.Trust) {
	if t == nil {
		return
	}
	f.add("Reason", waitReasonText(t.Reason))
	if t.Approved != "" {
		f.add("Approved", strings.TrimSpace(p.formatTime(t.ApprovedAt)+" by "+toOneLine(t.ApprovedBy)))
	}
	if t.OffBy != "" {
		f.add("Disabled", strings.TrimSpace(p.formatTime(t.OffAt)+" by "+toOneLine(t.OffBy)))
	}
}

func writeToolDisabled(p *printer, v ops.ToolView) {
	p.writeLine("%s is disabled.", toOneLine(v.Name))
}

func writeToolEnabled(p *printer, v ops.ToolView) {
	p.writeLine("%s is enabled.", toOneLine(v.Name))
	noteToolStillLocked(p, v.Status)
}

func newToolsDiffCommand(r *invocation) commandSpec {
	kind := kindFlag("tool")
	return commandSpec{
		flags: map[string]any{"kind": (*string)(&kind)}, complete: completeFirstArgument(r.completeFromDaemon(waitingNames(&kind, nil))),
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			of, err := kind.parseDefinitionRef(args[0])
			if err != nil {
				return err
			}
			d, err := of.fetchDiff(ctx, c)
			if err != nil {
				return err
			}
			return r.printOutput(d.response, func(p *printer) { writeDefinitionDiff(p, d) })
		}),
	}
}

func newToolsApproveCommand(r *invocation) commandSpec {
	var f approveFlags
	kind := kindFlag("tool")
	return commandSpec{
		flags: map[string]any{
			"kind": (*string)(&kind), "yes": &f.yes, "fingerprint": &f.fingerprint,
			"server": &f.server, "all": &f.all, "with-findings": &f.withFindings,
		},
		args: atMostArguments(1), complete: completeFirstArgument(r.completeFromDaemon(waitingNames(&kind, nil))),
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			kind, err := kind.parseKind()
			if err != nil {
				return err
			}
			server, one, err := f.parseApprovalTarget(kind, args)
			switch {
			case err != nil:
				return err
			case server != "":
				return approveCleanDefinitions(r, ctx, c, kind, server, f)
			}
			return confirmAndApproveDefinition(r, ctx, c, one, f.confirmationFlags)
		}),
	}
}

// newBlockOrUnblockCommand returns a command that blocks or unblocks one definition. Without a fingerprint, it is the
// current definition.
func newBlockOrUnblockCommand(r *invocation, decision definitionDecision) commandSpec {
	var seen ops.SeenFingerprint
	kind := kindFlag("tool")
	return commandSpec{
		flags: map[string]any{"kind": (*string)(&kind), "fingerprint": &seen.Fingerprint}, complete: completeFirstArgument(r.completeFromDaemon(decision.complete(&kind))),
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			of, err := kind.parseDefinitionRef(args[0])
			if err != nil {
				return err
			}
			return decision.run(r, ctx, c, of, seen)
		}),
	}
}
