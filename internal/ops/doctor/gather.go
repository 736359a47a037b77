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
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store"
)

// GatherOptions are the sources of the facts.
type GatherOptions struct {
	Version    string
	ConfigPath string // absolute
	DataDir    string // absolute
	Socket     string
	Flags      string // see Facts.Flags
	Lookup     func(name string) (string, bool)
	Now        func() time.Time
	// Ask requests the daemon's facts. It returns ErrAbsent if no daemon is running, and another error if a daemon does
	// not answer.
	Ask func(ctx context.Context) (*DaemonFacts, error)
	// ExamineClients returns the installed MCP clients in a fixed order. If it is nil, the clients are unknown. base
	// is the URL of MCPProxy for clients, such as http://127.0.0.1:8080. It contacts no server and
	// writes nothing.
	ExamineClients func(base string) ([]ClientFacts, error)
	// Thorough means to check the whole database and activity log if no daemon uses them.
	Thorough bool
}

// ErrAbsent means that no daemon is running.
var ErrAbsent = errors.New("no daemon is running")

// gatherPart collects one part of the facts. gather returns a function that stores the result, or nil if there is none.
type gatherPart struct {
	name   string
	gather func(ctx context.Context) func(*Facts)
}

// GatherFacts collects the facts. It takes at most TotalTime, even if a disk or a daemon hangs. Facts.TimedOut names
// the missing parts.
func GatherFacts(ctx context.Context, o GatherOptions) *Facts {
	ctx, cancel := context.WithTimeout(ctx, TotalTime)
	defer cancel()
	f := &Facts{Now: o.Now(), Version: o.Version, User: os.Getuid(), Flags: o.Flags, ConfigPath: o.ConfigPath, DataDir: o.DataDir, Socket: o.Socket}
	f.gatherConcurrently(ctx, []gatherPart{{"the configuration file", o.gatherConfiguration}, {"the daemon", o.gatherDaemon}})
	f.gatherConcurrently(ctx, []gatherPart{
		{"the files", o.gatherFiles}, {"the processes", func(context.Context) func(*Facts) { return gatherLockAndPortHolders(f.Listen, o) }},
		{"the database", o.gatherDatabase}, {"the pages of the database", f.onlyWithoutDaemon(o, o.gatherPageDamage)}, {"the activity log", f.onlyWithoutDaemon(o, o.gatherLogVerification)},
		{"the clients", func(context.Context) func(*Facts) { return o.gatherClients(f.Daemon, f.Base) }},
	})
	f.mergeServerFacts(o)
	return f
}

