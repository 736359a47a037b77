package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
)

// Options say where to gather facts.
type Options struct {
	Version    string
	ConfigPath string // absolute
	DataDir    string // absolute
	Socket     string
	Flags      string // see Facts
	Lookup     func(name string) (string, bool)
	Now        func() time.Time
	// Ask requests the daemon's facts. It returns ErrAbsent when no daemon runs, another error when a daemon does not answer.
	Ask     func(ctx context.Context) (*Daemon, error)
	Clients Clients // nil: unknown
	// Thorough checks the whole database and log, when no daemon uses them.
	Thorough bool
	// Entries reads the servers' entries in the configuration file; nil: unknown.
	Entries func(text []byte) []Entry
}

// ErrAbsent means that no daemon runs.
var ErrAbsent = errors.New("no daemon is there")

// factPart is one part of gathering. gather returns a function that stores the result; nil stores nothing.
type factPart struct {
	name   string
	gather func(ctx context.Context) func(*Facts)
}

// Gather collects the facts. It takes at most TotalTime, even if a disk or a daemon hangs: Facts.Late names the missing parts.
func Gather(ctx context.Context, o Options) *Facts {
	ctx, cancel := context.WithTimeout(ctx, TotalTime)
	defer cancel()
	f := &Facts{Now: o.Now(), Version: o.Version, User: os.Getuid(), Flags: o.Flags, ConfigPath: o.ConfigPath, DataDir: o.DataDir, Socket: o.Socket}
	f.gather(ctx, []factPart{{"the configuration file", o.configuration}, {"the daemon", o.daemon}})
	f.gather(ctx, []factPart{
		{"the files", o.files}, {"the processes", func(context.Context) func(*Facts) { return processes(f.Listen, o) }},
		{"the database", o.database}, {"the pages of the database", f.withoutDaemon(o, o.pages)}, {"the activity log", f.withoutDaemon(o, o.log)},
		{"the clients", func(context.Context) func(*Facts) { return o.clients(f.Daemon, f.Listen) }},
	})
	f.merge(o)
	return f
}

// gather runs parts concurrently and waits at most PartTime. The result of a late part is dropped.
func (f *Facts) gather(ctx context.Context, parts []factPart) {
	ctx, cancel := context.WithTimeout(ctx, PartTime)
	defer cancel()
	seen := make([]chan func(*Facts), len(parts))
	for i, p := range parts {
		seen[i] = make(chan func(*Facts), 1)
		go func() { seen[i] <- p.gather(ctx) }()
	}
	for i, p := range parts {
		select {
		case note := <-seen[i]:
			if note != nil {
				note(f)
			}
		case <-ctx.Done():
			f.TimedOut = append(f.TimedOut, p.name)
		}
	}
}

// configuration reads the file as a daemon would.
func (o Options) configuration(context.Context) func(*Facts) {
	needs, clear := o.readEntries()
	live, err := config.OpenLiveConfig(o.ConfigPath, config.Options{DataDir: o.DataDir, Lookup: o.Lookup})
	if err != nil {
		return func(f *Facts) { f.Listen, f.Mistakes, f.Needs = config.DefaultConfig().Listen, mistakesOf(err), needs }
	}
	c, warnings := live.Current(), live.Warnings()
	servers := configuredServers(c.Servers)
	for i := range servers {
		servers[i].Clear = clear[servers[i].Name]
	}
	return func(f *Facts) {
		f.Listen, f.Shared, f.Warnings, f.Servers, f.Needs = c.Listen, store.IsPostgres(c.Database), warnings, servers, needs
	}
}

// mistakesOf returns the mistakes in a configuration error.
func mistakesOf(err error) []Mistake {
	p := problem.From(err)
	if all, ok := p.Detail("problems").([]Mistake); ok && len(all) > 0 {
		return all
	}
	return []Mistake{{Message: p.Message, Hint: p.Hint}}
}

func (o Options) daemon(ctx context.Context) func(*Facts) {
	d, err := o.Ask(ctx)
	switch {
	case err == nil:
		return func(f *Facts) { f.Daemon = d }
	case errors.Is(err, ErrAbsent):
		return nil
	}
	return func(f *Facts) { f.NoAnswer = problem.From(err).Message }
}

