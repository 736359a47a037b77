package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"strings"
)

func indent(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

//go:embed docs.html
var docsTemplate string

// docsEntry is one route on the page.
type docsEntry struct {
	Method, Path, Summary, Right string
	Params                       []docsParam
	Body                         []docsParam
}

type docsParam struct {
	Name, Type, Doc, Allowed string
	Required                 bool
}

// docsPage is the document as a page. It asks for nothing else: no script, no
// font, no picture.
func (s *Server) docsPage() ([]byte, error) {
	t, err := template.New("docs").Parse(docsTemplate)
	if err != nil {
		return nil, err
	}
	data := struct {
		Version, Prefix string
		Entries         []docsEntry
	}{s.deps.Version, Prefix, nil}
	for _, r := range s.table {
		data.Entries = append(data.Entries, docsOf(r))
	}
	var out bytes.Buffer
	err = t.Execute(&out, data)
	return out.Bytes(), err
}

func docsOf(r route) docsEntry {
	e := docsEntry{Method: r.method, Path: documentPath(r), Summary: r.summary, Right: r.right.String()}
	for _, p := range r.params {
		e.Params = append(e.Params, docsParam{p.name, p.schema().Type, p.doc, strings.Join(p.allowed, ", "), p.required || p.in == inPath})
	}
	for _, m := range r.body.fields {
		var allowed []string
		for _, v := range m.schema.Enum {
			if s, ok := v.(string); ok {
				allowed = append(allowed, s)
			}
		}
		e.Body = append(e.Body, docsParam{m.name, m.schema.Type, m.schema.Description, strings.Join(allowed, ", "), m.required})
	}
	return e
}
