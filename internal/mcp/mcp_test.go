package mcp

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"testing"
)

func TestRevisions(t *testing.T) {
	var served []string
	if err := json.Unmarshal([]byte(SupportedVersions), &served); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(served, []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}) {
		t.Errorf("supported versions: %v", served)
	}
	for _, v := range append(served, "2024-10-07", "2024-10-08", "") {
		legacy := slices.Contains(served[1:], v)
		if IsLegacyVersion(v) != (legacy || v == "2024-10-07") {
			t.Errorf("IsLegacyVersion(%q) = %t", v, IsLegacyVersion(v))
		}
	}
}

func TestOlderVersionIn(t *testing.T) {
	for text, want := range map[string]string{
		`Unsupported protocol version {"supported":["2024-11-05","2025-06-18"],"requested":"2025-11-25"}`: "2025-06-18",
		`Unsupported protocol version (supported versions: 2024-11-05)`:                                   "2024-11-05",
		`Unsupported protocol version 2025-11-25`:                                                         "",
		`It speaks 2026-07-28 alone`:                                                                      "",
	} {
		if got := OlderVersionIn(text, Legacy); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestLevels(t *testing.T) {
	if !slices.IsSortedFunc([]string{"warn", "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"},
		func(a, b string) int { return LogLevelRank(a) - LogLevelRank(b) }) || LogLevelRank("warn") != -1 || LogLevelRank("debug") != 0 {
		t.Error("the log levels are not in order")
	}
}

func TestHeaders(t *testing.T) {
	for _, name := range []string{HeaderVersion, HeaderMethod, HeaderName, HeaderSession, HeaderParam} {
		if http.CanonicalHeaderKey(name) != name {
			t.Errorf("%s is not canonical", name)
		}
	}
	for text, want := range map[string]string{
		"": "", "a": "a", "a b": "a b", "~": "~",
		" a": "=?base64?IGE=?=", "a\t": "=?base64?YQk=?=", "é": "=?base64?w6k=?=", "a\nb": "=?base64?YQpi?=",
		"=?base64?": "=?base64?PT9iYXNlNjQ/?=", "=?base64?YQ==?=": "=?base64?PT9iYXNlNjQ/WVE9PT89?=", "=?": "=?",
	} {
		if got := EncodeHeaderValue(text); got != want {
			t.Errorf("EncodeHeaderValue(%q) = %q, want %q", text, got, want)
		}
	}
	for value, want := range map[string]string{"a\tb": "a\tb", "=?base64?YQ": "=?base64?YQ", "=?base64?YQ==?=": "a"} {
		if got, ok := DecodeHeaderValue(value); !ok || got != want {
			t.Errorf("DecodeHeaderValue(%q) = %q, %t", value, got, ok)
		}
	}
	for _, value := range []string{"é", "a\n", "\x7f", "=?base64?YQ?=", "=?base64?YR==?=", "=?base64?!?="} {
		if got, ok := DecodeHeaderValue(value); ok {
			t.Errorf("DecodeHeaderValue(%q) = %q", value, got)
		}
	}
}

func FuzzHeader(f *testing.F) {
	for _, text := range []string{"", "a", " a", "é", "=?base64?YQ==?=", "\x00\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if back, ok := DecodeHeaderValue(EncodeHeaderValue(text)); !ok || back != text {
			t.Errorf("%q is decoded as %q, %t", text, back, ok)
		}
	})
}

func TestSplitMeta(t *testing.T) {
	const hops = `"io.modelcontextprotocol/protocolVersion":"v","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"n"},"io.modelcontextprotocol/logLevel":"info"`
	said := RequestMeta{Version: []byte(`"v"`), Capabilities: []byte("{}"), ClientInfo: []byte(`{"name":"n"}`), LogLevel: []byte(`"info"`)}
	for meta, rest := range map[string]string{
		`{}`: "", `{ "a" : 1 }`: `{ "a" : 1 }`,
		`{` + hops + `}`: "",
		`{ "a" : 1.0, ` + hops + ` ,"b":{"c": 2} }`:              `{"a":1.0,"b":{"c": 2}}`,
		`{` + hops + `,"io.modelcontextprotocol/serverInfo":{}}`: `{"io.modelcontextprotocol/serverInfo":{}}`,
		`{` + hops + `,"\u0061\n\"é":1}`:                         `{"a\n\"é":1}`,
	} {
		m, err := SplitRequestMeta([]byte(meta))
		if err != nil || string(m.Rest) != rest || (m.Rest == nil) != (rest == "") {
			t.Errorf("Rest of %s: got %s, %v, want %s", meta, m.Rest, err, rest)
		}
		m.Rest = nil
		if want := said; len(meta) > len(hops) && !reflect.DeepEqual(m, want) || len(meta) < len(hops) && !reflect.DeepEqual(m, RequestMeta{}) {
			t.Errorf("SplitRequestMeta(%s) = %+v", meta, m)
		}
	}
	for _, meta := range []string{"", "null", "[]", `"a"`, "1"} {
		if m, err := SplitRequestMeta([]byte(meta)); err == nil {
			t.Errorf("SplitRequestMeta(%s) succeeded: %+v", meta, m)
		}
	}
}

// TestTakesForms checks that a client that declares elicitation without modes supports forms.
func TestTakesForms(t *testing.T) {
	for capabilities, want := range map[string]bool{
		`{"elicitation":{}}`: true, `{"elicitation":{"form":{}}}`: true, `{"elicitation":{"form":{},"url":{}}}`: true, `{"elicitation":{"url":{}}}`: false,
		`{"elicitation":null}`: false, `{"elicitation":true}`: false, `{}`: false, ``: false, `null`: false,
	} {
		if SupportsElicitationForms([]byte(capabilities)) != want {
			t.Errorf("%s: got %t", capabilities, !want)
		}
	}
}
