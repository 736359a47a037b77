package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/process"
	"mcpproxy/internal/upstream/sandbox"
)

// maxFindings limits the number of findings per check.
const maxFindings = 100

// newServerCheck returns a check that calls look for each server. The server is the subject of the findings.
func newServerCheck(look func(f *Facts, s *ServerFacts) []Finding) func(*Facts) []Finding {
	return func(f *Facts) (out []Finding) {
		if f.Daemon == nil && f.Servers == nil && len(f.Mistakes) > 0 {
			return skippedFinding("The servers are unknown: the configuration file is invalid.")
		}
		for i := range f.Servers {
			for _, found := range look(f, &f.Servers[i]) {
				found.Subject = f.Servers[i].Name
				out = append(out, found)
			}
		}
		return out[:min(len(out), maxFindings)]
	}
}

// newServerCheckWithDaemon is like newServerCheck, for checks that need a running daemon.
func newServerCheckWithDaemon(look func(f *Facts, s *ServerFacts) []Finding) func(*Facts) []Finding {
	return newDaemonCheck(func(f *Facts, _ *DaemonFacts) []Finding { return newServerCheck(look)(f) })
}

// newFailureCheck returns a check for servers that the daemon reports with a failure code. advice is the user's next
// step before a restart, in which {url} is the server's URL and {set url} a command that changes it.
func newFailureCheck(code, advice string) func(*Facts) []Finding {
	return newServerCheckWithDaemon(func(f *Facts, s *ServerFacts) []Finding {
		set := "`" + f.cliCommand("upstream set %s url URL", ops.ShellQuote(s.Name)) + "`"
		return reportIf(s.failedWith(code), f.fixAndRestartFinding(s, strings.NewReplacer("{url}", s.URL, "{set url}", set).Replace(advice)))
	})
}

// newToolchainCheck returns a check for servers whose toolchain is not installed. advice tells the user how to install it.
func newToolchainCheck(toolchain, advice string) func(*Facts) []Finding {
	return newServerCheck(func(f *Facts, s *ServerFacts) []Finding {
		missing := s.lacksToolchainProgram(toolchain) || toolchain == toolchainEngine && s.lacksContainerEngine()
		return reportIf(missing, f.fixAndRestartFinding(s, advice))
	})
}

// shouldRun reports whether a server is enabled and approved to start.
func (s *ServerFacts) shouldRun() bool { return s.Enabled && !s.Quarantined && s.ProposedBy == "" }

// failedWith reports whether the daemon reports one of these failure codes for the server.
func (s *ServerFacts) failedWith(codes ...string) bool {
	if !s.Live || !s.Enabled || s.isReady() {
		return false
	}
	code, _, _ := strings.Cut(s.Failure, ":")
	return slices.Contains(codes, code)
}

// notReadyReason returns the reason why the server is not ready, for users.
func (s *ServerFacts) notReadyReason() string { return cmp.Or(s.LastError, s.Detail) }

func (s *ServerFacts) isInstalling() bool {
	return s.Step == upstream.Installing || s.Step == upstream.Queued
}

func (s *ServerFacts) isReady() bool { return s.State == "ready" || s.State == "idle" }

// lacksToolchainProgram reports whether a program of this toolchain is missing. If the daemon reports the server, the
// answer follows from the start failure.
func (s *ServerFacts) lacksToolchainProgram(of string) bool {
	program := s.Missing
	switch {
	case !s.Live:
		return s.shouldRun() && program != "" && toolchainOf(program) == of
	case s.failedWith(upstream.NoProcess):
		return toolchainOf(s.Command) == of
	case s.failedWith(upstream.Exited) && of == toolchainNode:
		return toolchainOf(s.Command) == of && s.logMatches(noNode)
	}
	return false
}

