package doctor

import (
	"fmt"
	"regexp"
	"strings"

	"mcpproxy/internal/ops"
)

// skipWithoutClients returns a skipped finding if the clients are unknown, otherwise nil.
func skipWithoutClients(f *Facts) []Finding {
	switch {
	case !f.ClientsKnown:
		return skippedFinding("The clients on this machine could not be listed.")
	case f.ClientsErr != "":
		return skippedFinding("The clients cannot be checked: " + f.ClientsErr)
	case f.Clients == nil:
		return skippedFinding("No MCP client was found on this machine.")
	}
	return nil
}

func checkNoClientConnected(f *Facts) []Finding {
	if out := skipWithoutClients(f); out != nil {
		return out
	}
	var names []string
	for _, c := range f.Clients {
		if c.LeadsTo != "" {
			return nil
		}
		names = append(names, c.Name)
	}
	return singleFinding(Finding{State: Warn, What: "None of the clients on this machine uses MCPProxy: " + strings.Join(names, ", ") + ".",
		Do: "Connect them. The command shows all changes first.", Command: f.cliCommand("connect --all")})
}

// newClientCheck returns a check that calls look for each client. The client is the subject of the findings.
func newClientCheck(look func(f *Facts, c *ClientFacts) []Finding) func(*Facts) []Finding {
	return func(f *Facts) []Finding {
		out := skipWithoutClients(f)
		for i := range f.Clients {
			for _, found := range look(f, &f.Clients[i]) {
				found.Subject = f.Clients[i].Name
				out = append(out, found)
			}
		}
		return out
	}
}

func checkForeignClientEntries(f *Facts, c *ClientFacts) []Finding {
	return reportIf(c.Foreign, Finding{State: Bad, What: fmt.Sprintf("The entry of %s in %s has the address %s, which is not this MCPProxy.", c.Name, c.Path, c.LeadsTo),
		Do: "Connect it again.", Command: f.cliCommand("connect %s", ops.ShellQuote(c.ID))})
}

func checkMissingClientPrograms(f *Facts, c *ClientFacts) []Finding {
	return reportIf(c.Missing != "", Finding{State: Bad, What: fmt.Sprintf("The entry of %s in %s starts %s, which does not exist.", c.Name, c.Path, c.Missing),
		Do: "Connect it again.", Command: f.cliCommand("connect %s", ops.ShellQuote(c.ID))})
}

func checkClientPermissions(f *Facts, c *ClientFacts) []Finding {
	if len(c.Lanes) == 0 {
		return nil
	}
	found := Finding{State: Warn, Do: "Write the rules. The command shows all changes first.", Command: f.cliCommand("permissions %s --write", ops.ShellQuote(c.ID))}
	if c.Written {
		found.Do, found.Command = "The rules are written, but another setting overrides them. This command names it:", f.cliCommand("permissions %s --check", ops.ShellQuote(c.ID))
	}
	chosen := true // all deviations are lanes that the user denied, so the finding is a note
	for _, l := range c.Lanes {
		chosen = chosen && l.Denied
		found.Lines = append(found.Lines, fmt.Sprintf("%s: %s, should be: %s (%s)", l.Name, l.Does, l.Want, l.Rule))
	}
	if chosen {
		found.State, found.Do = Note, "MCPProxy does not remove a denial. Remove it in the client if you do not want it. The command enables a disabled entry."
		found.Command = f.cliCommand("connect %s", ops.ShellQuote(c.ID))
	}
	found.What = fmt.Sprintf("The permission rules of %s do not match the lanes.", c.Name)
	if len(found.Lines) == 1 {
		found.What, found.Lines = fmt.Sprintf("The permission rules of %s do not match the lanes: %s.", c.Name, found.Lines[0]), nil
	}
	return singleFinding(found)
}

func checkBrokenClientFiles(f *Facts) (out []Finding) {
	out = skipWithoutClients(f)
	for _, c := range f.Clients {
		for _, broken := range c.Broken {
			path, _, _ := strings.Cut(broken, ": ")
			out = append(out, Finding{State: Bad, Subject: c.Name, What: fmt.Sprintf("A file of %s cannot be read: %s.", c.Name, strings.TrimSuffix(broken, ".")),
				Do: "Correct the file.", Command: fmt.Sprintf(`"${EDITOR:-vi}" +%d %s`, lineInError(broken), ops.ShellQuote(path))})
		}
	}
	return out
}

var atLine = regexp.MustCompile(`: line (\d+), `)

// lineInError returns the line number in an error text, or 1 if it contains none.
func lineInError(text string) int {
	line := 1
	_, _ = fmt.Sscan(firstSubmatch(atLine, text), &line)
	return line
}

func checkClientsBypassingMCPProxy(f *Facts, c *ClientFacts) []Finding {
	return reportIf(c.LeadsTo != "" && !c.Foreign && len(c.Direct) > 0,
		Finding{State: Warn, What: fmt.Sprintf("%s connects to these servers directly, not through MCPProxy: %s.", c.Name, strings.Join(c.Direct, ", ")),
			Do: "Import them, and remove them from the client's file. The command shows all changes first.", Command: f.cliCommand("upstream import %s --remove", ops.ShellQuote(c.ID))})
}
