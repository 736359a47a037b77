package doctor

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
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

// reportIf returns the finding if the fault is present.
func reportIf(faulty bool, f Finding) []Finding {
	if !faulty {
		return nil
	}
	return []Finding{f}
}

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

// Timeouts for one part of gathering facts and for all parts. They are long, because a busy machine may need seconds
// instead of milliseconds.
const (
	PartTime  = 10 * time.Second
	TotalTime = 25 * time.Second
)

const (
	// databaseName is the database file in the data directory.
	databaseName = "mcpproxy.db"
	// spoolName is the spool directory in the data directory.
	spoolName = "spool"
	// clockLeeway is the maximum time by which a file's time may be in the future.
	clockLeeway = time.Minute
)

// Facts are the input of the checks. The zero value of a field means unknown.
type Facts struct {
	Now     time.Time
	Version string // version of this program
	User    int    // user ID; -1 if the system has none
	Flags   string // command-line flags for suggested commands, such as " --data-dir …"

	ConfigPath string
	DataDir    string
	Socket     string
	Listen     string // configured host:port
	Base       string // URL for clients, without a path, by the configuration
	Shared     bool   // the database is PostgreSQL

	Daemon         *DaemonFacts // nil if no daemon answers
	NoAnswerReason string       // reason why a running daemon does not answer

	Holder     Holder // process that locks the data directory
	PortHolder Holder // process that listens on the port of Listen
	PortTaken  bool
	FreePort   string // a free address near Listen

	Mistakes      []Mistake           // in the configuration file
	Needs         map[string][]string // servers that refer to an environment variable, by variable
	Warnings      []string
	EarlierConfig string // file with the newest earlier configuration

	Servers []ServerFacts // sorted by name

	Files      []FileFacts // files of the user, with the data directory first
	SocketFile FileFacts
	MovedAside []FileFacts // databases that were moved aside
	FutureFile FileFacts   // a file whose time is in the future
	KeyError   string      // reason why the key file is unusable

	FreeBytes      int64 // free bytes on the disk of the data directory
	FreeKnown      bool
	DatabaseFacts  store.PeekResult
	DatabaseErr    string     // why the database cannot be read
	NoDatabase     bool       // there is none yet
	PagesExtent    readExtent // how much of the database was checked, without a daemon
	DatabaseDamage string     // description of the damage in the database
	LogExtent      readExtent // how much of the activity log was checked, without a daemon
	FirstAltered   *activity.Break
	DatabaseHolder Holder // another process that has the database open

	Clients      []ClientFacts
	ClientsKnown bool   // whether the clients were examined
	ClientsErr   string // reason why the examination failed

	TimedOut []string // parts that took too long
}

// readExtent describes how much of a file was read.
type readExtent int

// The extents. unread includes unreadable.
const (
	unread readExtent = iota
	readPart
	readAll
)

// Mistake is an error in the configuration file.
type Mistake = config.Mistake

// FileFacts describes a file or directory. Path is "" if it does not exist.
type FileFacts struct {
	Path     string
	Mode     fs.FileMode
	Owner    int  // user ID; -1 if unknown
	Writable bool // whether this user may write to it
	Size     int64
	Changed  time.Time
}

// DaemonFacts are the facts that a running daemon reports.
type DaemonFacts struct {
	ops.Status
	Executable    string      // path of the daemon's program; "" if unknown
	OwnExecutable string      // path of this program
	Mistakes      []Mistake   // in its configuration file
	Diagnostics   []ops.Check // the daemon's own diagnostics
	Servers       []ServerFacts
	Presence      ops.PresenceView
}

// findDiagnostic returns the diagnostic with this code.
func (d *DaemonFacts) findDiagnostic(code string) ops.Check {
	if d != nil {
		for _, s := range d.Diagnostics {
			if s.Code == code {
				return s
			}
		}
	}
	return ops.Check{State: OK}
}

// ServerFacts describes a server as the daemon reports it, or as the file configures it if no daemon answers.
type ServerFacts struct {
	ops.ServerRow
	Live        bool   // whether the daemon reported it
	Dir         string // its working directory
	DuplicateOf string // another server with the same launch configuration
	Lines       []string
	StdoutNoise []string      // lines on its stdout that are not MCP messages
	Idle        []string      // patterns of enabled_tools and disabled_tools that match no tool
	Clear       []ops.InClear // plain-text secrets in the configuration file
	Missing     string        // a program that the command needs but that was not found
	MissingDir  string
}

// ClientFacts describes an MCP client of this machine.
type ClientFacts struct {
	ops.ClientView
	Direct  []string        // servers that it reaches without MCPProxy
	Lanes   []LaneDeviation // deviations from the recommended permissions
	Written bool            // whether its files contain the recommended rules, but other rules decide
}

// LaneDeviation is a deviation from the recommended permission for one lane.
type LaneDeviation struct {
	Name string // the tool, such as call_tool_read
	Does string // actual behavior, such as "asks"
	Want string // recommended behavior, such as "runs without asking"
	Rule string // the deciding rule, with its file
	// Denied reports whether a rule of the user denies the lane. MCPProxy never removes such a rule.
	Denied bool
}

// LockFile is the file in a data directory that a running daemon locks.
const LockFile = "daemon.lock"

// Holder is a process that uses a port, a file or a data directory. The zero value means unknown.
type Holder struct {
	PID     int
	Name    string // process name, made printable
	DataDir string // the data directory that it locks, if it is an MCPProxy daemon
}

// IsKnown reports whether the process was found.
func (p Holder) IsKnown() bool { return p.PID != 0 }

// existingParent returns dir if it exists, otherwise its nearest existing parent.
func existingParent(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
