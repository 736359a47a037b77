package clients

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
)

// Surface is the form in which MCPProxy presents the tools to a client.
type Surface string

// The surfaces. Connect writes the first four. SurfaceServer is for a single server, whose entry users add by hand.
const (
	SurfaceAuto   Surface = "auto"   // the surface from the table
	SurfaceSearch Surface = "search" // /mcp: six tools that search for tools and call them
	SurfaceLanes  Surface = "lanes"  // /mcp/all/read, write and destructive: three entries with real tool names
	SurfaceAll    Surface = "all"    // /mcp/all: one entry with real tool names
	SurfaceServer Surface = "server" // /mcp/servers/NAME
)

// SurfaceNames returns the surfaces that a user can choose.
func SurfaceNames() []string {
	return []string{string(SurfaceAuto), string(SurfaceSearch), string(SurfaceLanes), string(SurfaceAll)}
}

// LaneNames returns the lanes, the most harmless first.
func LaneNames() []string { return []string{"read", "write", "destructive"} }

// ResolveSurface returns the surface for a client: the chosen one, or for auto and "" the surface from the table. The
// error is a *problem.Problem INVALID_PARAMETER.
func (c Client) ResolveSurface(chosen Surface) (Surface, error) {
	switch chosen {
	case "", SurfaceAuto:
		return c.SurfaceFacts().Surface, nil
	case SurfaceSearch, SurfaceLanes, SurfaceAll:
		return chosen, nil
	}
	return "", problem.Newf(problem.InvalidParameter, "Invalid surface '%s'.", problem.ClipName(string(chosen))).
		WithHint("Give one of "+strings.Join(SurfaceNames(), ", ")+".").With("parameter", "surface")
}

// ProxyEntry is one of MCPProxy's entries in a client.
type ProxyEntry struct {
	Name    string
	Surface Surface
	Lane    string      // for SurfaceLanes: read, write or destructive
	Value   ParsedValue // the value in the file, or the zero value if the file has no such entry
}

// NewProxyEntries returns the entries of a surface for the client, with the client's names for them.
func (c Client) NewProxyEntries(s Surface) []ProxyEntry {
	if s != SurfaceLanes {
		return []ProxyEntry{{Name: DefaultServerName, Surface: s}}
	}
	var all []ProxyEntry
	for _, lane := range LaneNames() {
		all = append(all, ProxyEntry{Name: c.laneEntryName(lane), Surface: s, Lane: lane})
	}
	return all
}

// minToolRoom is the length that an entry's name must leave for SERVER__TOOL. 87 % of 780 tool names in 29 public lists
// fit into it.
const minToolRoom = 40

// laneEntryName returns the name of a lane's entry: mcpproxy-LANE, or a shorter one if the client's limit would leave too
// little for the names of tools.
func (c Client) laneEntryName(lane string) string {
	f := c.SurfaceFacts()
	name := DefaultServerName + "-" + lane
	if f.nameLimit > 0 && f.nameLimit-len(f.ToolName(name, "")) < minToolRoom {
		return shortLaneNames[lane]
	}
	return name
}

// shortLaneNames are the names of lane entries where a client's limit needs shorter ones.
var shortLaneNames = map[string]string{"read": "mcpproxy-read", "write": "mcpproxy-write", "destructive": "mcpproxy-destr"}

// laneOfEntryName returns the lane of one of MCPProxy's entry names, or "" for other names.
func laneOfEntryName(name string) string {
	for _, lane := range LaneNames() {
		if name == DefaultServerName+"-"+lane || name == shortLaneNames[lane] {
			return lane
		}
	}
	return ""
}

// IsOwnEntryName reports whether connect writes entries with this name.
func IsOwnEntryName(name string) bool {
	return name == DefaultServerName || laneOfEntryName(name) != ""
}

// ProxyEntries returns MCPProxy's entries in a file: those with its names, and those that point to it.
func (d ClientDoc) ProxyEntries(address func(url string) bool) []ProxyEntry {
	var all []ProxyEntry
	for name, value := range d.Value.Get(d.ServersPath()...).Members() {
		if IsOwnEntryName(name) && value.IsObject() || PointsToMCPProxy(value, address) {
			all = append(all, newProxyEntry(name, value))
		}
	}
	return all
}

