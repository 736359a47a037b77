package doctor

import (
	"fmt"
	"strings"

	"mcpproxy/internal/ops"
)

func checkToolsWithoutHints(f *Facts, s *ServerFacts) *Finding {
	u := s.Unhinted
	if u == nil || !s.shouldRun() {
		return nil
	}
	return &Finding{State: Warn, What: fmt.Sprintf("Tools of %s without hints: %d. Tools that look like reads: %d.", s.Name, u.Tools, u.Reads),
		Do: "Enforce inferred hints. Correct wrong ones with hint_overrides.", Command: f.cliCommand("upstream set %s --infer-hints enforce", ops.ShellQuote(s.Name))}
}

func checkDefinitionsAwaitApproval(f *Facts, s *ServerFacts) *Finding {
	if s.Waiting == 0 || !s.shouldRun() {
		return nil
	}
	found := Finding{State: Warn, What: fmt.Sprintf("Tools, prompts, resources and instructions of %s that wait for your approval: %d.", s.Name, s.Waiting),
		Do: "Review them with `" + f.cliCommand("approvals") + "`, then approve or block each. To approve the whole server:", Command: f.cliCommand("upstream approve %s", ops.ShellQuote(s.Name))}
	if f.Daemon == nil {
		found.Do, found.Command = "Start MCPProxy. Then review them with `"+f.cliCommand("approvals")+"`.", f.cliCommand("serve")
	}
	return &found
}

func checkUnmatchedToolPatterns(f *Facts, s *ServerFacts) *Finding {
	if len(s.Idle) == 0 || !s.shouldRun() || !s.isReady() || s.ToolCount == 0 {
		return nil
	}
	return &Finding{State: Warn, What: fmt.Sprintf("Patterns that match no tool of %s: %s.", s.Name, strings.Join(s.Idle, ", ")),
		Do: "List its tools, then correct enabled_tools or disabled_tools in the configuration file.", Command: f.cliCommand("tools list --server %s", ops.ShellQuote(s.Name))}
}

func checkApprovalsLost(f *Facts, d *DaemonFacts) []Finding {
	s := d.findDiagnostic("approvals_lost")
	if s.State == OK {
		return nil
	}
	var out []Finding
	for _, server := range f.Servers {
		if server.Waiting > 0 && server.shouldRun() && len(out) < maxFindings {
			out = append(out, Finding{State: Bad, Subject: server.Name, What: s.Detail, Do: "Review server " + server.Name + " and approve it again.",
				Command: f.cliCommand("upstream approve %s", ops.ShellQuote(server.Name))})
		}
	}
	if out == nil {
		out = singleFinding(Finding{State: Bad, What: s.Detail, Do: "When the servers are connected, review what waits.", Command: f.cliCommand("approvals")})
	}
	return out
}
