package doctor

import (
	"io/fs"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
)

// How long one part of the looking may take, and all together.
const (
	PartTime  = 5 * time.Second
	TotalTime = 15 * time.Second
)

const (
	// databaseName is the file of the database in the data directory.
	databaseName = "mcpproxy.db"
	// spoolName is the directory of the spool in it.
	spoolName = "spool"
	// clockLeeway is how far in the future a file may be written.
	clockLeeway = time.Minute
)

// Facts are what the checks look at. Zero values are what is not known.
type Facts struct {
	Now     time.Time
	Version string // of this program
	User    int    // its id; -1 where there are none
	Flags   string // of the command line, " --data-dir …", for commands that are proposed

	ConfigPath string
	DataDir    string
	Socket     string
	Listen     string // host:port, as configured
	Shared     bool   // the database is a server's

	Daemon  *Daemon // nil: none answers
	Silence string  // why not, when one is there all the same

	Holder    Holder // who has the data directory
	Port      Holder // who listens on the port of Listen
	PortTaken bool
	FreePort  string // an address near Listen on which nobody listens

	Mistakes []Mistake           // of the configuration file
	Needs    map[string][]string // environment variables → the servers whose entries name them
	Warnings []string
	Earlier  string // the newest text of the configuration that was in force, a file

	Servers []Server // by name

	Files    []File // of the user: the data directory first
	SocketAt File
	Aside    []File // databases that were put aside
	Ahead    File   // a file that was last written in the future
	KeyError string // why the file of the key is of no use

	Free      int64 // bytes, where the data is
	FreeKnown bool
	Sight     store.Peeked
	SightErr  string  // why the database cannot be read
	Pages     Reading // of the database, while no daemon has it
	Damage    string  // what is damaged in them
	Log       Reading // of the activity log, while no daemon has it
	Altered   *activity.Break
	Database  Holder // another one, neither the daemon nor this, that has it open

	Clients      []Client
	ClientsKnown bool   // somebody has looked for them
	ClientsErr   string // why it could not be told

	Late []string // what could not be looked at in time
}

// Reading is how much of something was read.
type Reading int

// What was read. Unread is also what cannot be read.
const (
	unread Reading = iota
	readPart
	readAll
)

// Mistake is one thing that is wrong with the configuration file.
type Mistake = config.Mistake

// File is a file or directory; Path is "" of one that is not there.
type File struct {
	Path     string
	Mode     fs.FileMode
	Owner    int  // -1: not known
	Writable bool // for this user
	Size     int64
	Changed  time.Time
}

// Daemon is what a running daemon says of itself.
type Daemon struct {
	ops.Status
	Executable string // that it runs; "" = not known
	Mine       string // that this is
	Waiting    ops.Waiting
	Mistakes   []Mistake // of its configuration file
	Said       []Said    // its own diagnostics
	Servers    []Server
	Presence   Presence
}

// Presence is how it is proven that a person decides.
type Presence struct {
	On       bool
	Void     string // why nothing that widens counts
	Remedy   string
	Anchor   []string // the places in which the fingerprint of the anchor is not
	Bad      []string // statements that do not verify
	Unsigned []string // decisions that nobody has signed
}

// Said is one of the daemon's own diagnostics: see ops.Check.
type Said struct {
	Code   string
	State  State // OK, Warn or Bad
	Detail string
	Fix    string
}

// said returns the diagnostic with a code.
func (d *Daemon) said(code string) Said {
	if d != nil {
		for _, s := range d.Said {
			if s.Code == code {
				return s
			}
		}
	}
	return Said{State: OK}
}

// Server is a server as the daemon sees it or, without one, as the file has it.
type Server struct {
	Name        string
	Command     string
	Args        []string
	Dir         string
	URL         string
	Enabled     bool
	Quarantined bool
	ProposedBy  string
	Twin        string // another server that is launched in the same way

	Live       bool // what follows comes from a daemon
	State      string
	NeedsLogin bool
	Failure    string // a code of package upstream
	Said       string // why it is not ready, for people
	Lines      []string
	Noise      []string // lines on its stdout that are no messages
	Warnings   []string // what it does otherwise than the protocol asks
	Installing bool
	Since      time.Time
	Tools      int
	Offers     bool // it offers something beside tools
	Unhinted   *ops.Unhinted

	Waits int // tools and offers that nobody has approved

	Idle []string // patterns of enabled_tools and disabled_tools that fit none of its tools

	Clear []InClear

	Missing    string // a program that its command needs and that is not found
	MissingDir string
}

// Clients tells how the MCP clients of this machine are connected. It contacts
// nobody, and writes nothing.
type Clients interface {
	// Look returns those that are installed, in a fixed order. MCPProxy listens, or
	// would, at the address, such as 127.0.0.1:8080.
	Look(address string) ([]Client, error)
}

// Client is an MCP client of this machine.
type Client struct {
	ID      string   // as `mcpproxy connect` takes it
	Name    string   // as people call it
	Path    string   // of the file that decides
	Entry   string   // how it reaches MCPProxy, a URL or a command; "" = it does not
	Foreign bool     // the entry leads to another MCPProxy, or to none
	Missing string   // the program that its entry starts and that is gone
	Broken  []string // its files that cannot be read, and why
	Direct  []string // servers that it reaches without MCPProxy
	Lanes   []Lane   // what differs from the lanes
	Written bool     // the rules are in its files: something else decides
}

// Lane is what a client does about one lane, otherwise than it should.
type Lane struct {
	Name string // the tool: call_tool_read
	Does string // such as "asks"
	Want string // such as "runs unasked"
	Rule string // which decides, with its file
	// Denied says that a rule denies it: a person's, which MCPProxy never takes out.
	Denied bool
}

// Entry is what the entry of a server in the configuration file names and holds.
type Entry struct {
	Server    string
	Variables []string // environment variables that it refers to
	Clear     []InClear
}

// InClear is a credential in the file itself.
type InClear struct {
	Place  string // env.NAME, headers.NAME, args.INDEX, command or url
	Secret string // the name under which the keyring would have it
}
