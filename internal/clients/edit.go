package clients

import (
	"bytes"
	"slices"
	"strings"

	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// connectionKeys are the members that describe the connection to a server, in the spelling of any client.
var connectionKeys = []string{"type", "transport", "url", "serverUrl", "httpUrl", "uri", "command", "cmd", "args", "cwd", "bearer_token_env_var"}

// credentialKeys are the members with credentials.
var credentialKeys = []string{"headers", "http_headers", "env_http_headers", "env", "envs", "oauth"}

// TextWithServer returns the text of a file with MCPProxy as a server. Other members of an existing entry, such as
// permissions, are kept. Its credentials are kept too, unless a token is given or the entry pointed elsewhere.
func (c Client) TextWithServer(d ClientDoc, server string, a ProxyAddress, ours func(url string) bool) ([]byte, error) {
	entry := c.newEntry(server, a)
	path := append(slices.Clone(d.ServersPath()), server)
	if len(d.Key) < len(d.ServersPath()) { // opencode 2 uses disabled instead of enabled
		entry = slices.DeleteFunc(entry, func(m entryMember) bool { return m.name == "enabled" })
		if a.isSearch() {
			entry = append(entry, entryMember{"codemode", false})
		}
	}
	there := d.ServerEntry(server)
	if !there.IsObject() {
		value, err := entry.MarshalJSON()
		if err != nil {
			return nil, err
		}
		return textedit.SetValue(d.Text, d.Format, value, path...)
	}
	stale := slices.Concat(connectionKeys, findDisablingKeys(d, server), staleCredentialKeys(a.Token != "" || !PointsToMCPProxy(there, ours)))
	if was := newProxyEntry(server, there); was.Surface == SurfaceSearch && !a.isSearch() {
		for _, m := range append(c.SurfaceFacts().keepLoaded, entryMember{name: "codemode"}) {
			stale = append(stale, m.name)
		}
	}
	return entry.mergeInto(d, path, stale)
}

// HasEntry reports whether the file has the planned entry, in any spelling of the client.
func (c Client) HasEntry(d ClientDoc, planned PlannedEntry, ours func(url string) bool) bool {
	there := d.ServerEntry(planned.Name)
	if !there.IsObject() || !PointsToMCPProxy(there, ours) || EntryURL(there) != planned.Address.URL {
		return false
	}
	if !planned.Address.isSearch() {
		return true
	}
	return !slices.ContainsFunc(c.SurfaceFacts().keepLoaded, func(m entryMember) bool {
		value := there.Get(m.name)
		flag, isFlag := value.Bool()
		return !(isFlag && m.value == flag || value.Exists() && m.value == value.Text())
	})
}

// staleCredentialKeys returns the credential members to remove, or nil if they are not stale.
func staleCredentialKeys(stale bool) []string {
	if stale {
		return credentialKeys
	}
	return nil
}

// findDisablingKeys returns the keys that disable the server's entry.
func findDisablingKeys(d ClientDoc, server string) []string {
	var off []string
	for name, says := range map[string]bool{"disabled": true, "enabled": false} {
		if value, ok := d.ServerEntry(server).Get(name).Bool(); ok && value == says {
			off = append(off, name)
		}
	}
	return off
}

// mergeInto writes the members into the entry at a path, and removes the stale members that o does not contain.
func (o entryObject) mergeInto(d ClientDoc, path, stale []string) (text []byte, err error) {
	text = d.Text
	for _, name := range stale {
		if slices.ContainsFunc(o, func(m entryMember) bool { return m.name == name }) {
			continue
		}
		if text, err = textedit.RemoveValue(text, d.Format, append(slices.Clone(path), name)...); err != nil {
			return nil, err
		}
	}
	for _, m := range o {
		value, err := wirejson.MarshalWithoutHTMLEscape(m.value)
		if err != nil {
			return nil, err
		}
		if text, err = textedit.SetValue(text, d.Format, value, append(slices.Clone(path), m.name)...); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// RestoreEntries returns the text of a client's file with the entries of a change restored, and everything else
// unchanged. what names the change and the client. The error is a *problem.Problem: CONFLICT if an entry was removed
// and then added with different content.
func (e Env) RestoreEntries(what string, entries [][]string, now, before []byte) ([]byte, error) {
	done, id, _ := strings.Cut(what, " ")
	c, err := FindClient(id)
	if err != nil {
		return nil, err
	}
	format := c.TargetFile(e).Format
	for _, path := range entries {
		is, there, err := textedit.GetValue(now, format, path...)
		if err != nil {
			return nil, err
		}
		if was, _, _ := textedit.GetValue(before, format, path...); done == "import" && there && !bytes.Equal(is, was) {
			return nil, problem.Newf(problem.Conflict, "%s was added to a file of %s again, with a different launch.", path[len(path)-1], c.Name).WithHint("Rename it there, and try again.")
		}
	}
	return textedit.RestoreValues(now, before, format, entries)
}

// TextWithoutServer returns the text of a file without a server.
func (d ClientDoc) TextWithoutServer(server string) ([]byte, error) {
	return textedit.RemoveValue(d.Text, d.Format, append(slices.Clone(d.ServersPath()), server)...)
}