// newProxyEntry determines the surface of an entry by its address. If the entry does not point to MCPProxy, it
// determines the surface by the name.
func newProxyEntry(name string, value ParsedValue) ProxyEntry {
	e := ProxyEntry{Name: name, Value: value, Surface: SurfaceSearch, Lane: laneOfEntryName(name)}
	if e.Lane != "" {
		e.Surface = SurfaceLanes
	}
	at := ParseProxyConnection(value)
	if surface, lane := surfaceOfPath(at.Path, at.Profile); surface != "" {
		e.Surface, e.Lane = surface, lane
	}
	return e
}

// surfaceOfPath returns the surface of an address of MCPProxy, or "" for another path.
func surfaceOfPath(path, profile string) (Surface, string) {
	rest, ok := strings.CutPrefix(path, "/mcp")
	if profile != "" {
		rest = strings.TrimPrefix(rest, "/p/"+profile)
	}
	lane, isLane := strings.CutPrefix(rest, "/all/")
	switch {
	case !ok:
		return "", ""
	case rest == "":
		return SurfaceSearch, ""
	case rest == "/all":
		return SurfaceAll, ""
	case isLane && slices.Contains(LaneNames(), lane):
		return SurfaceLanes, lane
	case strings.HasPrefix(rest, "/servers/"):
		return SurfaceServer, ""
	}
	return "", ""
}

// PlannedEntry is an entry to write, with its address.
type PlannedEntry struct {
	Name    string
	Address ProxyAddress
}

// ReplacedEntries returns the names of the entries that planned ones replace. These are entries of other surfaces, with
// a name that connect writes or with the same profile. An entry that a user added for another profile, or for a single
// server, is kept.
func (d ClientDoc) ReplacedEntries(planned []PlannedEntry, ours func(url string) bool) (names []string) {
	for _, there := range d.ProxyEntries(ours) {
		stays := there.Surface == SurfaceServer || slices.ContainsFunc(planned, func(e PlannedEntry) bool { return e.Name == there.Name })
		profile := ParseProxyConnection(there.Value).Profile
		if !stays && (IsOwnEntryName(there.Name) || slices.ContainsFunc(planned, func(e PlannedEntry) bool { return e.Address.Profile == profile })) {
			names = append(names, there.Name)
		}
	}
	return names
}

// TextWithEntries returns the text of a file with these entries of MCPProxy, and without those that they replace. An
// existing entry is changed as by TextWithServer. A new entry gets the credentials of the entry that it replaces,
// unless that pointed elsewhere or a token is given.
func (c Client) TextWithEntries(d ClientDoc, entries []PlannedEntry, ours func(url string) bool) (text []byte, err error) {
	text = d.Text
	for _, e := range entries {
		at, err := d.Parse(text)
		if err != nil {
			return nil, err
		}
		if e.Address.Token == "" && !d.ServerEntry(e.Name).IsObject() {
			if e.Address.kept, err = d.credentials(c.HTTP, ours); err != nil {
				return nil, err
			}
		}
		if text, err = c.TextWithServer(at, e.Name, e.Address, ours); err != nil {
			return nil, err
		}
	}
	for _, name := range d.ReplacedEntries(entries, ours) {
		at, err := d.Parse(text)
		if err != nil {
			return nil, err
		}
		if text, err = at.TextWithoutServer(name); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// credentials returns the credentials of the first entry that points to this MCPProxy by the same transport, HTTP or
// stdio.
func (d ClientDoc) credentials(http bool, ours func(url string) bool) (entryObject, error) {
	for _, there := range d.ProxyEntries(ours) {
		if !PointsToMCPProxy(there.Value, ours) || (EntryURL(there.Value) != "") != http {
			continue
		}
		var kept entryObject
		for _, key := range credentialKeys {
			value, found, err := textedit.GetValue(d.Text, d.Format, append(slices.Clone(d.ServersPath()), there.Name, key)...)
			if err != nil {
				return nil, err
			}
			if found {
				kept = append(kept, entryMember{key, json.RawMessage(value)})
			}
		}
		return kept, nil
	}
	return nil, nil
}

// ToolName returns the name under which the client's model sees a tool of an entry.
func (f SurfaceFacts) ToolName(entry, tool string) string {
	if f.nameFormat == "" {
		return entry + tool
	}
	return fmt.Sprintf(f.nameFormat, entry, tool)
}