// Error texts of programs whose prerequisites are missing.
var (
	noNode      = regexp.MustCompile(`env: .?node.?: No such file|node: (command )?not found`)
	noAuthority = regexp.MustCompile(`SELF_SIGNED_CERT|UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)|CERTIFICATE_VERIFY_FAILED|signed by unknown authority`)
	noEngine    = regexp.MustCompile(`(?i)cannot connect to the docker daemon|docker daemon is not running|failed to connect to the docker API|podman\.sock|cannot connect to podman`)
)

func (s *ServerFacts) logMatches(pattern *regexp.Regexp) bool {
	return pattern.MatchString(s.notReadyReason()) || pattern.MatchString(strings.Join(s.Lines, "\n"))
}

// notReadyText explains why a server is not ready.
func (s *ServerFacts) notReadyText() string {
	if s.notReadyReason() != "" {
		return "Server " + s.Name + ": " + strings.TrimSuffix(s.notReadyReason(), ".") + "."
	}
	return fmt.Sprintf("Server %s: the command %q is not found.", s.Name, s.Missing)
}

// fixAndRestartFinding returns a finding that tells the user to fix the cause and then restart the server.
func (f *Facts) fixAndRestartFinding(s *ServerFacts, do string) Finding {
	found := Finding{State: Bad, What: s.notReadyText(), Do: do + " Then:", Command: f.cliCommand("upstream restart %s", ops.ShellQuote(s.Name))}
	if !s.Live {
		found.Command = f.cliCommand("serve")
	}
	return found
}

func checkCommandMissing(f *Facts, s *ServerFacts) []Finding {
	return reportIf(s.lacksToolchainProgram(""), f.fixAndRestartFinding(s,
		"Install the program, or correct the command with `"+f.cliCommand("upstream set %s command -- PROGRAM ARGUMENTS", ops.ShellQuote(s.Name))+"`."))
}

func (s *ServerFacts) lacksContainerEngine() bool {
	return s.lacksToolchainProgram(toolchainEngine) || s.failedWith(upstream.Exited) && toolchainOf(s.Command) == toolchainEngine && s.logMatches(noEngine)
}

func checkWorkingDirectoryMissing(f *Facts, s *ServerFacts) []Finding {
	found := Finding{State: Bad, What: fmt.Sprintf("Server %s: its working directory %s does not exist.", s.Name, s.Dir), Do: "Create it, or set another working_dir.", Command: "mkdir -p " + ops.ShellQuote(s.Dir)}
	if s.Live {
		found.Command += " && " + f.cliCommand("upstream restart %s", ops.ShellQuote(s.Name))
	}
	return reportIf(s.failedWith(upstream.NoDirectory) || !s.Live && s.shouldRun() && s.MissingDir != "", found)
}

func checkServerNeedsLogin(f *Facts, s *ServerFacts) []Finding {
	return reportIf(s.NeedsLogin || s.failedWith(upstream.LoginNeeded), Finding{State: Bad, What: "Server " + s.Name + " requires a login, or rejects its credentials.",
		Do:      "Log in. If the server uses a token instead, set it with `" + f.cliCommand("upstream set %s --header 'Authorization: Bearer ${env:TOKEN}'", ops.ShellQuote(s.Name)) + "`.",
		Command: f.cliCommand("login %s", ops.ShellQuote(s.Name))})
}

// neededSecret matches the name of a missing secret in an error.
var neededSecret = regexp.MustCompile(`the secret ([A-Za-z_][A-Za-z0-9_.-]*)`)

func checkServerNeedsSecret(f *Facts, s *ServerFacts) []Finding {
	return reportIf(s.failedWith(upstream.SecretNeeded), Finding{State: Bad, What: "Server " + s.Name + " cannot start: " + s.notReadyReason() + ".",
		Do: "Store the secret. The command asks for the value.", Command: f.cliCommand("secrets set %s", ops.ShellQuote(firstSubmatch(neededSecret, s.notReadyReason())))})
}

func checkServerForbidsAccess(f *Facts, s *ServerFacts) []Finding {
	return reportIf(s.failedWith(upstream.Forbidden) && !s.NeedsLogin, f.fixAndRestartFinding(s,
		"Get access for your account, or use other credentials (`"+f.cliCommand("upstream logout %s", ops.ShellQuote(s.Name))+"`, or another header)."))
}

