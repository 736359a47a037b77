package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// CheckResult is a finding and its check. A check without findings has one CheckResult with the state OK or Skipped.
type CheckResult struct {
	Code  string     `json:"code"`
	Name  string     `json:"name"`
	Group CheckGroup `json:"group"`
	Finding
	Why     string `json:"why,omitempty"`
	Fixable bool   `json:"fixable,omitempty"` // ApplyFixes can fix it
}

// Report contains the results of all checks that ran, in the order of the table.
type Report struct {
	Daemon bool          `json:"daemon"` // whether a daemon answered
	Checks []CheckResult `json:"checks"`
	Bad    int           `json:"bad"`
	Warn   int           `json:"warn"`
	Fixed  []FixResult   `json:"fixed"`
}

// FixResult is the result of one automatic fix.
type FixResult struct {
	Code    string `json:"code"`
	Subject string `json:"subject,omitempty"`
	Command string `json:"command"` // the equivalent command
	Error   string `json:"error,omitempty"`
}

// RunChecks runs the checks with the given codes or names, or all checks if only is empty. It does not change the
// facts.
func RunChecks(f *Facts, only []string) (Report, error) {
	chosen, err := selectChecks(only)
	if err != nil {
		return Report{}, err
	}
	r := Report{Daemon: f.Daemon != nil, Checks: []CheckResult{}, Fixed: []FixResult{}}
	for _, c := range chosen {
		found := c.run(f)
		if len(found) == 0 {
			found = []Finding{{State: OK, What: c.NoFindingText}}
		}
		for _, one := range found {
			r.addFinding(c, one)
		}
	}
	return r, nil
}

func (r *Report) addFinding(c checkRow, f Finding) {
	result := CheckResult{Code: c.Code, Name: c.Name, Group: c.Group, Finding: f, Fixable: f.fix != nil}
	switch f.State {
	case Bad:
		r.Bad++
	case Warn:
		r.Warn++
	}
	if f.State == Bad || f.State == Warn || f.State == Note {
		result.Why = c.Why
	}
	r.Checks = append(r.Checks, result)
}

// ApplyFixes applies the safe fixes of a report and returns their results.
func ApplyFixes(r Report) []FixResult {
	done := []FixResult{}
	for _, c := range r.Checks {
		if c.fix == nil {
			continue
		}
		fix := FixResult{Code: c.Code, Subject: c.Subject, Command: c.Command}
		if err := c.fix(); err != nil {
			fix.Error = err.Error()
		}
		done = append(done, fix)
	}
	return done
}

// selectChecks returns the checks with the given codes or names, in the order of the table.
func selectChecks(only []string) ([]checkRow, error) {
	if len(only) == 0 {
		return checks, nil
	}
	wanted := map[string]bool{}
	for _, word := range only {
		at := slices.IndexFunc(checks, func(c checkRow) bool { return strings.EqualFold(c.Code, word) || strings.EqualFold(c.Name, word) })
		if at < 0 {
			return nil, unknownCheckError(word)
		}
		wanted[checks[at].Code] = true
	}
	return slices.DeleteFunc(slices.Clone(checks), func(c checkRow) bool { return !wanted[c.Code] }), nil
}

func unknownCheckError(word string) error {
	near := search.NearestNames(word, CodesAndNames(), 1)
	return problem.Newf(problem.Usage, "There is no check '%s'.", problem.ClipName(word)).
		WithHint(cmp.Or(strings.Join(near, ""), "D101") + " is one; `mcpproxy doctor -o json` lists all.")
}

// CodesAndNames returns the codes and names of all checks.
func CodesAndNames() (all []string) {
	for _, c := range checks {
		all = append(all, c.Code, c.Name)
	}
	return all
}

// CheckState is the result of a check.
type CheckState = ops.CheckState

// The states, by severity. A note is not a fault.
const (
	OK      CheckState = "ok"
	Skipped CheckState = "skipped" // the check could not run; Finding.What contains the reason
	Note    CheckState = "note"
	Warn    CheckState = "warn"
	Bad     CheckState = "bad"
)

// Finding is the result of a check for one subject.
type Finding struct {
	State   CheckState `json:"state"`
	Subject string     `json:"subject,omitempty"` // such as a server, a file or a client
	What    string     `json:"what"`              // sentence that describes the fault
	Do      string     `json:"do,omitempty"`      // sentence that tells the user what to do
	Command string     `json:"command,omitempty"` // shell command; Do names its prerequisites
	Lines   []string   `json:"lines,omitempty"`   // lines of a server's log or of the file, with secrets masked

	fix func() error // nil if only the user can fix it
}

// cliCommand returns an mcpproxy command for the same daemon. It puts the flags first, because flags after "--" would
// be arguments of a server.
func (f *Facts) cliCommand(format string, args ...any) string {
	return "mcpproxy" + f.Flags + " " + fmt.Sprintf(format, args...)
}

// editCommand returns a command that opens the configuration file at a line.
func (f *Facts) editCommand(line int) string {
	return fmt.Sprintf(`"${EDITOR:-vi}" +%d %s`, max(line, 1), ops.ShellQuote(f.ConfigPath))
}

// sudoCommand returns a command with sudo, unless this process runs as root.
func (f *Facts) sudoCommand(command string) string {
	if f.User == 0 {
		return command
	}
	return "sudo " + command
}

// restartDaemonCommand returns a command that ends a process, waits until it has exited and starts the daemon.
func (f *Facts) restartDaemonCommand(pid int) string {
	return fmt.Sprintf("kill %d; while kill -0 %d 2>/dev/null; do sleep 0.2; done; %s", pid, pid, f.cliCommand("serve"))
}

func quotePaths(files []FileFacts) string {
	var words []string
	for _, f := range files {
		words = append(words, ops.ShellQuote(f.Path))
	}
	return strings.Join(words, " ")
}

// singleFinding returns a list with one finding.
func singleFinding(f Finding) []Finding { return []Finding{f} }

// skippedFinding returns the finding of a check that cannot run.
func skippedFinding(why string) []Finding { return singleFinding(Finding{State: Skipped, What: why}) }

// newDaemonCheck returns a check that calls look with the daemon's facts. It is skipped if no daemon is running.
func newDaemonCheck(look func(f *Facts, d *DaemonFacts) []Finding) func(*Facts) []Finding {
	return func(f *Facts) []Finding {
		if f.Daemon == nil {
			return skippedFinding("Requires a running daemon.")
		}
		return look(f, f.Daemon)
	}
}
