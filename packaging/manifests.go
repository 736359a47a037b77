package main

import (
	"bytes"
	"embed"
	"strings"
	"text/template"
	"time"
)

//go:embed templates
var templates embed.FS

// manifests writes the files for Homebrew and winget and the container recipe,
// each from the template of that name.
func (r *release) manifests() error {
	all, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"sum": func(os, arch string) (string, error) {
			sum, err := r.sum(r.archiveName(target{os, arch}))
			if os == "windows" {
				sum = strings.ToUpper(sum) // as winget writes them
			}
			return sum, err
		},
		"file": func(os, arch string) string { return r.archiveName(target{os, arch}) },
		"stem": func(os, arch string) string { return r.stem(target{os, arch}) },
		// Names of systems and architectures: in Go, and in the formula and the manifest.
		"systems":  func() map[string]string { return map[string]string{"darwin": "macos", "linux": "linux"} },
		"winarchs": func() map[string]string { return map[string]string{"amd64": "x64", "arm64": "arm64"} },
		"day":      func() string { return r.Date.Format(time.DateOnly) },
	}).ParseFS(templates, "templates/*")
	if err != nil {
		return err
	}
	for _, t := range all.Templates() {
		var out bytes.Buffer
		if err := t.Execute(&out, r); err != nil {
			return err
		}
		if err := r.write(strings.TrimSuffix(t.Name(), ".tmpl"), out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