// slowAfter is the time after which a start is reported as slow. Installations are reported differently.
const slowAfter = 20 * time.Second

func (s *ServerFacts) isSlowToStart(now time.Time) bool {
	connecting := s.State == "connecting" && !s.isInstalling() && s.StepSince != nil && now.Sub(*s.StepSince) > slowAfter && s.Failure == ""
	return !s.writesNonMessagesToStdout() && (s.failedWith(upstream.TimedOut) || s.Live && s.Enabled && connecting)
}

// writesNonMessagesToStdout reports whether a server that is not ready writes other text than messages to stdout. Such
// a server probably does not speak MCP.
func (s *ServerFacts) writesNonMessagesToStdout() bool {
	return len(s.StdoutNoise) > 0 && s.Live && s.Enabled && !s.isReady() && (s.Failure == "" || s.failedWith(upstream.TimedOut))
}

func checkSlowStart(f *Facts, s *ServerFacts) []Finding {
	found := f.fixAndRestartFinding(s, "Check its log for the reason (`"+f.cliCommand("upstream logs %s", ops.ShellQuote(s.Name))+"`). If the server always needs longer, increase connect_timeout in the configuration file.")
	found.Lines = s.Lines
	if s.Failure == "" {
		found.State = Warn // it may still become ready
	}
	return reportIf(s.isSlowToStart(f.Now), found)
}

func checkServerCrashed(f *Facts, s *ServerFacts) []Finding {
	if !s.failedWith(upstream.Exited) || s.lacksToolchainProgram(toolchainNode) || s.lacksContainerEngine() {
		return nil
	}
	do := "Its last output is above. Often an argument, a variable or a credential is missing."
	if s.logMatches(noAuthority) {
		do = "It does not trust the issuer of that certificate, and does not inherit your variable for certificate authorities. Set the variable with `" +
			f.cliCommand("upstream set %s --env NODE_EXTRA_CA_CERTS=FILE", ops.ShellQuote(s.Name)) + "`. Programs in Python and Go use SSL_CERT_FILE."
	}
	found := f.fixAndRestartFinding(s, do)
	found.Lines = s.Lines
	return singleFinding(found)
}

func checkServerListsNothing(f *Facts, s *ServerFacts) []Finding {
	return reportIf(s.Live && s.shouldRun() && s.State == "ready" && s.ToolCount == 0 && s.Offers == nil,
		Finding{State: Warn, What: "Server " + s.Name + " is ready but lists no tool, prompt or resource.",
			Do: "Check its log and settings, then restart it.", Command: f.cliCommand("upstream restart %s", ops.ShellQuote(s.Name)), Lines: s.Lines})
}

func checkServerWaitsForReview(f *Facts, s *ServerFacts) []Finding {
	what := "Server " + s.Name + " waits for your review."
	if s.ProposedBy != "" {
		what = "Server " + s.Name + ", proposed by " + s.ProposedBy + ", waits for your review."
	}
	found := Finding{State: Warn, What: what, Do: "Review it, then approve or remove it.", Command: f.cliCommand("upstream approve %s", ops.ShellQuote(s.Name))}
	if f.Daemon == nil {
		found.Do = "Start MCPProxy. Then review it, and approve it with `" + found.Command + "` or remove it."
		found.Command = f.cliCommand("serve")
	}
	return reportIf(s.ProposedBy != "" || s.Enabled && s.Quarantined, found)
}

