package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/secret"
)

func newDoctorCommand(r *invocation) commandSpec {
	var fix bool
	var only commaListFlag
	return commandSpec{
		flags: map[string]any{"fix": &fix, "only": &only},
		run: func(cmd *cobra.Command, _ []string) error {
			options, err := r.newDoctorOptions()
			if err != nil {
				return err
			}
			options.Thorough = true
			facts := doctor.GatherFacts(cmd.Context(), options)
			report, err := doctor.RunChecks(facts, only)
			if err != nil {
				return err
			}
			if fix {
				done := doctor.ApplyFixes(report)
				if report, err = doctor.RunChecks(doctor.GatherFacts(cmd.Context(), options), only); err != nil {
					return err
				}
				report.Fixed = done
			}
			if err := r.printOutput(report, func(p *printer) { writeDoctorReport(p, report) }); err != nil || report.Bad == 0 {
				return err
			}
			return problem.Newf(problem.Unhealthy, "The doctor found %s.", countWithNoun(report.Bad, "problem")).WithHint(doctorFixHint(report))
		},
	}
}

// doctorFixHint explains how to fix findings.
func doctorFixHint(r doctor.Report) string {
	for _, c := range r.Checks {
		if c.Fixable {
			return "Run the command shown under each problem. `mcpproxy doctor --fix` makes the safe repairs."
		}
	}
	return "Run the command shown under each problem."
}

// newDoctorOptions returns the sources from which the doctor gathers facts.
func (r *invocation) newDoctorOptions() (doctor.GatherOptions, error) {
	path, err := r.resolveConfigPath()
	if err != nil {
		return doctor.GatherOptions{}, err
	}
	dir, err := r.resolveDataDir()
	if err != nil {
		return doctor.GatherOptions{}, err
	}
	flags := ""
	if r.configPath != "" {
		flags += " --config " + ops.ShellQuote(path)
	}
	if r.dataDir != "" {
		flags += " --data-dir " + ops.ShellQuote(dir)
	}
	return doctor.GatherOptions{
		Version: r.Version, ConfigPath: path, DataDir: dir, Socket: api.SocketPath(dir), Flags: flags, Lookup: r.lookupEnv, Now: r.Now, Ask: r.fetchDaemonFacts, ExamineClients: r.examineClients,
	}, nil
}

// daemonFactsTimeout is the total time limit for the doctor's requests to the daemon.
const daemonFactsTimeout = doctor.PartTime - 500*time.Millisecond

// fetchPresence requests the state of presence. If the daemon cannot read the signatures from its database, it returns
// the reason in Void.
func fetchPresence(ctx context.Context, c *api.Client) (ops.PresenceView, error) {
	v, err := api.GetPresence.Call(ctx, c, ops.Nothing{})
	if why := problem.From(err); why != nil && why.Code == problem.ServerUnavailable {
		return ops.PresenceView{Void: why.Message, Remedy: why.Hint}, nil
	}
	return v, err
}

// fetchDaemonFacts requests the facts for the doctor from the daemon.
func (r *invocation) fetchDaemonFacts(ctx context.Context) (*doctor.DaemonFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, daemonFactsTimeout)
	defer cancel()
	c, err := r.newDaemonClient()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	d := &doctor.DaemonFacts{}
	if d.Status, err = api.GetStatus.Call(ctx, c, ops.Nothing{}); err != nil {
		if api.IsDaemonAbsentError(err) {
			return nil, doctor.ErrAbsent
		}
		return nil, err
	}
	d.Executable = doctor.ExecutableOf(d.PID)
	d.OwnExecutable, _ = os.Executable()
	said, err := api.GetDiagnostics.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return nil, err
	}
	d.Diagnostics = said.Checks
	if d.Presence, err = fetchPresence(ctx, c); err != nil {
		return nil, err
	}
	if d.ConfigError != "" {
		file, err := api.GetConfig.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return nil, err
		}
		d.Mistakes = mapSlice(file.Mistakes, func(m ops.Mistake) doctor.Mistake { return doctor.Mistake(m) })
		if len(d.Mistakes) == 0 {
			d.Mistakes = []doctor.Mistake{{Message: d.ConfigError}}
		}
	}
	if d.Servers, err = fetchServersFacts(ctx, c); err != nil {
		return nil, err
	}
	return d, addUnmatchedPatterns(r, ctx, c, d.Servers)
}

// maxToolsToMatch limits the number of tools per server that are compared with its patterns.
const maxToolsToMatch = 1000