// processes finds the holders of the data directory and of the port.
func processes(listen string, o Options) func(*Facts) {
	has := HolderOfFile(filepath.Join(o.DataDir, LockFile))
	_, text, _ := net.SplitHostPort(listen)
	port, _ := strconv.ParseUint(text, 10, 16)
	var at Holder
	taken, free := false, ""
	if port > 0 {
		at, taken = HolderOfPort(uint16(port))
		free = freeNear(uint16(port))
	}
	return func(f *Facts) { f.Holder, f.Port, f.PortTaken, f.FreePort = has, at, taken, free }
}

// freeNear returns the first free address above a port.
func freeNear(port uint16) string {
	for p := port + 1; p > port && p < port+50; p++ {
		if _, taken := HolderOfPort(p); !taken {
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(p)))
		}
	}
	return ""
}

func (o Options) database(ctx context.Context) func(*Facts) {
	path := filepath.Join(o.DataDir, databaseName)
	sight, err := store.Peek(ctx, path)
	other := HolderOfFile(path)
	if has := HolderOfFile(filepath.Join(o.DataDir, LockFile)); other.PID == has.PID {
		other = HolderOfFile(path, has.PID)
	}
	return func(f *Facts) {
		f.Sight, f.Database = sight, other
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.SightErr = err.Error()
		}
	}
}

// readTime limits the check of the whole database or log.
const readTime = PartTime - 500*time.Millisecond

// withoutDaemon runs a check of the whole database only when no daemon uses it.
func (f *Facts) withoutDaemon(o Options, look func(ctx context.Context) func(*Facts)) func(ctx context.Context) func(*Facts) {
	return func(ctx context.Context) func(*Facts) {
		path := filepath.Join(o.DataDir, databaseName)
		info, err := os.Stat(path)
		if !o.Thorough || f.Daemon != nil || f.NoAnswer != "" || f.Shared || err != nil || !info.Mode().IsRegular() || info.Size() == 0 || HolderOfFile(filepath.Join(o.DataDir, LockFile)).Known() {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, readTime)
		defer cancel()
		return look(ctx)
	}
}

// pages checks the whole database.
func (o Options) pages(ctx context.Context) func(*Facts) {
	damage, err := store.CheckPages(ctx, filepath.Join(o.DataDir, databaseName))
	return func(f *Facts) { f.Pages = readExtent(ctx, err); f.Damage = damage }
}

// log verifies the whole activity log.
func (o Options) log(ctx context.Context) func(*Facts) {
	first, err := store.CheckActivityLog(ctx, filepath.Join(o.DataDir, databaseName), filepath.Join(o.DataDir, spoolName))
	return func(f *Facts) { f.Log = readExtent(ctx, err); f.Altered = first }
}

// readExtent returns how a check ended.
func readExtent(ctx context.Context, err error) ReadExtent {
	switch {
	case err == nil:
		return readAll
	case ctx.Err() != nil:
		return readPart
	}
	return unread
}

func (o Options) clients(d *Daemon, listen string) func(*Facts) {
	if o.Clients == nil {
		return nil
	}
	all, err := o.Clients.Examine(listenAddress(d, listen))
	return func(f *Facts) {
		f.Clients, f.ClientsKnown = all, true
		if err != nil {
			f.ClientsErr = problem.From(err).Message
		}
	}
}

// listenAddress returns the address where MCPProxy answers, or would answer.
func listenAddress(d *Daemon, listen string) string {
	if d != nil {
		for _, s := range d.Surfaces {
			if at, ok := strings.CutSuffix(strings.TrimPrefix(s.Address, "http://"), "/mcp"); ok {
				return at
			}
		}
	}
	return listen
}

// maxEntries limits the examined entries of the data directory.
const maxEntries = 2_000