func checkServerSpeaksMCP(f *Facts, s *ServerFacts) []Finding {
	if s.writesNonMessagesToStdout() {
		return singleFinding(Finding{State: Bad, What: "Server " + s.Name + " writes text other than JSON-RPC messages to stdout.", Lines: s.StdoutNoise,
			Do:      "Check that its command starts a stdio MCP server that writes its log to stderr. To correct the command: `" + f.cliCommand("upstream set %s command -- PROGRAM ARGUMENTS", ops.ShellQuote(s.Name)) + "`. Then:",
			Command: f.cliCommand("upstream restart %s", ops.ShellQuote(s.Name))})
	}
	found := f.fixAndRestartFinding(s, "Check that it is an MCP server, and check its log (`"+f.cliCommand("upstream logs %s", ops.ShellQuote(s.Name))+"`).")
	found.Lines = s.Lines
	return reportIf(s.failedWith(upstream.Broken, upstream.Refused), found)
}

func checkProtocolDeviations(f *Facts, s *ServerFacts) []Finding {
	return reportIf(len(s.Warnings) > 0 && !s.writesNonMessagesToStdout(), Finding{State: Warn, What: "Server " + s.Name + " has warnings.", Lines: s.Warnings,
		Do: "Check your settings for its tools, and its log. If a newer version of the server has the same problem, report it to the server's author.", Command: f.cliCommand("upstream logs %s", ops.ShellQuote(s.Name))})
}

func checkSandbox(f *Facts, s *ServerFacts) []Finding {
	if s.failedWith(upstream.NoSandbox) {
		return singleFinding(f.fixAndRestartFinding(s, "Change the sandbox with `"+f.cliCommand("upstream set %s sandbox JSON", ops.ShellQuote(s.Name))+"`."))
	}
	if s.Sandbox == nil || !s.Enabled || len(s.Sandbox.NotEnforced) == 0 {
		return nil
	}
	return singleFinding(Finding{State: Warn, What: "The sandbox of server " + s.Name + " is not complete.", Lines: s.Sandbox.NotEnforced,
		Do: "Do what the lines say, or use a container.", Command: f.cliCommand("upstream get %s", ops.ShellQuote(s.Name))})
}

func checkServerStarting(f *Facts, s *ServerFacts) []Finding {
	return reportIf(s.Live && s.shouldRun() && !s.isReady() && s.Failure == "" && !s.NeedsLogin && !s.isSlowToStart(f.Now),
		Finding{State: Note, What: "Server " + s.Name + ": " + s.notReadyReason() + ".", Do: "Wait, then check again.", Command: f.cliCommand("upstream get %s", ops.ShellQuote(s.Name))})
}

func checkServerDisabled(f *Facts, s *ServerFacts) []Finding {
	return reportIf(!s.Enabled && s.ProposedBy == "",
		Finding{State: Note, What: "Server " + s.Name + " is disabled.", Do: "Enable it when you want to use it.", Command: f.cliCommand("upstream enable %s", ops.ShellQuote(s.Name))})
}

func checkToolsWithoutHints(f *Facts, s *ServerFacts) []Finding {
	u := s.Unhinted
	if u == nil || !s.shouldRun() {
		return nil
	}
	return singleFinding(Finding{State: Warn, What: fmt.Sprintf("Tools of %s without hints: %d. Tools that look like reads: %d.", s.Name, u.Tools, u.Reads),
		Do: "Enforce inferred hints. Correct wrong ones with hint_overrides.", Command: f.cliCommand("upstream set %s --infer-hints enforce", ops.ShellQuote(s.Name))})
}

func checkDefinitionsAwaitApproval(f *Facts, s *ServerFacts) []Finding {
	found := Finding{State: Warn, What: fmt.Sprintf("Tools, prompts, resources and instructions of %s that wait for your approval: %d.", s.Name, s.Waiting),
		Do: "Review them with `" + f.cliCommand("approvals") + "`, then approve or block each. To approve the whole server:", Command: f.cliCommand("upstream approve %s", ops.ShellQuote(s.Name))}
	if f.Daemon == nil {
		found.Do, found.Command = "Start MCPProxy. Then review them with `"+f.cliCommand("approvals")+"`.", f.cliCommand("serve")
	}
	return reportIf(s.Waiting > 0 && s.shouldRun(), found)
}