// gatherConcurrently runs the parts concurrently and waits at most PartTime. It drops the results of late parts.
func (f *Facts) gatherConcurrently(ctx context.Context, parts []gatherPart) {
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

// gatherConfiguration reads the configuration file like a daemon.
func (o GatherOptions) gatherConfiguration(context.Context) func(*Facts) {
	needs, clear := o.readServerVariablesAndSecrets()
	live, err := config.OpenLiveConfig(o.ConfigPath, config.Options{DataDir: o.DataDir, Lookup: o.Lookup})
	if err != nil {
		return func(f *Facts) {
			f.Listen, f.Mistakes, f.Needs = config.DefaultConfig().Listen, toMistakes(err), needs
			f.Base = config.ListenerURL(f.Listen, false)
		}
	}
	c, warnings := live.Current(), live.Warnings()
	servers := toServerFacts(c.Servers)
	for i := range servers {
		servers[i].Clear = clear[servers[i].Name]
	}
	return func(f *Facts) {
		f.Listen, f.Shared, f.Warnings, f.Servers, f.Needs = c.Listen, store.IsPostgres(c.Database), warnings, servers, needs
		f.Base = c.BaseURL(c.Listen, c.TLS.IsOn())
	}
}

// toMistakes converts the error of an invalid configuration to a list of its mistakes.
func toMistakes(err error) []Mistake {
	p := problem.From(err)
	if all, ok := p.Detail("problems").([]Mistake); ok && len(all) > 0 {
		return all
	}
	return []Mistake{{Message: p.Message, Hint: p.Hint}}
}

func (o GatherOptions) gatherDaemon(ctx context.Context) func(*Facts) {
	d, err := o.Ask(ctx)
	switch {
	case err == nil:
		return func(f *Facts) { f.Daemon = d }
	case errors.Is(err, ErrAbsent):
		return nil
	}
	return func(f *Facts) { f.NoAnswerReason = problem.From(err).Message }
}

// gatherLockAndPortHolders finds the processes that lock the data directory and listen on the port.
func gatherLockAndPortHolders(listen string, o GatherOptions) func(*Facts) {
	has := FindFileHolder(filepath.Join(o.DataDir, LockFile))
	_, text, _ := net.SplitHostPort(listen)
	port, _ := strconv.ParseUint(text, 10, 16)
	var at Holder
	taken, free := false, ""
	if port > 0 {
		at, taken = FindPortHolder(uint16(port))
		free = findFreeAddress(uint16(port))
	}
	return func(f *Facts) { f.Holder, f.PortHolder, f.PortTaken, f.FreePort = has, at, taken, free }
}

// findFreeAddress returns the address with the first free port above port.
func findFreeAddress(port uint16) string {
	for p := port + 1; p > port && p < port+50; p++ {
		if _, taken := FindPortHolder(p); !taken {
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(p)))
		}
	}
	return ""
}

func (o GatherOptions) gatherDatabase(ctx context.Context) func(*Facts) {
	path := filepath.Join(o.DataDir, databaseName)
	sight, err := store.Peek(ctx, path)
	other := FindFileHolder(path)
	if has := FindFileHolder(filepath.Join(o.DataDir, LockFile)); other.PID == has.PID {
		other = FindFileHolder(path, has.PID)
	}
	return func(f *Facts) {
		f.DatabaseFacts, f.DatabaseHolder, f.NoDatabase = sight, other, errors.Is(err, fs.ErrNotExist)
		if err != nil && !f.NoDatabase {
			f.DatabaseErr = err.Error()
		}
	}
}

// readTime limits the duration of checking the whole database or activity log.
const readTime = PartTime - 500*time.Millisecond

// onlyWithoutDaemon returns a gather function that calls look only if no daemon uses the database.
func (f *Facts) onlyWithoutDaemon(o GatherOptions, look func(ctx context.Context) func(*Facts)) func(ctx context.Context) func(*Facts) {
	return func(ctx context.Context) func(*Facts) {
		path := filepath.Join(o.DataDir, databaseName)
		info, err := os.Stat(path)
		if !o.Thorough || f.Daemon != nil || f.NoAnswerReason != "" || f.Shared || err != nil || !info.Mode().IsRegular() || info.Size() == 0 || FindFileHolder(filepath.Join(o.DataDir, LockFile)).IsKnown() {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, readTime)
		defer cancel()
		return look(ctx)
	}
}

// gatherPageDamage checks all pages of the database.
func (o GatherOptions) gatherPageDamage(ctx context.Context) func(*Facts) {
	damage, err := store.CheckPages(ctx, filepath.Join(o.DataDir, databaseName))
	return func(f *Facts) { f.PagesExtent = toReadExtent(ctx, err); f.DatabaseDamage = damage }
}

// gatherLogVerification verifies the whole activity log.
func (o GatherOptions) gatherLogVerification(ctx context.Context) func(*Facts) {
	first, err := store.CheckActivityLog(ctx, filepath.Join(o.DataDir, databaseName), filepath.Join(o.DataDir, spoolName))
	return func(f *Facts) { f.LogExtent = toReadExtent(ctx, err); f.FirstAltered = first }
}

// toReadExtent returns how much a check has read, from its error.
func toReadExtent(ctx context.Context, err error) readExtent {
	switch {
	case err == nil:
		return readAll
	case ctx.Err() != nil:
		return readPart
	}
	return unread
}

