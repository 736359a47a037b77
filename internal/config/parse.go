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

// input is a file with what outranks it.
type input struct {
	file    string // its name, for messages
	data    []byte
	lookup  func(string) (string, bool)
	listen  string // --listen
	dataDir string // --data-dir or MCPPROXY_DATA_DIR
}

// Default is the configuration of an empty file. DataDir is "~/.mcpproxy" as
// long as nobody said where the home directory is.
func Default() *Config {
	c := &Config{}
	fill(c.keys())
	return c
}

func (in input) parse() (*Config, error) {
	if in.lookup == nil {
		in.lookup = func(string) (string, bool) { return "", false }
	}
	src := source{bytes.TrimPrefix(in.data, []byte(byteOrderMark))}
	tree, mistake := src.parse()
	if mistake != nil {
		return nil, refused(in.file, []Mistake{*mistake}, 0)
	}
	d := newDecoder(src, in.lookup)
	c, shown := Default(), Default()
	g := d.object(tree, "", c.keys(), shown.keys())
	written := *shown
	in.override(c)
	in.override(shown)
	in.exposed(d, g, c)
	d.expandHome(g, c, shown)
	trustOthers(c)
	d.strangers(g, c)
	if len(d.mistakes) > 0 {
		return nil, refused(in.file, d.mistakes, d.more)
	}
	hide(shown.keys())
	written.Servers = nil
	for _, s := range c.Servers {
		written.Servers = append(written.Servers, *s.written)
	}
	c.written, c.shown, c.revision, c.basis = &written, shown, revisionOf(shown), basisOf(shown)
	c.warnings = d.warnings.texts(in.file)
	return c, nil
}

func revisionOf(shown *Config) string {
	sum := sha256.Sum256([]byte(asText(shown)))
	return hex.EncodeToString(sum[:6])
}

func basisOf(shown *Config) string {
	text, err := encodeObject(shown.keys(), func(k key) bool { return !k.restart })
	if err != nil {
		return "" // strings and numbers always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// override applies what outranks the file.
func (in input) override(c *Config) {
	if in.listen != "" {
		c.Listen = in.listen
	}
	if in.dataDir != "" {
		c.DataDir = in.dataDir
	}
}

// trustOthers decides for the servers that do not say how far they are trusted.
func trustOthers(c *Config) {
	for i := range c.Servers {
		if c.Servers[i].Trust == "" {
			c.Servers[i].Trust = c.othersTrust()
		}
	}
}

// othersTrust is how far a server is trusted that does not say it.
func (c *Config) othersTrust() Trust {
	if c.QuarantineEnabled {
		return TrustScan
	}
	return TrustAuto
}

// exposed refuses to be reachable from elsewhere without a key.
func (in input) exposed(d *decoder, g given, c *Config) {
	if in.listen != "" {
		if err := checkListen(in.listen); err != nil {
			message, hint, _ := strings.Cut(err.Error(), "; ")
			d.nowhere("--listen", "--listen: "+message, hint)
			return
		}
	}
	if c.RequireMCPAuth || loopback(c.Listen) {
		return
	}
	const message, hint = "listen is not a loopback address, so that others can reach it", `set "require_mcp_auth": true, or listen on 127.0.0.1`
	member, inFile := g["listen"]
	switch {
	case in.listen != "":
		d.nowhere("--listen", "--listen: "+in.listen+" is not a loopback address, so that others can reach it", "listen on 127.0.0.1, or set \"require_mcp_auth\": true in "+in.file)
	case inFile:
		d.wrong(member.Value.StartOffset, "listen", message, hint)
	default:
		d.nowhere("listen", message, hint)
	}
}

// expandHome puts the home directory in the place of "~".
func (d *decoder) expandHome(g given, c, shown *Config) {
	home := homeDir(d.lookup)
	if home != "" {
		c.DataDir, shown.DataDir = underHome(c.DataDir, home), underHome(shown.DataDir, home)
		for i := range c.Servers {
			c.Servers[i].WorkingDir = underHome(c.Servers[i].WorkingDir, home)
		}
		return
	}
	if m, ok := g["data_dir"]; ok && strings.HasPrefix(c.DataDir, "~") {
		d.wrong(m.Value.StartOffset, "data_dir", "~ stands for the home directory, but HOME is not set", "write an absolute path")
	}
	for _, s := range c.Servers {
		if strings.HasPrefix(s.WorkingDir, "~") {
			d.nowhere(join(join("mcpServers", s.Name), "working_dir"), "~ stands for the home directory, but HOME is not set", "write an absolute path")
		}
	}
}

// CheckServer returns what would be wrong with a server of the file, without
// lines and columns. References are left alone: what they stand for may not be
// known yet.
func CheckServer(name string, entry json.RawMessage) []Mistake {
	quoted, err := wirejson.Marshal(name)
	if err != nil {
		return []Mistake{{Message: err.Error()}}
	}
	src := source{slices.Concat([]byte(`{"mcpServers": {`), quoted, []byte(": "), entry, []byte("}}"))}
	tree, mistake := src.parse()
	if mistake != nil {
		return []Mistake{*mistake}
	}
	d := newDecoder(src, func(string) (string, bool) { return "", false })
	d.literally = true
	d.object(tree, "", new(Config).keys(), new(Config).keys())
	for i := range d.mistakes {
		d.mistakes[i].Line, d.mistakes[i].Column = 0, 0
	}
	return d.mistakes
}
