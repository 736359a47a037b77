package doctor

import (
	"io/fs"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

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
	ID      string          // the argument of `mcpproxy connect`
	Name    string          // the name for users
	Path    string          // the file that takes effect
	Entry   string          // URL or command of MCPProxy's entry; "" if there is none
	Foreign bool            // whether the entry refers to another program or address
	Missing string          // the program in its entry, if it is missing
	Broken  []string        // unreadable files, with the reasons
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
