package tool

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var taken = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func TestName(t *testing.T) {
	for _, c := range []struct{ server, name, want string }{
		{"github", "create_issue", "github__create_issue"},
		{"a-b", "x-z", "a-b__x-z"},
		{"a", "b__c", "a__b__c"},
		{"a", "_b", "a___b"}, // the first separator separates server and name
		{"_a", "b", "_a__b"},
		{"s", strings.Repeat("x", 61), "s__" + strings.Repeat("x", 61)},
	} {
		if got := ToAlias(c.server, c.name); got != c.want {
			t.Errorf("alias of %s:%s is %s, want %s", c.server, c.name, got, c.want)
		}
		if server, own, ok := SplitAlias(c.want); !ok || server != c.server || own != c.name {
			t.Errorf("%s splits into %s:%s, %v", c.want, server, own, ok)
		}
	}
	for _, c := range []struct{ server, name, readable string }{
		{"a_", "b", "a___b_"}, // not a___b, which splits into a and _b
		{"s", "a/b:c", "s__a_b_c_"},
		{"s", "é", "s____"},
		{"s", "", "s___"},
		{"s", "\xff", "s____"},
		{"a.b", "c", "a_b__c_"},
		{"s", "x.y", "s__x_y_"},
		{"s", strings.Repeat("x", 62), "s__" + strings.Repeat("x", 34) + "_"},
		{strings.Repeat("s", 64), strings.Repeat("x", 256), strings.Repeat("s", 37) + "_"},
		{"s", "x_abcdefghijklmnopqrstuvwxyz", "s__x_abcdefghijklmnopqrstuvwxyz_"}, // the name looks like a digest
	} {
		got := ToAlias(c.server, c.name)
		if !IsDigestedAlias(got) || !taken.MatchString(got) || got[:len(got)-digestSize] != c.readable {
			t.Errorf("alias of %s:%s is %s", c.server, c.name, got)
		}
		if _, _, ok := SplitAlias(got); ok {
			t.Errorf("%s can be split", got)
		}
	}
	if a := ToAlias("s", "a/b"); a != "s__a_b_rntagldagkp72vhl7us4d27xbf" { // rules of clients contain it
		t.Errorf("got %s", a)
	}
}

// TestFormerAlias checks the names that earlier versions listed: they can be split, or are found by their digest.
func TestFormerAlias(t *testing.T) {
	for _, c := range []struct{ server, name, want string }{
		{"a-b.c", "x.y-z", "a-b.c__x.y-z"},
		{"s", strings.Repeat("x", 125), "s__" + strings.Repeat("x", 125)},
		{"s", strings.Repeat("x", 126), "s__" + strings.Repeat("x", 98) + "_" + aliasDigest("s", strings.Repeat("x", 126))},
		{"s", "a/b", ToAlias("s", "a/b")},
		{"s", "a", "s__a"},
	} {
		got := FormerAlias(c.server, c.name)
		if got != c.want {
			t.Errorf("former alias of %s:%s is %s, want %s", c.server, c.name, got, c.want)
		}
		if server, own, ok := SplitAlias(got); ok == IsDigestedAlias(got) || ok && (server != c.server || own != c.name) {
			t.Errorf("%s splits into %s:%s, %v", got, server, own, ok)
		}
	}
}

// TestNamesDoNotCollide checks that two different tools never get the same name on /mcp/all, whatever their servers and
// names are.
func TestNamesDoNotCollide(t *testing.T) {
	servers := []string{"a", "a_", "_a", "_", "a_b", "a.b", "a-b", strings.Repeat("a", 64), strings.Repeat("a", 63) + "_"}
	parts := []string{"", "_", "__", "a", "b", "é", "/", ":", "a_", "_a", "\x00", strings.Repeat("a", 62), strings.Repeat("b", 125)}
	names := map[string]bool{}
	for _, a := range parts {
		for _, b := range parts {
			names[a+b] = true
			names[a+"/"+b] = true
			names[ToAlias("a", a+b)] = true // a server whose tools have the aliases of other tools as names
			names[strings.TrimPrefix(ToAlias("a", a+"/"+b), "a__")] = true
		}
	}
	seen := map[string]string{}
	for _, s := range servers {
		for n := range names {
			got, what := ToAlias(s, n), fmt.Sprintf("%q:%q", s, n)
			if other, ok := seen[got]; ok {
				t.Errorf("%s and %s have the same alias %s", what, other, got)
			}
			seen[got] = what
			if !taken.MatchString(got) {
				t.Errorf("alias of %s is %q, which clients reject", what, got)
			}
			if server, own, ok := SplitAlias(got); ok && (server != s || own != n) {
				t.Errorf("alias of %s is %s, which splits into %q:%q", what, got, server, own)
			}
		}
	}
	if len(seen) < 1000 {
		t.Errorf("got %d aliases, want at least 1000", len(seen))
	}
}

