package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// component is a module or an npm package whose code is in a program.
type component struct {
	name, version string
	purl          string // the address of the package, as bills of materials name it
	licence       string // its SPDX identifier
	texts         []string
}

// notices are the components of all programs by purl.
type notices map[string]component

// licences finds the licences of all components of the programs.
func (r *release) licences(ctx context.Context, targets []target) (notices, error) {
	all := notices{}
	for _, t := range targets {
		if err := r.goLicences(ctx, t, all); err != nil {
			return nil, err
		}
	}
	return all, r.npmLicences(all)
}

// goLicences adds the licences of the standard library and of the modules in a system's program. The licences of a module are
// the files in the directories of its used packages and in their parents.
func (r *release) goLicences(ctx context.Context, t target, all notices) error {
	const format = "{{if .Standard}}{{else if not .Module.Main}}{{.Module.Path}}\t{{.Module.Version}}\t{{.Module.Dir}}\t{{.Dir}}{{end}}"
	out, err := r.command(ctx, t.environment(), "go", "list", "-deps", "-f", format, "./cmd/mcpproxy")
	if err != nil {
		return err
	}
	files := map[string][]string{} // of components, by purl
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 {
			continue
		}
		c := component{name: f[0], version: f[1], purl: goPURL(f[0], f[1])}
		all[c.purl] = c
		for dir := f[3]; strings.HasPrefix(dir, f[2]); dir = filepath.Dir(dir) {
			found, err := licenceFiles(dir)
			if err != nil {
				return err
			}
			files[c.purl] = append(files[c.purl], found...)
		}
	}
	if err := r.standardLibrary(ctx, all, files); err != nil {
		return err
	}
	for _, purl := range slices.Sorted(maps.Keys(files)) {
		c := all[purl]
		if err := c.read(files[purl]); err != nil {
			return err
		}
		all[purl] = c
	}
	return nil
}

// standardLibrary adds the licence of Go's standard library, which is part of every program.
func (r *release) standardLibrary(ctx context.Context, all notices, files map[string][]string) error {
	out, err := r.command(ctx, nil, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	c := component{name: "stdlib", version: strings.TrimPrefix(version, "go")}
	c.purl = goPURL(c.name, c.version)
	all[c.purl] = c
	files[c.purl], err = licenceFiles(root)
	return err
}

func goPURL(path, version string) string { return "pkg:golang/" + path + "@" + version }

var isLicence = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// licenceFiles returns the licence files in a directory.
func licenceFiles(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type().IsRegular() && isLicence.MatchString(e.Name()) && !strings.HasSuffix(e.Name(), ".go") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}

// read reads the licence texts of a component. The first one determines its licence.
func (c *component) read(files []string) error {
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	c.texts = nil
	for _, name := range slices.Compact(files) {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		said := string(bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
		if said != "" && !slices.Contains(c.texts, said) {
			c.texts = append(c.texts, said)
		}
	}
	if c.licence == "" {
		for _, text := range c.texts {
			c.licence = cmp.Or(c.licence, spdx(text))
		}
	}
	if len(c.texts) == 0 || c.licence == "" {
		return fmt.Errorf("%s has no licence that is known (in %q): look at it, and add its words to spdx", c.purl, files)
	}
	return nil
}

// words are texts that identify licences. The order matters, because some texts also occur in other licences.
var words = []struct{ licence, says string }{
	{"BSD-3-Clause", "SPDX-License-Identifier: BSD-3-Clause"},
	{"Apache-2.0", "Apache License"},
	{"MPL-2.0", "Mozilla Public License"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining"},
	{"MIT", "PERMISSION is hereby granted, free of charge, to any person obtaining"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any"},
	{"BSD-3-Clause", "be used to endorse or promote products"},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms"},
	{"Unlicense", "This is free and unencumbered software"},
}

// spdx returns the SPDX identifier of a licence, or "" for a licence that was not reviewed.
func spdx(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, w := range words {
		if strings.Contains(text, strings.ToLower(w.says)) {
			return w.licence
		}
	}
	return ""
}

// npmLicences adds the npm packages of the web UI: all runtime packages in its lock file, and the bundler's code in
// every page.
func (r *release) npmLicences(all notices) error {
	raw, err := os.ReadFile(filepath.Join(r.root, "ui", "package-lock.json"))
	if err != nil {
		return err
	}
	var lock struct {
		Packages map[string]struct {
			Version, License string
			Dev              bool
		}
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		return err
	}
	for _, place := range slices.Sorted(maps.Keys(lock.Packages)) {
		name, ok := strings.CutPrefix(place, "node_modules/")
		p := lock.Packages[place]
		if bundler := name == "vite" || name == "rolldown"; !ok || p.Dev && !bundler {
			continue
		}
		c := component{name: name, version: p.Version, licence: p.License, purl: "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + p.Version}
		files, err := licenceFiles(filepath.Join(r.root, "ui", place))
		if err != nil {
			return errors.Join(fmt.Errorf("the licence of %s is not there: run `npm ci --prefix ui`", name), err)
		}
		if err := c.read(files); err != nil {
			return err
		}
		for i, text := range c.texts { // those of a bundler's own parts, which are in no page
			c.texts[i], _, _ = strings.Cut(text, "\n# Licenses of bundled dependencies")
		}
		all[c.purl] = c
	}
	return nil
}

// text returns the content of the file with all licences.
func (n notices) text() []byte {
	var out bytes.Buffer
	out.WriteString("MCPProxy is made with the software that is listed here, each under its own licence.\n\n")
	sorted := slices.Sorted(maps.Keys(n))
	for _, purl := range sorted {
		fmt.Fprintf(&out, "%s (%s)\n", purl, n[purl].licence)
	}
	for _, purl := range sorted {
		fmt.Fprintf(&out, "\n%s\n%s\n", strings.Repeat("=", 80), purl)
		for _, text := range n[purl].texts {
			fmt.Fprintf(&out, "%s\n\n%s\n", strings.Repeat("-", 80), text)
		}
	}
	return out.Bytes()
}
