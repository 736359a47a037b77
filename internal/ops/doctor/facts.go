package doctor

import (
	"io/fs"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// Timeouts for one part of gathering facts, and for all parts. A busy machine needs seconds for what takes milliseconds.
const (
	PartTime  = 10 * time.Second
	TotalTime = 25 * time.Second
)

const (
	// databaseName is the database file in the data directory.
	databaseName = "mcpproxy.db"
	// spoolName is the spool directory in the data directory.
	spoolName = "spool"
	// clockLeeway is how far in the future a file's time may be.
	clockLeeway = time.Minute
)

// Facts are the input of the checks. A zero value means unknown.
type Facts struct {
	Now     time.Time
	Version string // of this program
	User    int    // user id; -1 where there are none
	Flags   string // of the command line, " --data-dir …", for suggested commands

	ConfigPath string
	DataDir    string
	Socket     string
	Listen     string // host:port, as configured
	Shared     bool   // the database is PostgreSQL

	Daemon   *DaemonFacts // nil: no daemon answers
	NoAnswer string       // why a running daemon does not answer

	Holder     Holder // process that holds the data directory
	PortHolder Holder // process that listens on the port of Listen
	PortTaken  bool
	FreePort   string // a free address near Listen

	Mistakes      []Mistake           // of the configuration file
	Needs         map[string][]string // environment variables → servers that refer to them
	Warnings      []string
	EarlierConfig string // file with the newest earlier configuration

	Servers []ServerFacts // by name

	Files      []FileFacts // of the user; the data directory first
	SocketFile FileFacts
	MovedAside []FileFacts // databases that were moved aside
	FutureFile FileFacts   // a file with a time in the future
	KeyError   string      // why the key file is unusable

	FreeBytes      int64 // bytes, on the disk of the data directory
	FreeKnown      bool
	DatabaseFacts  store.PeekResult
	DatabaseErr    string     // why the database cannot be read
	NoDatabase     bool       // there is none yet
	PagesExtent    readExtent // how much of the database was checked, without a daemon
	Damage         string     // what is damaged in the database
	LogExtent      readExtent // how much of the activity log was checked, without a daemon
	FirstAltered   *activity.Break
	DatabaseHolder Holder // another process that has the database open

	Clients      []ClientFacts
	ClientsKnown bool   // the clients were examined
	ClientsErr   string // why the examination failed

	TimedOut []string // parts that took too long
}

// readExtent says how much of something was read.
type readExtent int

// The values. unread includes unreadable.
const (
	unread readExtent = iota
	readPart
	readAll
)

// Mistake is a mistake in the configuration file.
type Mistake = config.Mistake

// FileFacts is a file or directory; Path is "" if it does not exist.
type FileFacts struct {
	Path     string
	Mode     fs.FileMode
	Owner    int  // -1: unknown
	Writable bool // by this user
	Size     int64
	Changed  time.Time
}

// DaemonFacts is what a running daemon reports.
type DaemonFacts struct {
	ops.Status
	Executable  string      // the daemon's program; "" is unknown
	Mine        string      // this program
	Mistakes    []Mistake   // of its configuration file
	Diagnostics []ops.Check // the daemon's own diagnostics
	Servers     []ServerFacts
	Presence    ops.PresenceView
}

// findDiagnostic returns the diagnostic with a code.
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

// ServerFacts is a server as the daemon reports it or, without one, as the file configures it.
type ServerFacts struct {
	ops.ServerRow
	Live        bool   // the daemon reports it
	Dir         string // its working directory
	DuplicateOf string // another server with the same launch
	Lines       []string
	Noise       []string      // lines on its stdout that are no messages
	Idle        []string      // patterns of enabled_tools and disabled_tools that match no tool
	Clear       []ops.InClear // secrets in clear text in the configuration file
	Missing     string        // a program that the command needs and that was not found
	MissingDir  string
}

// ClientFacts is an MCP client of this machine.
type ClientFacts struct {
	ID      string          // as for `mcpproxy connect`
	Name    string          // the name for users
	Path    string          // the file that takes effect
	Entry   string          // URL or command of MCPProxy's entry; "" without one
	Foreign bool            // the entry leads elsewhere than to this MCPProxy
	Missing string          // the missing program of its entry
	Broken  []string        // unreadable files, and why
	Direct  []string        // servers that it reaches without MCPProxy
	Lanes   []LaneDeviation // deviations from the recommended permissions
	Written bool            // the recommended rules are in its files, but other rules decide
}

// LaneDeviation is a client's deviation for one lane.
type LaneDeviation struct {
	Name string // the tool: call_tool_read
	Does string // such as "asks"
	Want string // such as "runs without asking"
	Rule string // the deciding rule, with its file
	// Denied reports a rule of the user that denies the lane. MCPProxy never removes it.
	Denied bool
}
