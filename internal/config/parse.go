package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// parseInput is a file with its overrides.
type parseInput struct {
	file    string // name of the file, for messages
	data    []byte
	lookup  func(string) (string, bool)
	listen  string // --listen
	dataDir string // --data-dir or MCPPROXY_DATA_DIR
}

// DefaultConfig returns the configuration of an empty file. DataDir is "~/.mcpproxy" until the
// home directory is known.
func DefaultConfig() *Config {
	c := &Config{}
	setDefaults(c.keys())
	return c
}

func (in parseInput) parseConfig() (*Config, error) {
	if in.lookup == nil {
		in.lookup = func(string) (string, bool) { return "", false }
	}
	src := sourceText{bytes.TrimPrefix(in.data, []byte(byteOrderMark))}
	tree, mistake := src.parseTree()
	if mistake != nil {
		return nil, newMistakesError(in.file, []Mistake{*mistake}, 0)
	}
	d := newDecoder(src, in.lookup)
	c, shown := DefaultConfig(), DefaultConfig()
	g := d.decodeObject(tree, "", c.keys(), shown.keys())
	written := *shown
	in.applyOverrides(c)
	in.applyOverrides(shown)
	in.checkExposure(d, g, c)
	d.checkFront(g, c)
	d.expandHomeDirs(g, c, shown)
	setDefaultTrust(c)
	d.warnUnknownServers(g, c)
	d.checkAlwaysTools(g, c)
	d.checkUsers(g, c)
	if len(d.mistakes) > 0 {
		return nil, newMistakesError(in.file, d.mistakes, d.more)
	}
	maskKeys(shown.keys())
	written.Servers = nil
	for _, s := range c.Servers {
		written.Servers = append(written.Servers, *s.asWritten)
	}
	c.exposure = newExposure(c)
	c.asWritten, c.shown, c.revision, c.sharedRevision = &written, shown, computeRevision(shown), computeRevisionWithoutRestartKeys(shown)
	c.warnings = d.warnings.toTexts(in.file)
	return c, nil
}

func computeRevision(shown *Config) string {
	sum := sha256.Sum256([]byte(marshalToString(shown)))
	return hex.EncodeToString(sum[:6])
}

func computeRevisionWithoutRestartKeys(shown *Config) string {
	text, err := encodeObject(shown.keys(), func(k configKey) bool { return !k.restart })
	if err != nil {
		return "" // strings and numbers always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// applyOverrides applies the overrides to the configuration.
func (in parseInput) applyOverrides(c *Config) {
	if in.listen != "" {
		c.Listen = in.listen
	}
	if in.dataDir != "" {
		c.DataDir = in.dataDir
	}
}

// setDefaultTrust sets the trust of servers for which it is not set.
func setDefaultTrust(c *Config) {
	for i := range c.Servers {
		if c.Servers[i].Trust == "" {
			c.Servers[i].Trust = c.defaultTrust()
		}
	}
}

// defaultTrust returns the trust of servers for which it is not set.
func (c *Config) defaultTrust() Trust {
	if c.QuarantineEnabled {
		return TrustScan
	}
	return TrustAuto
}

// checkExposure rejects a listen address that other machines can reach without a key.
func (in parseInput) checkExposure(d *decoder, g objectMembers, c *Config) {
	if in.listen != "" {
		if err := checkListen(in.listen); err != nil {
			message, hint, _ := strings.Cut(err.Error(), "; ")
			d.addGlobalMistake("--listen", "--listen: "+message, hint)
			return
		}
	}
	key, message := c.exposedBy()
	if c.RequireMCPAuth || key == "" {
		return
	}
	hint := `set "require_mcp_auth": true`
	if key == "listen" {
		hint += ", or listen on 127.0.0.1"
	}
	member, inFile := g[key]
	switch {
	case in.listen != "" && key == "listen":
		d.addGlobalMistake("--listen", "--listen: "+in.listen+" is not a loopback address, so other machines can connect", "listen on 127.0.0.1, or set \"require_mcp_auth\": true in "+in.file)
	case inFile:
		d.addMistake(member.Value.StartOffset, key, message, hint)
	default:
		d.addGlobalMistake(key, message, hint)
	}
}

// expandHomeDirs replaces "~" by the home directory.
func (d *decoder) expandHomeDirs(g objectMembers, c, shown *Config) {
	home := homeDir(d.lookup)
	if home != "" {
		c.DataDir, shown.DataDir = expandTilde(c.DataDir, home), expandTilde(shown.DataDir, home)
		c.TLS = TLS{expandTilde(c.TLS.CertificateFile, home), expandTilde(c.TLS.KeyFile, home)}
		for i := range c.Servers {
			c.Servers[i].WorkingDir, c.Servers[i].Sandbox = expandTilde(c.Servers[i].WorkingDir, home), c.Servers[i].Sandbox.WithHome(home)
		}
		return
	}
	if m, ok := g["data_dir"]; ok && strings.HasPrefix(c.DataDir, "~") {
		d.addMistake(m.Value.StartOffset, "data_dir", "~ is the home directory, but HOME is not set", "write an absolute path")
	}
	for _, s := range c.Servers {
		if strings.HasPrefix(s.WorkingDir, "~") {
			d.addGlobalMistake(joinPath(joinPath("mcpServers", s.Name), "working_dir"), "~ is the home directory, but HOME is not set", "write an absolute path")
		}
	}
}

// CheckServerEntry returns the mistakes in a server entry, without lines and columns.
// References are not resolved.
func CheckServerEntry(name string, entry json.RawMessage) []Mistake {
	quoted, err := wirejson.MarshalWithoutHTMLEscape(name)
	if err != nil {
		return []Mistake{{Message: err.Error()}}
	}
	src := sourceText{slices.Concat([]byte(`{"mcpServers": {`), quoted, []byte(": "), entry, []byte("}}"))}
	tree, mistake := src.parseTree()
	if mistake != nil {
		return []Mistake{*mistake}
	}
	d := newDecoder(src, func(string) (string, bool) { return "", false })
	d.keepReferences = true
	d.decodeObject(tree, "", new(Config).keys(), new(Config).keys())
	for i := range d.mistakes {
		d.mistakes[i].Line, d.mistakes[i].Column = 0, 0
	}
	return d.mistakes
}
