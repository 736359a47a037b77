package main

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mcpproxy/internal/app/autostart"
)

// packager describes the packages of a family of systems: their format, names and directories.
type packager struct {
	format   string
	zsh      string // the directory of zsh completions
	licences string // the directory of licences
	licence  string // the name of MCPProxy's own licence
}

var packagers = []packager{
	{"deb", "/usr/share/zsh/vendor-completions/_mcpproxy", "/usr/share/doc/mcpproxy/", "copyright"},
	{"rpm", "/usr/share/zsh/site-functions/_mcpproxy", "/usr/share/licenses/mcpproxy/", "LICENSE"},
	{"apk", "/usr/share/zsh/site-functions/_mcpproxy", "/usr/share/licenses/mcpproxy/", "LICENSE"},
}

// content is a file in the format of nfpm.
type content struct {
	Source      string      `json:"src,omitempty"`
	Type        string      `json:"type,omitempty"`
	Destination string      `json:"dst"`
	Info        contentInfo `json:"file_info"`
}

type contentInfo struct {
	Mode  fs.FileMode `json:"mode"`
	MTime time.Time   `json:"mtime"`
	Owner string      `json:"owner"`
	Group string      `json:"group"`
}

// packages writes the packages of a system. Their installation runs no script and starts nothing. The unit file is for
// users who enable it.
func (r *release) packages(ctx context.Context, t target, program []byte, shared []file) error {
	for _, p := range packagers {
		files, err := p.layout(program, shared)
		if err != nil {
			return err
		}
		if err := r.nfpm(ctx, t, p.format, files); err != nil {
			return err
		}
	}
	return nil
}

// layout returns the files of a package by their paths in a system.
func (p packager) layout(program []byte, shared []file) ([]file, error) {
	unit := autostart.SystemdUnitText(autostart.Program{Path: "/usr/bin/mcpproxy", Args: []string{"serve"}})
	files := []file{
		{name: "/usr/bin/mcpproxy", mode: 0o755, data: program},
		{name: "/usr/lib/systemd/user/mcpproxy.service", mode: 0o644, data: []byte(unit)},
	}
	places := map[string]string{
		"LICENSE": p.licences + p.licence, "THIRD_PARTY_LICENSES": p.licences + "THIRD_PARTY_LICENSES",
		"completions/mcpproxy.bash": "/usr/share/bash-completion/completions/mcpproxy",
		"completions/mcpproxy.fish": "/usr/share/fish/vendor_completions.d/mcpproxy.fish",
		"completions/_mcpproxy":     p.zsh,
	}
	for _, f := range shared {
		if page, ok := strings.CutPrefix(f.name, "man/"); ok {
			data, err := gzipped(f.data)
			if err != nil {
				return nil, err
			}
			files = append(files, file{name: "/usr/share/man/" + page + ".gz", mode: 0o644, data: data})
		} else if place := places[f.name]; place != "" {
			files = append(files, file{name: place, mode: 0o644, data: f.data})
		}
	}
	if p.format == "rpm" { // the others remove directories that they have made by themselves
		files = append(files, file{name: p.licences, mode: 0o755})
	}
	sortFiles(files)
	return files, nil
}

// nfpm runs the tool of that name to build a package.
func (r *release) nfpm(ctx context.Context, t target, format string, files []file) error {
	dir, err := os.MkdirTemp("", "mcpproxy-package-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var contents []content
	for _, f := range files {
		info := contentInfo{f.mode, r.Date, "root", "root"}
		if strings.HasSuffix(f.name, "/") {
			contents = append(contents, content{Type: "dir", Destination: f.name, Info: info})
			continue
		}
		source := filepath.Join(dir, "files", f.name)
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(source, f.data, 0o600); err != nil {
			return err
		}
		contents = append(contents, content{Source: source, Destination: f.name, Info: info})
	}
	home, err := url.Parse(r.Home)
	if err != nil {
		return err
	}
	description := map[string]any{
		"name": "mcpproxy", "arch": t.arch, "platform": "linux", "version": r.Version, "version_schema": "semver",
		"section": "net", "priority": "optional", "maintainer": "The MCPProxy authors <noreply@" + home.Hostname() + ">", "homepage": r.Home, "license": "MIT", "mtime": r.Date,
		"description": "One local endpoint in front of every MCP server", "contents": contents,
		"rpm": map[string]string{"buildhost": "localhost", "group": "Applications/Internet"},
	}
	text, err := json.MarshalIndent(description, "", "  ") // which is YAML too
	if err != nil {
		return err
	}
	configuration := filepath.Join(dir, "nfpm.yaml")
	if err := os.WriteFile(configuration, text, 0o600); err != nil {
		return err
	}
	_, err = r.command(ctx, nil, "go", "tool", "-modfile=tools.mod", "nfpm", "package", "--config", configuration, "--packager", format, "--target", r.out)
	return err
}
