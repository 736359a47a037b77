package doctor

import (
	"io/fs"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// Timeouts for one part of gathering facts, and for all parts.
const (
	PartTime  = 5 * time.Second
	TotalTime = 15 * time.Second
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
	PagesExtent    ReadExtent // how much of the database was checked, without a daemon
	Damage         string     // what is damaged in the database
	LogExtent      ReadExtent // how much of the activity log was checked, without a daemon
	FirstAltered   *activity.Break
	DatabaseHolder Holder // another process that has the database open

	Clients      []ClientFacts
	ClientsKnown bool   // the clients were examined
	ClientsErr   string // why the examination failed

	TimedOut []string // parts that took too long
}

// ReadExtent says how much of something was read.
type ReadExtent int

// The values. unread includes unreadable.
const (
	unread ReadExtent = iota
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
	Executable  string // the daemon's program; "" is unknown
	Mine        string // this program
	Waiting     ops.Waiting
	Mistakes    []Mistake    // of its configuration file
	Diagnostics []Diagnostic // the daemon's own diagnostics
	Servers     []ServerFacts
	Presence    PresenceFacts
}

// PresenceFacts is the state of the proof that a user decides.
type PresenceFacts struct {
	On       bool
	Void     string // why no grant counts
	Remedy   string
	Anchor   []string // places where the anchor's fingerprint is missing
	Bad      []string // statements with invalid signatures
	Unsigned []string // decisions without a signature
}

// Diagnostic is one of the daemon's own diagnostics: see ops.Check.
type Diagnostic struct {
	Code   string
	State  CheckState // OK, Warn or Bad
	Detail string
	Fix    string
}

// findDiagnostic returns the diagnostic with a code.
func (d *DaemonFacts) findDiagnostic(code string) Diagnostic {
	if d != nil {
		for _, s := range d.Diagnostics {
			if s.Code == code {
				return s
			}
		}
	}
	return Diagnostic{State: OK}
}

// ServerFacts is a server as the daemon reports it or, without one, as the file configures it.
type ServerFacts struct {
	Name        string
	Command     string
	Args        []string
	Dir         string
	URL         string
	Enabled     bool
	Quarantined bool
	ProposedBy  string
	DuplicateOf string // another server with the same launch

	Live       bool // the fields below come from a daemon
	State      string
	NeedsLogin bool
	Failure    string // a code of package upstream
	Said       string // why it is not ready, for users
	Lines      []string
	Noise      []string // lines on its stdout that are no messages
	Warnings   []string // deviations from the protocol
	Installing bool
	Since      time.Time
	Tools      int
	Offers     bool // it has prompts, resources or instructions
	Unhinted   *ops.Unhinted

	Waits int // definitions that wait for approval

	Idle []string // patterns of enabled_tools and disabled_tools that match no tool

	Clear []ClearTextSecret

	Missing    string // a program that the command needs and that was not found
	MissingDir string
}

// ClientExaminer examines the MCP clients of this machine. It contacts no server and writes nothing.
type ClientExaminer interface {
	// Examine returns the installed clients in a fixed order. address is where MCPProxy listens, or would listen, such as 127.0.0.1:8080.
	Examine(address string) ([]ClientFacts, error)
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

// ServerVariablesAndSecrets lists the variables and secrets in a server's entry in the configuration file.
type ServerVariablesAndSecrets struct {
	Server    string
	Variables []string // referenced environment variables
	Clear     []ClearTextSecret
}

// ClearTextSecret is a secret in clear text in the configuration file.
type ClearTextSecret struct {
	Place  string // env.NAME, headers.NAME, args.INDEX, command or url
	Secret string // suggested name in the keyring
}
