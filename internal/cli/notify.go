package cli

import (
	"context"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/notify"
	"mcpproxy/internal/problem"
)

func newNotifyTestCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) error {
		out, err := api.TestNotifications.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		if err := r.printOutput(out, func(p *printer) { writeNotifyTest(p, out) }); err != nil {
			return err
		}
		for _, one := range out.Receivers {
			if one.Error != "" {
				return problem.New(problem.ServerUnavailable, "A receiver did not accept the notification.", "Fix `notify` in the configuration, then run `mcpproxy notify test` again.")
			}
		}
		return nil
	})}
}

func writeNotifyTest(p *printer, out notify.TestResult) {
	list[notify.ReceiverResult]{
		none: "No receiver is configured: notify.desktop is off, and notify.webhooks has no entry.",
		columns: []column[notify.ReceiverResult]{
			{title: "RECEIVER", text: func(o notify.ReceiverResult) string { return o.Receiver }},
			{title: "RESULT", text: func(o notify.ReceiverResult) string {
				if o.Error != "" {
					return "failed: " + o.Error
				}
				return "sent"
			}},
		},
	}.write(p, out.Receivers)
}
