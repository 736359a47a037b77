package clients

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
)

// ClientDoc is the content of a client's file.
type ClientDoc struct {
	File
	Text  []byte
	Value ParsedValue
	// Broken is the reason why the file cannot be parsed, or "".
	Broken string
}

// Read reads a file; ok is false if it does not exist.
func (f File) Read() (d ClientDoc, ok bool) {
	d = ClientDoc{File: f}
	text, err := readRegularFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoPath) {
		return d, false
	}
	if err == nil {
		d.Text = text
		d.Value, err = ParseText(text, f.Format)
	}
	if err != nil {
		d.Broken = readErrorText(err)
	}
	return d, true
}

// Parse parses a text as this file. The error is a *problem.Problem INVALID_CONFIG that contains the name of the file.
func (f File) Parse(text []byte) (ClientDoc, error) {
	tree, err := ParseText(text, f.Format)
	if err != nil {
		p := problem.From(err)
		return ClientDoc{}, problem.New(p.Code, f.Path+": "+p.Message, p.Hint)
	}
	return ClientDoc{File: f, Text: text, Value: tree}, nil
}

// ServersPath returns the path of the servers object. In opencode 2, that is one level below the file's key.
func (d ClientDoc) ServersPath() []string {
	if len(d.Key) == 1 && d.Key[0] == "mcp" {
		if inner := d.Value.Get("mcp", "servers"); inner.IsObject() && !isServerValue(inner) {
			return []string{"mcp", "servers"}
		}
	}
	return d.Key
}

// ServerEntry returns a server's entry.
func (d ClientDoc) ServerEntry(server string) ParsedValue {
	return d.Value.Get(d.ServersPath()...).Get(server)
}

func isServerValue(entry ParsedValue) bool {
	for _, key := range []string{"command", "cmd", "url", "type"} {
		if entry.Get(key).Exists() && !entry.Get(key).IsObject() {
			return true
		}
	}
	return false
}

// ProxyRegistration contains the entries of MCPProxy in one file of a client.
type ProxyRegistration struct {
	Server  string    // name of the first entry
	Doc     ClientDoc // the file
	Entry   ParsedValue
	Surface Surface
	Entries []ProxyEntry // all entries of the surface, in the order of the lanes
}

// FindProxyRegistration finds MCPProxy in files, which are sorted from lowest to highest precedence. In the file with
// the highest precedence, it looks for entries with MCPProxy's own names, then for the first entry that points to it.
func FindProxyRegistration(docs []ClientDoc, address func(url string) bool) (ProxyRegistration, bool) {
	var other *ProxyRegistration
	for i := len(docs) - 1; i >= 0; i-- {
		entries := docs[i].ProxyEntries(address)
		slices.SortStableFunc(entries, func(a, b ProxyEntry) int { return cmp.Compare(a.rank(), b.rank()) })
		switch {
		case len(entries) == 0:
		case IsOwnEntryName(entries[0].Name):
			return newProxyRegistration(docs[i], entries), true
		case other == nil || other.Surface == SurfaceServer && entries[0].Surface != SurfaceServer:
			found := newProxyRegistration(docs[i], entries)
			other = &found
		}
	}
	if other != nil {
		return *other, true
	}
	return ProxyRegistration{Server: DefaultServerName, Surface: SurfaceSearch}, false
}

// newProxyRegistration returns the entries that have the surface of the first entry.
func newProxyRegistration(d ClientDoc, entries []ProxyEntry) ProxyRegistration {
	r := ProxyRegistration{Server: entries[0].Name, Doc: d, Entry: entries[0].Value, Surface: entries[0].Surface}
	for _, e := range entries {
		if e.Surface == r.Surface {
			r.Entries = append(r.Entries, e)
		}
	}
	return r
}

// rank returns the sort key of an entry: MCPProxy's name first, then its names for lanes, then other names, and an
// entry for a single server last.
func (e ProxyEntry) rank() int {
	switch {
	case e.Name == DefaultServerName:
		return 0
	case e.Surface == SurfaceServer:
		return 9
	}
	lane := 1 + slices.Index(LaneNames(), e.Lane)
	if IsOwnEntryName(e.Name) {
		return lane
	}
	return 4 + lane
}

// PointsToMCPProxy reports whether an entry starts MCPProxy or has one of its URLs.
func PointsToMCPProxy(entry ParsedValue, address func(url string) bool) bool {
	command, _ := EntryCommand(entry)
	base := command[strings.LastIndexAny(command, `/\`)+1:]
	if strings.TrimSuffix(strings.ToLower(base), ".exe") == DefaultServerName {
		return true
	}
	url := EntryURL(entry)
	return url != "" && address != nil && address(url)
}

// EntryURL returns the URL of an entry, or "".
func EntryURL(entry ParsedValue) string {
	for _, key := range []string{"url", "serverUrl", "httpUrl", "uri"} {
		if text := entry.Get(key).Text(); text != "" {
			return text
		}
	}
	return ""
}

// EntryCommand returns the command of an entry, and its arguments.
func EntryCommand(entry ParsedValue) (command string, args []string) {
	for _, key := range []string{"command", "cmd"} {
		for _, text := range entry.Get(key).StringItems() {
			args = append(args, text.Text())
		}
	}
	for _, text := range entry.Get("args").StringItems() {
		args = append(args, text.Text())
	}
	if len(args) == 0 {
		return "", nil
	}
	return args[0], args[1:]
}

// DescribeEntry returns an entry's URL or command in one line, with secrets masked.
func DescribeEntry(entry ParsedValue) string {
	if url := EntryURL(entry); url != "" {
		return redact.URL(url)
	}
	command, args := EntryCommand(entry)
	return strings.TrimSpace(command + " " + strings.Join(redact.Args(args), " "))
}

// errNoPath is the error for a file that has no path on this system.
var errNoPath = errors.New("no path")

// readRegularFile reads a regular file up to the maximum size.
func readRegularFile(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, errNoPath
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, textedit.MaxSize+1))
}

// readErrorText returns the reason why a file cannot be read, without its path.
func readErrorText(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return problem.From(err).Message
}
