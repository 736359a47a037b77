package doctor

import (
	"fmt"
	"regexp"
	"strings"

	"mcpproxy/internal/ops"
	"mcpproxy/internal/upstream"
)

// mistakeKind is the kind of a configuration error.
type mistakeKind uint8

const (
	invalid mistakeKind = iota
	unknownKey
	valueMissing
)

// classifyMistake returns the kind of a configuration error. It recognizes the messages of package config.
func classifyMistake(m Mistake) mistakeKind {
	switch {
	case strings.HasPrefix(m.Message, "unknown key "):
		return unknownKey
	case unsetVariableOf(m) != "":
		return valueMissing
	}
	return invalid
}

var unsetVariable = regexp.MustCompile(`the environment variable ([A-Za-z_][A-Za-z0-9_]*)(?:, which)? is not set`)

// unsetVariableOf returns the environment variable that the error message names.
func unsetVariableOf(m Mistake) string { return firstSubmatch(unsetVariable, m.Message) }

func firstSubmatch(pattern *regexp.Regexp, s string) string {
	if m := pattern.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// formatMistake formats a configuration error with its position.
func (f *Facts) formatMistake(m Mistake) string {
	at := f.ConfigPath
	if m.Line > 0 {
		at += fmt.Sprintf(":%d:%d", m.Line, m.Column)
	}
	text := at + ": " + m.Message
	if m.Hint != "" {
		text += " (" + m.Hint + ")"
	}
	return text
}

// mistakesFinding returns all configuration errors of one kind as a single finding. Its command opens the position of
// the first error.
func (f *Facts) mistakesFinding(k mistakeKind, do string) []Finding {
	found := Finding{State: Bad, Do: do}
	for _, m := range f.Mistakes {
		if classifyMistake(m) != k {
			continue
		}
		if found.What == "" {
			found.What, found.Command = f.formatMistake(m)+".", f.editCommand(m.Line)
		}
		found.Lines = append(found.Lines, f.formatMistake(m))
	}
	if found.What == "" {
		return nil
	}
	if len(found.Lines) == 1 {
		found.Lines = nil
	}
	return singleFinding(found)
}

func checkConfigValid(f *Facts) []Finding {
	do := "Correct the file."
	if f.Daemon != nil {
		do = "Correct the file. Until then, the previous configuration stays active."
	}
	if f.EarlierConfig != "" {
		do += " The last valid text is in " + f.EarlierConfig + ", after its first line."
	}
	return f.mistakesFinding(invalid, do)
}

func checkUnknownKeys(f *Facts) []Finding {
	return f.mistakesFinding(unknownKey, "Correct the key, or remove it.")
}

func checkMissingVariables(f *Facts) []Finding {
	var out []Finding
	found := func(what string) {
		v := firstSubmatch(unsetVariable, what)
		if v == "" {
			return
		}
		run := f.cliCommand("serve")
		if f.Daemon != nil {
			run = f.restartDaemonCommand(f.Daemon.PID)
		}
		what = strings.TrimSuffix(what, ".") + "."
		if servers := f.Needs[v]; len(servers) > 0 && !strings.HasPrefix(what, "Server ") {
			what = "Server " + strings.Join(servers, ", ") + ": " + what
		}
		out = append(out, Finding{State: Bad, Subject: v, What: what,
			Do:      "Set it where MCPProxy starts. This command asks for the value and starts MCPProxy with it.",
			Command: fmt.Sprintf("read -r %s && export %s && %s", v, v, run)})
	}
	for _, m := range f.Mistakes {
		found(f.formatMistake(m))
	}
	if f.Daemon == nil {
		for _, w := range f.Warnings {
			found(w)
		}
		return out
	}
	for i := range f.Servers { // the daemon's environment is relevant, not that of this process
		if s := &f.Servers[i]; s.failedWith(upstream.VariableNeeded) {
			found("Server " + s.Name + " cannot start: " + s.notReadyReason())
		}
	}
	return out
}

func checkClearTextCredentials(f *Facts, s *ServerFacts) []Finding {
	if len(s.Clear) == 0 {
		return nil
	}
	first := s.Clear[0]
	kind, name, _ := strings.Cut(first.Place, ".")
	flag := "--env " + ops.ShellQuote(name+"=${keyring:"+first.Name+"}")
	if kind != "env" {
		flag = "--header " + ops.ShellQuote(name+": ${keyring:"+first.Name+"}")
	}
	var places []string
	for _, c := range s.Clear {
		places = append(places, c.Place)
	}
	return singleFinding(Finding{State: Warn, What: fmt.Sprintf("Server %s has a credential in plain text in the configuration file: %s.", s.Name, strings.Join(places, ", ")),
		Do:      "Store it in the keyring and refer to it there. The command asks for the value. If others may have read the file, replace the credential at its issuer.",
		Command: f.cliCommand("secrets set %s", ops.ShellQuote(first.Name)) + " && " + f.cliCommand("upstream set %s %s", ops.ShellQuote(s.Name), flag)})
}

func checkDuplicateServers(f *Facts) (out []Finding) {
	for _, s := range f.Servers {
		if s.DuplicateOf != "" {
			out = append(out, Finding{State: Warn, Subject: s.Name, What: fmt.Sprintf("Servers %s and %s have the same command or URL.", s.DuplicateOf, s.Name),
				Do: "Remove one of them.", Command: f.cliCommand("upstream remove %s", ops.ShellQuote(s.Name))})
		}
	}
	return out
}

func checkNeedsRestart(f *Facts, d *DaemonFacts) []Finding {
	return reportIf(len(d.NeedsRestart) > 0, Finding{State: Warn, What: "These changes require a restart: " + strings.Join(d.NeedsRestart, ", ") + ".",
		Do: "Restart MCPProxy.", Command: f.restartDaemonCommand(d.PID)})
}

func checkUnconfirmedConfig(f *Facts, d *DaemonFacts) []Finding {
	said := d.findDiagnostic("config_unconfirmed")
	if said.State == OK {
		return nil
	}
	found := Finding{State: said.State, What: strings.ToUpper(said.Detail[:1]) + said.Detail[1:] + ".",
		Do: "Review the changes. Confirm them, or remove them from the file.", Command: f.cliCommand("config confirm")}
	if p := d.Presence; p.Void != "" { // nothing can be confirmed until the user applies the remedy
		found.Do, found.Command = p.Remedy, f.cliCommand("presence test")
	}
	return singleFinding(found)
}

var positionPattern = regexp.MustCompile(`^[^:]+:(\d+):\d+: `)

func checkConfigWarnings(f *Facts) (out []Finding) {
	for _, w := range f.Warnings {
		if strings.Contains(w, " has the mode ") || unsetVariable.MatchString(w) || f.findFile(f.ConfigPath).Path == "" {
			continue // other checks report it, or there is no file to edit
		}
		line := 1
		_, _ = fmt.Sscan(firstSubmatch(positionPattern, w), &line)
		out = append(out, Finding{State: Warn, What: strings.TrimSuffix(w, ".") + ".", Do: "Remove it, or correct it as the hint says.", Command: f.editCommand(line)})
	}
	return out
}