func TestURI(t *testing.T) {
	for _, own := range []string{"file:///a b?c#d", "x", "mcpproxy://b/x", "/", "demo://{id}", "ui://a/b.html", "ui://", "ui://mcpproxy/b/x", "ui://{id}"} {
		if server, got, ok := SplitAliasURI(ToAliasURI("s_1.x", own)); !ok || server != "s_1.x" || got != own || !LooksLikeAliasURI(ToAliasURI("s", own)) {
			t.Errorf("%s becomes %s %s %v", own, server, got, ok)
		}
	}
	for _, bad := range []string{"", "file:///x", "mcpproxy://", "mcpproxy://s", "mcpproxy://s/", "mcpproxy:///x", "MCPPROXY://s/x", "ui://mcpproxy/s", "ui://mcpproxy/s/", "ui://s/x"} {
		if _, _, ok := SplitAliasURI(bad); ok {
			t.Errorf("SplitAliasURI(%q) succeeded", bad)
		}
	}
	if uri := ToAliasURI("s", "ui://a/b.html"); uri != "ui://mcpproxy/s/a/b.html" { // some clients accept only this scheme
		t.Error(uri)
	}
	if !LooksLikeAliasURI("MCPProxy://s/x") || !LooksLikeAliasURI("UI://mcpproxy/x") || LooksLikeAliasURI("mcp") {
		t.Error("LooksLikeAliasURI is wrong")
	}
}

// TestIsAbsoluteURI checks the URIs that all clients can parse, also those that parse them as a browser does.
func TestIsAbsoluteURI(t *testing.T) {
	for _, uri := range []string{
		"x:", "x:y", "x://", "file:///x", "file:x", "file://host/x", "urn:a:b", "data:,x", "ui://a/b?c#d", "good+a.b-c://x", "postgres://u:p@h_1:5432/db", "http://user:p@h.example:080/ /é", "HTTPS://H/",
		"http://127.0.0.1:1/", "http://[::1]:1/", "good://h:65535/", "good://h:/x", "good://é/", "good://1.2/", "good://a%zz/", "http://a.b./", "http://a..b/",
	} {
		if !IsAbsoluteURI(uri) {
			t.Errorf("%s is not accepted", uri)
		}
	}
	for _, uri := range []string{
		"", "users/me", "/x", "//h/x", "1x:y", "x_y:z", " x:y", "http:", "http:x", "http:///x", "wss://", "https://?x", "http://a b/", "http://a%20b/", "http://a^b/", "http://é/", "http://xn--/", "http://256.1.1.1/", "http://1.2.3/",
		"http://a.7/", "http://0x7f/", "http://a.0x/", "http://1.2.3.4.5./", "http://[::1", "http://[x]/", "good://[1.2.3.4]/", "good://[fe80::1%25eth0]/", "http://h:65536/", "http://h:x/", "good://h:-1/", "good://u@/", "good://:80/",
		"good://a b/", "good://a<b>/", "good://a^b/", "good://a:b:c/", "good://a\\b/", "good://a\x00/", "file://h:80/x", "file://c|/x",
	} {
		if IsAbsoluteURI(uri) {
			t.Errorf("%q is accepted", uri)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		template, uri string
		want          bool
	}{
		{"demo://x", "demo://x", true},
		{"demo://x", "demo://xy", false},
		{"demo://{id}", "demo://7", true},
		{"demo://{id}", "demo://", false},
		{"demo://{id}/data", "demo://7/data", true},
		{"demo://{id}/data", "demo:///data", false},
		{"demo://{id}/data", "demo://7/data/data", true},
		{"demo://{a}/{b}", "demo://x/y/z", true},
		{"demo://{a}/{b}", "demo://x", false},
		{"file:///{+path}", "file:///a/b", true},
		{"q://x{?a,b}", "q://x", true},
		{"q://x{?a,b}", "q://x?a=1", true},
		{"q://x{", "q://x", false},
		{"q://{a}{b}", "q://12", true},
		{"q://{a}{b}", "q://1", false},
		{"{+any}", "x", true},
	} {
		if got := MatchesTemplate(c.template, c.uri); got != c.want {
			t.Errorf("%s %s: got %v", c.template, c.uri, got)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, seed := range [][4]string{{"a", "b", "a_", "b"}, {"a", "_b", "a_", "b"}, {"s", "x/y", "s", "x_y"}, {"s", "x_abcdefghijklmnopqrstuvwxyz", "s", "\xff"}} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	server := regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	f.Fuzz(func(t *testing.T, s, n, s2, n2 string) {
		if !server.MatchString(s) || !server.MatchString(s2) || strings.Contains(s+" "+s2, "__") {
			t.Skip()
		}
		a, b := ToAlias(s, n), ToAlias(s2, n2)
		if !taken.MatchString(a) || a == b && (s != s2 || n != n2) {
			t.Errorf("%q:%q is %q, %q:%q is %q", s, n, a, s2, n2, b)
		}
		if ps, pn, ok := SplitAlias(a); ok && (ps != s || pn != n) || !ok && !IsDigestedAlias(a) {
			t.Errorf("%q:%q is %q, which splits into %q and %q", s, n, a, ps, pn)
		}
		MatchesTemplate(n, n2)
	})
}