// addUnmatchedPatterns adds the configured tool patterns that match no tool to the facts of their server.
func addUnmatchedPatterns(r *invocation, ctx context.Context, c *api.Client, all []doctor.ServerFacts) error {
	live, err := r.openConfig()
	if err != nil {
		return nil // another check reports the invalid configuration
	}
	for _, s := range live.Current().Servers {
		patterns := slices.Concat(s.EnabledTools, s.DisabledTools)
		at := slices.IndexFunc(all, func(one doctor.ServerFacts) bool { return one.Name == s.Name })
		if len(patterns) == 0 || at < 0 || all[at].ToolCount == 0 {
			continue
		}
		list, err := api.ListTools.Call(ctx, c, ops.ToolQuery{ToolFilter: ops.ToolFilter{Server: s.Name}, Limit: maxToolsToMatch})
		if err != nil {
			return err
		}
		if list.Total > len(list.Tools) {
			continue
		}
		for _, pattern := range patterns {
			if !slices.ContainsFunc(list.Tools, func(t ops.ToolRow) bool { return auth.MatchesPattern(pattern, t.Tool) }) {
				all[at].Idle = append(all[at].Idle, pattern)
			}
		}
	}
	return nil
}

// Limits for the details about servers that are not ready.
const (
	maxServersAsked = 50
	maxLogLines     = 5
)

