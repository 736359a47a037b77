package cli

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// contentBlock holds the displayed fields of an MCP content block.
type contentBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Resource struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

// writeToolResult prints a tool result for a user: text unchanged, JSON indented, links as URLs and a note for other
// content.
func writeToolResult(w io.Writer, result json.RawMessage) {
	var r struct {
		Content    []contentBlock  `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		fmt.Fprintln(w, formatPrintableJSON(result))
		return
	}
	for _, b := range r.Content {
		fmt.Fprintln(w, strings.TrimRight(b.format(), "\n"))
	}
	if len(r.Content) > 0 {
		return
	}
	if len(r.Structured) > 0 {
		fmt.Fprintln(w, formatPrintableJSON(r.Structured))
		return
	}
	fmt.Fprintln(w, "(no content)")
}

func (b contentBlock) format() string {
	switch b.Type {
	case "text":
		return formatTextOrJSON(b.Text)
	case "image", "audio":
		return fmt.Sprintf("[%s: %s, %s]", b.Type, typeOrUnknown(b.MIMEType), formatBase64Size(b.Data))
	case "resource_link":
		return formatLink(b.titleOrName(), b.URI)
	case "resource":
		if b.Resource.Text != nil {
			return formatLink("", b.Resource.URI) + "\n" + formatTextOrJSON(*b.Resource.Text)
		}
		return fmt.Sprintf("[resource: %s, %s, %s]", toOneLine(b.Resource.URI), typeOrUnknown(b.Resource.MIMEType), formatBase64Size(b.Resource.Blob))
	}
	return "[" + typeOrUnknown(b.Type) + "]"
}

func (b contentBlock) titleOrName() string {
	if b.Title != "" {
		return b.Title
	}
	return b.Name
}

func formatLink(label, uri string) string {
	if label = toOneLine(label); label != "" {
		return label + ": " + toOneLine(uri)
	}
	return toOneLine(uri)
}

// formatTextOrJSON indents s if it is a JSON object or array.
func formatTextOrJSON(s string) string {
	raw := []byte(strings.TrimSpace(s))
	if kind := wirejson.Kind(raw); (kind == '{' || kind == '[') && json.Valid(raw) {
		return formatPrintableJSON(raw)
	}
	return toPrintable(s)
}

func typeOrUnknown(s string) string {
	return cmp.Or(toOneLine(s), "unknown type")
}

// formatBase64Size formats the decoded size of base64 data.
func formatBase64Size(data string) string {
	return formatByteSize(int64(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "=")))))
}

// formatByteSize formats a number of bytes.
func formatByteSize(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
}