func (o GatherOptions) gatherClients(d *DaemonFacts, base string) func(*Facts) {
	if o.ExamineClients == nil {
		return nil
	}
	if d != nil {
		base = cmp.Or(ops.ClientBaseURL(d.Surfaces), base)
	}
	all, err := o.ExamineClients(base)
	return func(f *Facts) {
		f.Clients, f.ClientsKnown = all, true
		if err != nil {
			f.ClientsErr = problem.From(err).Message
		}
	}
}

// maxEntries limits the number of examined entries of the data directory.
const maxEntries = 2_000

func (o GatherOptions) gatherFiles(context.Context) func(*Facts) {
	var found, aside []FileFacts
	var ahead FileFacts
	add := func(path string) {
		if f := newFileFacts(path); f.Path != "" {
			found = append(found, f)
		}
	}
	add(o.DataDir)
	add(o.ConfigPath)
	names := namesInDirectory(o.DataDir)
	for _, name := range names {
		path := filepath.Join(o.DataDir, name)
		switch f := newFileFacts(path); {
		case f.Path == "" || path == o.ConfigPath || path == o.Socket || isSymlink(path):
		case isMovedAsideDatabase(name):
			aside = append(aside, f)
		default:
			if name == spoolName {
				f.Changed = newestModTime(f)
			}
			if f.Changed.After(ahead.Changed) && f.Changed.After(o.Now().Add(clockLeeway)) {
				ahead = f
			}
			found = append(found, f)
		}
	}
	socket, earlier, keyError := newFileFacts(o.Socket), newestEarlierConfigFile(o.DataDir), keyFileProblem(o.DataDir)
	free, known := ondisk.FreeSpace(existingParent(o.DataDir))
	return func(f *Facts) {
		f.Files, f.MovedAside, f.FutureFile, f.SocketFile, f.EarlierConfig, f.KeyError = found, aside, ahead, socket, earlier, keyError
		f.FreeBytes, f.FreeKnown = free, known
	}
}

// namesInDirectory returns the sorted names in a directory, at most maxEntries.
func namesInDirectory(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, _ := d.Readdirnames(maxEntries)
	slices.Sort(names)
	return names
}

// isMovedAsideDatabase reports whether a file is a database that was moved aside.
func isMovedAsideDatabase(name string) bool {
	rest, ok := strings.CutPrefix(name, databaseName+".")
	return ok && (strings.HasPrefix(rest, "corrupt-") || strings.HasPrefix(rest, "replaced-"))
}

// newestModTime returns the newest modification time in a directory.
func newestModTime(dir FileFacts) time.Time {
	newest := dir.Changed
	for _, name := range namesInDirectory(dir.Path) {
		if f := newFileFacts(filepath.Join(dir.Path, name)); f.Changed.After(newest) {
			newest = f.Changed
		}
	}
	return newest
}

// isSymlink reports whether path is a symbolic link. MCPProxy creates no symbolic links in the data directory, and a
// fix must not change the target of a link.
func isSymlink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeSymlink
}

// newFileFacts returns the facts about a file. It follows symbolic links.
func newFileFacts(path string) FileFacts {
	info, err := os.Stat(path)
	if err != nil {
		return FileFacts{}
	}
	return FileFacts{path, info.Mode(), fileOwner(info), canWrite(path), info.Size(), info.ModTime()}
}

// newestEarlierConfigFile returns the path of the newest earlier configuration.
func newestEarlierConfigFile(dataDir string) string {
	dir := filepath.Join(dataDir, "config-history")
	for _, name := range slices.Backward(namesInDirectory(dir)) {
		if strings.HasSuffix(name, ".jsonc") {
			return filepath.Join(dir, name)
		}
	}
	return ""
}

// keyFileProblem returns the reason why the key file is unusable. It returns "" if the file is usable or does not
// exist.
func keyFileProblem(dataDir string) string {
	path := filepath.Join(dataDir, auth.KeyFile)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return "it cannot be read"
	case !info.Mode().IsRegular():
		return "it is not a file"
	case info.Size() < auth.MinKey:
		return "it contains no key"
	}
	return ""
}

