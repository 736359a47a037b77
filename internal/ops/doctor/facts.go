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

	Daemon   *Daemon // nil: no daemon answers
	NoAnswer string  // why a running daemon does not answer

	Holder    Holder // process that holds the data directory
	Port      Holder // process that listens on the port of Listen
	PortTaken bool
	FreePort  string // a free address near Listen

	Mistakes []Mistake           // of the configuration file
	Needs    map[string][]string // environment variables → servers that refer to them
	Warnings []string
	Earlier  string // file with the newest earlier configuration

	Servers []Server // by name

	Files      []File // of the user; the data directory first
	SocketAt   File
	MovedAside []File // databases that were moved aside
	FutureFile File   // a file with a time in the future
	KeyError   string // why the key file is unusable

	Free      int64 // bytes, on the disk of the data directory
	FreeKnown bool
	Sight     store.PeekResult
	SightErr  string     // why the database cannot be read
	Pages     ReadExtent // how much of the database was checked, without a daemon
	Damage    string     // what is damaged in the database
	Log       ReadExtent // how much of the activity log was checked, without a daemon
	Altered   *activity.Break
	Database  Holder // another process that has the database open

	Clients      []Client
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

// File is a file or directory; Path is "" if it does not exist.
type File struct {
	Path     string
	Mode     fs.FileMode
	Owner    int  // -1: unknown
	Writable bool // by this user
	Size     int64
	Changed  time.Time
}

// Daemon is what a running daemon reports.
type Daemon struct {
	ops.Status
	Executable  string // the daemon's program; "" is unknown
	Mine        string // this program
	Waiting     ops.Waiting
	Mistakes    []Mistake    // of its configuration file
	Diagnostics []Diagnostic // the daemon's own diagnostics
	Servers     []Server
	Presence    Presence
}

// Presence is the state of the proof that a user decides.
type Presence struct {
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
	State  State // OK, Warn or Bad
	Detail string
	Fix    string
}

// diagnostic returns the diagnostic with a code.
func (d *Daemon) diagnostic(code string) Diagnostic {
	if d != nil {
		for _, s := range d.Diagnostics {
			if s.Code == code {
				return s
			}
		}
	}
	return Diagnostic{State: OK}
}

// Server is a server as the daemon reports it or, without one, as the file configures it.
type Server struct {
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

	Clear []InClear

	Missing    string // a program that the command needs and that was not found
	MissingDir string
}

// Clients examines the MCP clients of this machine. It contacts no server and writes nothing.
type Clients interface {
	// Examine returns the installed clients in a fixed order. address is where MCPProxy listens, or would listen, such as 127.0.0.1:8080.
	Examine(address string) ([]Client, error)
}

// Client is an MCP client of this machine.
type Client struct {
	ID      string   // as for `mcpproxy connect`
	Name    string   // as people call it
	Path    string   // the file that takes effect
	Entry   string   // URL or command of MCPProxy's entry; "" without one
	Foreign bool     // the entry leads elsewhere than to this MCPProxy
	Missing string   // the missing program of its entry
	Broken  []string // unreadable files, and why
	Direct  []string // servers that it reaches without MCPProxy
	Lanes   []Lane   // deviations from the recommended permissions
	Written bool     // the recommended rules are in its files, but other rules decide
}

// Lane is a client's deviation for one lane.
type Lane struct {
	Name string // the tool: call_tool_read
	Does string // such as "asks"
	Want string // such as "runs unasked"
	Rule string // the deciding rule, with its file
	// Denied reports a rule of the user that denies the lane. MCPProxy never removes it.
	Denied bool
}

// Entry lists the variables and secrets in a server's entry in the configuration file.
type Entry struct {
	Server    string
	Variables []string // referenced environment variables
	Clear     []InClear
}

// InClear is a secret in clear text in the configuration file.
type InClear struct {
	Place  string // env.NAME, headers.NAME, args.INDEX, command or url
	Secret string // suggested name in the keyring
}
