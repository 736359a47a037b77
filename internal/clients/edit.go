package clients

import (
	"bytes"
	"slices"
	"strings"

	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// connectionKeys are the members that say how a server is reached, in any client's
// spelling.
var connectionKeys = []string{"type", "transport", "url", "serverUrl", "httpUrl", "uri", "command", "cmd", "args", "cwd", "bearer_token_env_var"}

// credentialKeys are the members with credentials.
var credentialKeys = []string{"headers", "http_headers", "env_http_headers", "env", "envs", "oauth"}

// WithServer returns the text of a file with MCPProxy as a server. Other members of an
// existing entry, such as permissions, stay. So do its credentials, unless a token is
// given or it pointed elsewhere.
func (c Client) WithServer(d Doc, server string, a Address, ours func(url string) bool) ([]byte, error) {
	entry := c.entry(a)
	path := append(slices.Clone(d.ServersKey()), server)
	if len(d.Key) < len(d.ServersKey()) { // opencode 2 has disabled instead
		entry = slices.DeleteFunc(entry, func(m entryMember) bool { return m.name == "enabled" })
	}
	there := d.Entry(server)
	if !there.IsObject() {
		value, err := entry.MarshalJSON()
		if err != nil {
			return nil, err
		}
		return textedit.Set(d.Text, d.Format, value, path...)
	}
	return entry.mergeInto(d, path, slices.Concat(connectionKeys, disableKeys(d, server), staleCredentialKeys(a.Token != "" || !PointsToMCPProxy(there, ours))))
}

// staleCredentialKeys returns the credential members to remove if stale.
func staleCredentialKeys(stale bool) []string {
	if stale {
		return credentialKeys
	}
	return nil
}

// disableKeys returns the members that disable the entry.
func disableKeys(d Doc, server string) []string {
	var off []string
	for name, says := range map[string]bool{"disabled": true, "enabled": false} {
		if value, ok := d.Entry(server).Get(name).Bool(); ok && value == says {
			off = append(off, name)
		}
	}
	return off
}

// mergeInto writes the members into the entry at a path, and removes the stale ones that
// it does not have.
func (o entryObject) mergeInto(d Doc, path, stale []string) (text []byte, err error) {
	text = d.Text
	for _, name := range stale {
		if slices.ContainsFunc(o, func(m entryMember) bool { return m.name == name }) {
			continue
		}
		if text, err = textedit.Remove(text, d.Format, append(slices.Clone(path), name)...); err != nil {
			return nil, err
		}
	}
	for _, m := range o {
		value, err := wirejson.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if text, err = textedit.Set(text, d.Format, value, append(slices.Clone(path), m.name)...); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// RestoreEntries returns the text of a client's file with the entries of a change
// restored, and the rest as it is now. what names the change and the client. The error is
// a *problem.Problem: CONFLICT if an entry was removed and then added differently.
func (e Env) RestoreEntries(what string, entries [][]string, now, before []byte) ([]byte, error) {
	done, id, _ := strings.Cut(what, " ")
	c, err := Find(id)
	if err != nil {
		return nil, err
	}
	format := c.Target(e).Format
	for _, path := range entries {
		is, there, err := textedit.Get(now, format, path...)
		if err != nil {
			return nil, err
		}
		if was, _, _ := textedit.Get(before, format, path...); done == "import" && there && !bytes.Equal(is, was) {
			return nil, problem.Newf(problem.Conflict, "%s is in a file of %s again, and is another one than before.", path[len(path)-1], c.Name).WithHint("Rename it there, and try again.")
		}
	}
	return textedit.Restore(now, before, format, entries)
}

// WithoutServer returns the text of a file without a server.
func (d Doc) WithoutServer(server string) ([]byte, error) {
	return textedit.Remove(d.Text, d.Format, append(slices.Clone(d.ServersKey()), server)...)
}