// mergeServerFacts combines the facts about servers from the file, the database and the daemon.
func (f *Facts) mergeServerFacts(o GatherOptions) {
	if f.Daemon == nil {
		for i := range f.Servers {
			w := f.DatabaseFacts.Waiting[f.Servers[i].Name]
			f.Servers[i].Waiting = w.Tools + w.Primitives
		}
		for _, name := range f.DatabaseFacts.Proposed {
			f.Servers = append(f.Servers, newServerFacts(ops.ServerView{Name: name, ProposedBy: "an agent"}))
		}
	} else {
		file := f.Servers
		f.Mistakes, f.Servers = f.Daemon.Mistakes, f.Daemon.Servers
		for i := range f.Servers {
			f.Servers[i].mergeConfigured(file)
		}
	}
	slices.SortFunc(f.Servers, func(a, b ServerFacts) int { return cmp.Compare(a.Name, b.Name) })
}

// readServerVariablesAndSecrets reads the configuration file. It returns the referenced environment variables and the
// plain-text secrets of the servers.
func (o GatherOptions) readServerVariablesAndSecrets() (needs map[string][]string, clear map[string][]ops.InClear) {
	text, err := os.ReadFile(o.ConfigPath)
	if err != nil {
		return nil, nil
	}
	needs, clear = map[string][]string{}, map[string][]ops.InClear{}
	for _, e := range ops.FindEntryVariablesAndSecrets(text) {
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

// UnavailableServer is a server that cannot be used, with the reason found in the files.
type UnavailableServer struct {
	Name   string `json:"name"`
	Detail string `json:"detail"`
}

// PendingReviews counts the servers and definitions that wait for a user's review.
type PendingReviews struct {
	Servers []string `json:"servers"` // sorted by name
	Tools   int      `json:"tools"`
	Offers  int      `json:"offers"` // prompts, resources, templates and instructions
}

// UnavailableServers returns the enabled servers that cannot be used, with reasons, while no daemon is running.
func (f *Facts) UnavailableServers() []UnavailableServer {
	said := map[string]string{}
	for _, c := range checks {
		if c.Group != GroupServers {
			continue
		}
		for _, one := range c.run(f) {
			if _, before := said[one.Subject]; !before && (one.State == Bad || one.State == Warn) {
				said[one.Subject] = strings.TrimSuffix(strings.TrimPrefix(one.What, "Server "+one.Subject+": "), ".")
			}
		}
	}
	out := []UnavailableServer{}
	for _, s := range f.Servers {
		switch why := said[s.Name]; {
		case s.ProposedBy != "" || !s.Enabled:
		case s.Quarantined:
			out = append(out, UnavailableServer{s.Name, "waits for your review: mcpproxy upstream approve " + s.Name})
		case why != "":
			out = append(out, UnavailableServer{s.Name, why})
		default:
			out = append(out, UnavailableServer{s.Name, "is not started: MCPProxy is not running"})
		}
	}
	return out
}

// PendingReviews reads the pending reviews from the configuration file and the database.
func (f *Facts) PendingReviews() PendingReviews {
	w := PendingReviews{Servers: []string{}}
	for _, s := range f.Servers {
		if s.Quarantined && s.Enabled || s.ProposedBy != "" {
			w.Servers = append(w.Servers, s.Name)
			continue
		}
		waiting := f.DatabaseFacts.Waiting[s.Name]
		w.Tools, w.Offers = w.Tools+waiting.Tools, w.Offers+waiting.Primitives
	}
	return w
}

// ConfigErrorText returns the errors in the configuration file, one per line, or "" if there are none.
func (f *Facts) ConfigErrorText() string {
	var lines []string
	for _, m := range f.Mistakes {
		lines = append(lines, f.formatMistake(m))
	}
	return strings.Join(lines, "\n")
}