func fetchServersFacts(ctx context.Context, c *api.Client) ([]doctor.ServerFacts, error) {
	all, err := api.ListServers.Call(ctx, c, ops.Nothing{})
	if err != nil {
		return nil, err
	}
	servers, asked := make([]doctor.ServerFacts, 0, len(all.Servers)), 0
	for _, v := range all.Servers {
		s := doctor.ServerFacts{ServerRow: v, Live: true}
		if notWell := s.State != string(upstream.Ready) && s.State != string(upstream.Idle) || s.ToolCount == 0; v.Enabled && notWell && asked < maxServersAsked {
			asked++
			if err := fetchLaunchAndLog(ctx, c, &s); err != nil {
				return nil, err
			}
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// fetchLaunchAndLog requests a server's launch command and the last lines of its log.
func fetchLaunchAndLog(ctx context.Context, c *api.Client, s *doctor.ServerFacts) error {
	d, err := api.GetServer.Call(ctx, c, ops.ServerRef{Name: s.Name})
	if err != nil {
		return err
	}
	if d.Launch != nil {
		s.Dir = d.Launch.WorkingDir
	}
	tail, err := api.GetServerLogs.Call(ctx, c, ops.LogQuery{ServerRef: ops.ServerRef{Name: s.Name}, Lines: 4 * maxLogLines})
	if err != nil {
		return err
	}
	for _, l := range tail.Entries {
		switch l.Stream {
		case "stderr":
			s.Lines = append(s.Lines, l.Text)
		case "stdout":
			s.StdoutNoise = append(s.StdoutNoise, l.Text)
		}
	}
	s.StdoutNoise = s.StdoutNoise[max(0, len(s.StdoutNoise)-maxLogLines):]
	s.Lines = s.Lines[max(0, len(s.Lines)-maxLogLines):]
	return nil
}

// checkStateStyles contains the sign, word and color of each state.
var checkStateStyles = map[doctor.CheckState]struct {
	sign, word string
	hue        colorMeaning
}{
	doctor.OK: {"✓", "ok", colorGood}, doctor.Skipped: {"–", "skipped", colorFaint}, doctor.Note: {"·", "note", colorNone},
	doctor.Warn: {"!", "warning", colorWarning}, doctor.Bad: {"✗", "problem", colorBad},
}

// writeDoctorReport writes the findings in full, and the number of passed checks of each group.
func writeDoctorReport(p *printer, r doctor.Report) {
	for _, fix := range r.Fixed {
		if fix.Error != "" {
			p.writeWrapped("", p.colorize(colorBad, "✗ not fixed")+" "+fix.Code+": "+toOneLine(fix.Command)+": "+toOneLine(fix.Error))
			continue
		}
		p.writeWrapped("", p.colorize(colorGood, "✓ fixed")+" "+fix.Code+": "+toOneLine(fix.Command))
	}
	if len(r.Fixed) > 0 {
		fmt.Fprintln(p)
	}
	for len(r.Checks) > 0 {
		n := 1
		for n < len(r.Checks) && r.Checks[n].Group == r.Checks[0].Group {
			n++
		}
		writeCheckGroup(p, r.Checks[:n])
		r.Checks = r.Checks[n:]
	}
	p.writeLine("%s, %s.", countWithNoun(r.Bad, "problem"), countWithNoun(r.Warn, "warning"))
}

func writeCheckGroup(p *printer, all []doctor.CheckResult) {
	well, skipped := 0, 0
	fmt.Fprintln(p, capitalizeFirst(string(all[0].Group)))
	for _, c := range all {
		switch c.State {
		case doctor.OK:
			well++
		case doctor.Skipped:
			skipped++
		default:
			writeCheckResult(p, c)
		}
	}
	if well > 0 {
		p.writeWrapped("  ", p.colorize(colorGood, "✓ ok")+"  "+countWithNoun(well, "check"))
	}
	if skipped > 0 {
		p.writeWrapped("  ", p.colorize(colorFaint, "– skipped")+"  "+countWithNoun(skipped, "check")+": "+skipReasons(all))
	}
	fmt.Fprintln(p)
}

// skipReasons returns the distinct reasons of skipped checks.
func skipReasons(all []doctor.CheckResult) string {
	var why []string
	for _, c := range all {
		if what := toOneLine(c.What); c.State == doctor.Skipped && (len(why) == 0 || why[len(why)-1] != what) {
			why = append(why, what)
		}
	}
	return strings.Join(why, " ")
}

func writeCheckResult(p *printer, c doctor.CheckResult) {
	m := checkStateStyles[c.State]
	p.writeWrapped("  ", p.colorize(m.hue, m.sign+" "+m.word)+"  "+c.Code+" "+c.Name+": "+toOneLine(c.What))
	for _, line := range c.Lines {
		p.writeWrapped("      | ", toOneLine(line))
	}
	if c.State != doctor.Note {
		p.writeWrapped("      ", p.colorize(colorFaint, toOneLine(c.Why)))
	}
	if c.Do != "" && c.State != doctor.Note {
		p.writeWrapped("      ", toOneLine(c.Do))
	}
	if c.Command != "" && c.State != doctor.Note {
		fix := ""
		if c.Fixable {
			fix = "   (or: mcpproxy doctor --fix)"
		}
		fmt.Fprintln(p, "      $ "+toOneLine(c.Command)+p.colorize(colorFaint, fix))
	}
}

// examineClients describes how the MCP clients of this user account are connected to the MCPProxy at a URL.
func (r *invocation) examineClients(base string) ([]doctor.ClientFacts, error) {
	env, err := newClientFileEnv(r)
	if err != nil {
		return nil, err
	}
	account := newLocalClientsForEndpoint(r, env, ops.ProxyEndpoint{Base: base})
	all, err := account.ListClients()
	if err != nil {
		return nil, err
	}
	direct := r.findDirectServers(env)
	var found []doctor.ClientFacts
	for _, v := range all.Clients {
		if !v.Found {
			continue
		}
		c := toClientFacts(v)
		c.Direct = direct[v.ID]
		if len(c.Lanes) > 0 {
			plan, err := permission.PreparePlan(env, v.ID, account.Tools())
			c.Written = err == nil && !plan.Changed
		}
		found = append(found, c)
	}
	return found, nil
}

// findDirectServers returns the servers that each client reaches without MCPProxy. It ignores unreadable files, because
// examineClients reports them.
func (r *invocation) findDirectServers(env clients.Env) map[string][]string {
	out := map[string][]string{}
	live, err := r.openConfig()
	if err != nil {
		return out
	}
	here := ops.ImportTarget{
		ConfigText: live.ReadFile, CheckNotSelf: live.CheckNotSelfReference,
		ServerNames: func(context.Context) ([]string, error) { return nil, nil },
		ReadSecret:  func(context.Context, string) (string, error) { return "", secret.ErrMissing },
	}
	all, err := ops.NewImporter(env, nil).FindServers(context.Background(), here, "")
	if err != nil {
		return out
	}
	for _, s := range all.Found {
		off := slices.ContainsFunc(s.Notes, func(note string) bool { return strings.HasPrefix(note, "the server is disabled in the client") })
		if isInUserFile(s) && !off {
			out[s.Client] = append(out[s.Client], s.Called)
		}
	}
	return out
}

func toClientFacts(v ops.ClientView) doctor.ClientFacts {
	c := doctor.ClientFacts{ClientView: v}
	if !v.Connected || !v.Permissions.Writable {
		return c
	}
	for _, lane := range v.Permissions.Lanes {
		if !lane.Right {
			c.Lanes = append(c.Lanes, doctor.LaneDeviation{Name: lane.Tool, Does: lane.Verdict.Words(), Want: lane.Wanted.Words(), Rule: formatRuleWithPosition(lane.Rule), Denied: lane.Verdict == permission.Denied})
		}
	}
	return c
}
