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
	return &Finding{State: Warn, What: fmt.Sprintf("Tools of %s that do not say whether they read or write: %d; of these look like reads: %d.", s.Name, u.Tools, u.Reads),
		Do: "Have what they seem to do count; what is guessed wrong is corrected with hint_overrides.", Command: f.cliCommand("upstream set %s --infer-hints enforce", ops.ShellQuote(s.Name))}
}

func checkDefinitionsAwaitApproval(f *Facts, s *ServerFacts) *Finding {
	if s.Waiting == 0 || !s.shouldRun() {
		return nil
	}
	found := Finding{State: Warn, What: fmt.Sprintf("What %s offers and you have not approved (tools, prompts, resources, instructions): %d.", s.Name, s.Waiting),
		Do: "Look at it with `" + f.cliCommand("approvals") + "`, and approve or block it; all of the server at once:", Command: f.cliCommand("upstream approve %s", ops.ShellQuote(s.Name))}
	if f.Daemon == nil {
		found.Do, found.Command = "Start MCPProxy; then look at it with `"+f.cliCommand("approvals")+"`.", f.cliCommand("serve")
	}
	return &found
}

func checkUnmatchedToolPatterns(f *Facts, s *ServerFacts) *Finding {
	if len(s.Idle) == 0 || !s.shouldRun() || !s.isReady() || s.ToolCount == 0 {
		return nil
	}
	return &Finding{State: Warn, What: fmt.Sprintf("Patterns that fit no tool of %s: %s.", s.Name, strings.Join(s.Idle, ", ")),
		Do: "See what its tools are called, then correct enabled_tools or disabled_tools in the configuration file.", Command: f.cliCommand("tools list --server %s", ops.ShellQuote(s.Name))}
}

func checkApprovalsLost(f *Facts, d *DaemonFacts) []Finding {
	s := d.findDiagnostic("approvals_lost")
	if s.State == OK {
		return nil
	}
	var out []Finding
	for _, server := range f.Servers {
		if server.Waiting > 0 && server.shouldRun() && len(out) < maxFindings {
			out = append(out, Finding{State: Bad, Subject: server.Name, What: s.Detail, Do: "Approve server " + server.Name + " again, after a look at it.",
				Command: f.cliCommand("upstream approve %s", ops.ShellQuote(server.Name))})
		}
	}
	if out == nil {
		out = singleFinding(Finding{State: Bad, What: s.Detail, Do: "See what waits, when the servers are there.", Command: f.cliCommand("approvals")})
	}
	return out
}