func checkUnmatchedToolPatterns(f *Facts, s *ServerFacts) []Finding {
	return reportIf(len(s.Idle) > 0 && s.shouldRun() && s.isReady() && s.ToolCount > 0,
		Finding{State: Warn, What: fmt.Sprintf("Patterns that match no tool of %s: %s.", s.Name, strings.Join(s.Idle, ", ")),
			Do: "List its tools, then correct enabled_tools or disabled_tools in the configuration file.", Command: f.cliCommand("tools list --server %s", ops.ShellQuote(s.Name))})
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

// requiredPrograms lists the other programs that a program needs.
var requiredPrograms = map[string][]string{"npx": {"node"}, "npm": {"node"}, "pnpm": {"node"}, "pnpx": {"node"}, "yarn": {"node"}}

// toolchainOf returns the toolchain that the user installs if the program is missing.
func toolchainOf(program string) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	switch name {
	case "npx", "npm", "node", "pnpm", "pnpx", "yarn":
		return toolchainNode
	case "uvx", "uv":
		return toolchainUV
	case "docker", "podman", "nerdctl":
		return toolchainEngine
	}
	return ""
}

// The toolchains.
const (
	toolchainNode   = "node"
	toolchainUV     = "uv"
	toolchainEngine = "engine"
)

// toServerFacts converts the servers of the configuration file.
func toServerFacts(all []config.Server) (out []ServerFacts) {
	for _, s := range all {
		shown := s.Masked()
		one := newServerFacts(ops.ServerView{Name: s.Name, Command: shown.Command, Args: shown.Args, URL: shown.URL, Enabled: s.Enabled, Quarantined: s.Quarantined})
		one.Dir, one.DuplicateOf = shown.WorkingDir, findDuplicateServer(s, all)
		one.Missing, one.MissingDir = missingPrerequisites(s.Launch)
		if s.Sandbox.Mode == sandbox.Container { // the command is a program of the image
			one.Missing = ""
			if sandbox.Engine(s.Env["PATH"]) == "" {
				one.Missing = "docker"
			}
		}
		if one.Missing == s.Command {
			one.Missing = shown.Command // with secrets masked
		}
		out = append(out, one)
	}
	return out
}

func newServerFacts(v ops.ServerView) ServerFacts {
	return ServerFacts{ServerRow: ops.ServerRow{ServerView: v}}
}

// findDuplicateServer returns the name of the first enabled server before s with the same launch configuration.
func findDuplicateServer(s config.Server, all []config.Server) string {
	for _, o := range all {
		if o.Name == s.Name {
			return ""
		}
		if s.Enabled && o.Enabled && isSameLaunch(s.Launch, o.Launch) {
			return o.Name
		}
	}
	return ""
}

// isSameLaunch compares launch configurations with resolved references, because two servers that differ only in a token
// use different accounts.
func isSameLaunch(a, b config.Launch) bool {
	return a.Command == b.Command && slices.Equal(a.Args, b.Args) && a.WorkingDir == b.WorkingDir && a.URL == b.URL &&
		maps.Equal(a.Env, b.Env) && maps.Equal(a.Headers, b.Headers)
}

// missingPrerequisites returns the program and the working directory that a launch needs but that do not exist. It
// searches the program in the server's PATH or, if it sets none, in this process's PATH.
func missingPrerequisites(s config.Launch) (program, dir string) {
	if info, err := os.Stat(s.WorkingDir); s.WorkingDir != "" && (err != nil || !info.IsDir()) {
		dir = s.WorkingDir
	}
	if s.Command == "" {
		return "", dir
	}
	for _, name := range append([]string{s.Command}, requiredPrograms[filepath.Base(s.Command)]...) {
		if process.FindCommand(name, s.Env["PATH"]) == "" {
			return name, dir
		}
	}
	return "", dir
}

// mergeConfigured adds facts from the configuration file to a server that the daemon reports.
func (s *ServerFacts) mergeConfigured(file []ServerFacts) {
	for _, o := range file {
		if o.Name == s.Name {
			s.DuplicateOf, s.Clear = o.DuplicateOf, o.Clear
		}
	}
}
