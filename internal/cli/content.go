package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
)

// block is the displayed part of a content block.
type block struct {
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

// writeContent prints a result for a user: text as text, JSON indented, links as URLs, and a note for other content.
func writeContent(w io.Writer, result json.RawMessage) {
	var r struct {
		Content    []block         `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		fmt.Fprintln(w, prettyJSON(result))
		return
	}
	for _, b := range r.Content {
		fmt.Fprintln(w, strings.TrimRight(b.show(), "\n"))
	}
	if len(r.Content) > 0 {
		return
	}
	if len(r.Structured) > 0 {
		fmt.Fprintln(w, prettyJSON(r.Structured))
		return
	}
	fmt.Fprintln(w, "(no content)")
}

func (b block) show() string {
	switch b.Type {
	case "text":
		return showText(b.Text)
	case "image", "audio":
		return fmt.Sprintf("[%s: %s, %s]", b.Type, orUnknown(b.MIMEType), dataSize(b.Data))
	case "resource_link":
		return link(b.label(), b.URI)
	case "resource":
		if b.Resource.Text != nil {
			return link("", b.Resource.URI) + "\n" + showText(*b.Resource.Text)
		}
		return fmt.Sprintf("[resource: %s, %s, %s]", oneLine(b.Resource.URI), orUnknown(b.Resource.MIMEType), dataSize(b.Resource.Blob))
	}
	return "[" + orUnknown(b.Type) + "]"
}

func (b block) label() string {
	if b.Title != "" {
		return b.Title
	}
	return b.Name
}

func link(label, uri string) string {
	if label = oneLine(label); label != "" {
		return label + ": " + oneLine(uri)
	}
	return oneLine(uri)
}

// showText indents a text that is a JSON object or array.
func showText(s string) string {
	raw := []byte(strings.TrimSpace(s))
	if kind := wirejson.Kind(raw); (kind == '{' || kind == '[') && json.Valid(raw) {
		return prettyJSON(raw)
	}
	return printable(s)
}

func orUnknown(s string) string {
	if s = oneLine(s); s != "" {
		return s
	}
	return "unknown type"
}

// dataSize returns the size of base64 data.
func dataSize(data string) string {
	return size(int64(base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "=")))))
}

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1000_000)
}