func (o Options) files(context.Context) func(*Facts) {
	var found, aside []File
	var ahead File
	add := func(path string) {
		if f := statFile(path); f.Path != "" {
			found = append(found, f)
		}
	}
	add(o.DataDir)
	add(o.ConfigPath)
	names := directoryNames(o.DataDir)
	for _, name := range names {
		path := filepath.Join(o.DataDir, name)
		switch f := statFile(path); {
		case f.Path == "" || path == o.ConfigPath || path == o.Socket || isLink(path):
		case isMovedAside(name):
			aside = append(aside, f)
		default:
			if name == spoolName {
				f.Changed = newestIn(f)
			}
			if f.Changed.After(ahead.Changed) && f.Changed.After(o.Now().Add(clockLeeway)) {
				ahead = f
			}
			found = append(found, f)
		}
	}
	socket, earlier, keyError := statFile(o.Socket), earlierText(o.DataDir), keyError(o.DataDir)
	free, known := ondisk.FreeSpace(existingParent(o.DataDir))
	return func(f *Facts) {
		f.Files, f.MovedAside, f.FutureFile, f.SocketAt, f.Earlier, f.KeyError = found, aside, ahead, socket, earlier, keyError
		f.Free, f.FreeKnown = free, known
	}
}

// directoryNames returns the sorted names in a directory, at most maxEntries.
func directoryNames(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, _ := d.Readdirnames(maxEntries)
	slices.Sort(names)
	return names
}

// isMovedAside reports whether a file is a database that was moved aside.
func isMovedAside(name string) bool {
	rest, ok := strings.CutPrefix(name, databaseName+".")
	return ok && (strings.HasPrefix(rest, "corrupt-") || strings.HasPrefix(rest, "replaced-"))
}

// newestIn returns the newest modification time in a directory.
func newestIn(dir File) time.Time {
	newest := dir.Changed
	for _, name := range directoryNames(dir.Path) {
		if f := statFile(filepath.Join(dir.Path, name)); f.Changed.After(newest) {
			newest = f.Changed
		}
	}
	return newest
}

// isLink reports whether path is a symbolic link. MCPProxy creates none in the data directory, and no fix may change a link's target.
func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeSymlink
}

// statFile returns a file, following links.
func statFile(path string) File {
	info, err := os.Stat(path)
	if err != nil {
		return File{}
	}
	return File{path, info.Mode(), ownerOf(info), mayWrite(path), info.Size(), info.ModTime()}
}

// earlierText returns the file of the newest earlier configuration.
func earlierText(dataDir string) string {
	dir := filepath.Join(dataDir, "config-history")
	for _, name := range slices.Backward(directoryNames(dir)) {
		if strings.HasSuffix(name, ".jsonc") {
			return filepath.Join(dir, name)
		}
	}
	return ""
}

// keyError returns what is wrong with the key file; "" for nothing, or no file.
func keyError(dataDir string) string {
	path := filepath.Join(dataDir, auth.KeyFile)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return "it cannot be looked at"
	case !info.Mode().IsRegular():
		return "it is not a file"
	case info.Size() < auth.MinKey:
		return "it holds no key"
	}
	return ""
}

// merge combines the facts of several parts.
func (f *Facts) merge(o Options) {
	if f.Daemon == nil {
		for i := range f.Servers {
			w := f.Sight.Waiting[f.Servers[i].Name]
			f.Servers[i].Waits = w.Tools + w.Primitives
		}
		for _, name := range f.Sight.Proposed {
			f.Servers = append(f.Servers, Server{Name: name, ProposedBy: "an agent"})
		}
	} else {
		file := f.Servers
		f.Mistakes, f.Servers = f.Daemon.Mistakes, f.Daemon.Servers
		for i := range f.Servers {
			f.Servers[i].mergeFile(file)
		}
	}
	slices.SortFunc(f.Servers, func(a, b Server) int { return cmp.Compare(a.Name, b.Name) })
}

// readEntries reads the servers' entries in the configuration file.
func (o Options) readEntries() (needs map[string][]string, clear map[string][]InClear) {
	text, err := os.ReadFile(o.ConfigPath)
	if err != nil || o.Entries == nil {
		return nil, nil
	}
	needs, clear = map[string][]string{}, map[string][]InClear{}
	for _, e := range o.Entries(text) {
		for _, v := range e.Variables {
			needs[v] = append(needs[v], e.Server)
		}
		for _, c := range e.Clear {
			if strings.HasPrefix(c.Place, "env.") || strings.HasPrefix(c.Place, "headers.") {
				clear[e.Server] = append(clear[e.Server], c)
			}
		}
	}
	return needs, clear
}
