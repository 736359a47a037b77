package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/testutil/volume"
)

// TestEveryKeyHasAnAccessRule makes the author of a new key write its access rule. A key without a rule counts as
// granting more access, so that no increase is missed.
func TestEveryKeyHasAnAccessRule(t *testing.T) {
	for object, keys := range map[string][]configKey{"file": new(Config).keys(), "server": new(Server).keys(), "profile": new(Profile).keys(), "lane": new(ArgumentLaneRule).keys(), "webhook": new(Webhook).keys(), "issuer": new(OIDCIssuer).keys(), "rule": new(UserRule).keys(), "hints": hintKeys(new(tool.Hints))} {
		for _, k := range keys {
			if k.grants.grantsMore == nil && k.grants.when == "" {
				t.Errorf("%s: %s has no access rule", object, k.name)
			}
		}
	}
	if !(accessIncreaseRule{}).changeIncreasesAccess(1, 2) || (accessIncreaseRule{}).changeIncreasesAccess([]string{"a"}, []string{"a"}) {
		t.Error("a change of a key without a rule does not count as granting more access")
	}
}

// grantingKeys returns the keys by which the second file grants more access than the first.
func grantingKeys(t testing.TB, was, next string) []string {
	t.Helper()
	env := func(name string) (string, bool) { return "of-" + name, true }
	a, err := Parse([]byte(was), env)
	if err != nil {
		t.Fatalf("%s: %v", was, err)
	}
	b, err := Parse([]byte(next), env)
	if err != nil {
		t.Fatalf("%s: %v", next, err)
	}
	return differenceKeys(findAccessIncreases(a, b))
}

// directions maps each key to pairs of values: the right value grants more access than the left one, and the way back does not.
var directions = map[string][][2]string{ // key → stricter, wider
	"ask.answer_by_client":       {{`["a"]`, `["a", "b"]`}},
	"listen":                     {{`"127.0.0.1:8080"`, `"0.0.0.0:8080"`}, {`"10.0.0.1:8080"`, `"0.0.0.0:8080"`}},
	"require_mcp_auth":           {{`true`, `false`}},
	"trusted_hosts":              {{`["a"]`, `["a", "b"]`}, {`["a"]`, `["b"]`}},
	"trusted_proxies":            {{`["10.0.0.0/8"]`, `["10.0.0.0/8", "192.0.2.7"]`}},
	"public_url":                 {{`""`, `"https://a.example"`}},
	"mcp_management":             {{`"off"`, `"read"`}, {`"read"`, `"propose"`}},
	"validate_arguments":         {{`"reject"`, `"warn"`}, {`"warn"`, `"off"`}},
	"activity_retention_days":    {{`90`, `89`}},
	"activity_max_records":       {{`2000`, `1999`}},
	"activity_max_size_mb":       {{`1024`, `16`}},
	"activity_max_response_size": {{`65536`, `0`}},
	"activity_durability":        {{`"power"`, `"process"`}},
	"ask.write":                  {{`"ask"`, `"off"`}},
	"ask.destructive":            {{`"ask"`, `"off"`}},
	"ask.tools":                  {{`{"a:b": "ask"}`, `{}`}, {`{"a:b": "ask"}`, `{"a:b": "off"}`}, {`{}`, `{"a:*": "off"}`}},
	"quarantine_enabled":         {{`true`, `false`}},
	"presence":                   {{`"passphrase"`, `"none"`}, {`"passkey"`, `"none"`}},
	"server.allow_private":       {{`false`, `true`}},
	"server.trust_sandbox":       {{`false`, `true`}},
	"server.enabled":             {{`false`, `true`}},
	"server.quarantined":         {{`true`, `false`}},
	"server.session":             {{`"per_client"`, `"auto"`}, {`"auto"`, `"shared"`}, {`"per_client"`, `"shared"`}},
	"server.trust":               {{`"manual"`, `"scan"`}, {`"scan"`, `"auto"`}},
	"server.enabled_tools":       {{`["a"]`, `["a", "b"]`}, {`["a"]`, `["*"]`}, {`["a1"]`, `["a?"]`}, {`["a"]`, `absent`}},
	"server.disabled_tools":      {{`["a", "b"]`, `["a"]`}, {`["a*"]`, `["a1"]`}, {`["a"]`, `absent`}},
	"server.validate_arguments":  {{`"reject"`, `"off"`}, {`"reject"`, `absent`}, {`absent`, `"off"`}},
	"server.infer_hints":         {{`"enforce"`, `"advise"`}, {`"advise"`, `"off"`}},
	"server.hint_overrides":      {{`{"a": {"readOnlyHint": false}}`, `{}`}, {`{}`, `{"a": {"readOnlyHint": true}}`}, {`{"a": {"destructiveHint": true}}`, `{"a": {"destructiveHint": false}}`}, {`{"*": {"openWorldHint": true}}`, `{"*": {"openWorldHint": false}}`}, {`{"*": {"idempotentHint": false}}`, `{"*": {"idempotentHint": true}}`}},
	"server.lanes":               {{`{"t": {"by": "action", "argument": "$.a", "destructive": ["x", "y"]}}`, `{"t": {"by": "action", "argument": "$.a", "destructive": ["x"]}}`}, {`{"t": {"by": "action", "argument": "$.a", "read": ["x"]}}`, `{"t": {"by": "action", "argument": "$.a", "read": ["x", "z"]}}`}},
	"server.ask.write":           {{`"ask"`, `absent`}, {`absent`, `"off"`}, {`"ask"`, `"off"`}},
	"server.ask.destructive":     {{`"ask"`, `"off"`}},
	"server.ask.tools":           {{`{"b": "ask"}`, `{"b": "off"}`}},
	"profile.servers":            {{`["a"]`, `["a", "b"]`}, {`["a"]`, `absent`}},
	"profile.tools":              {{`{"s": ["a"]}`, `{"s": ["a", "b"]}`}, {`{"s": ["a"], "*": ["a"]}`, `{"s": ["a"]}`}, {`{"s": ["a"]}`, `absent`}},
	"profile.lanes":              {{`["read"]`, `["read", "write"]`}, {`["read"]`, `absent`}},
	"profile.ask.write":          {{`"ask"`, `absent`}},
	"profile.ask.destructive":    {{`"ask"`, `"off"`}},
	"profile.ask.tools":          {{`{"a:b": "ask"}`, `absent`}},
	"intent_declaration.strict_server_validation": {{`true`, `false`}},
	"intent_declaration.require_intent":           {{`true`, `false`}},
	"intent_declaration.infer_hints":              {{`"enforce"`, `"advise"`}, {`"advise"`, `"off"`}},
	"intent_declaration.judge_arguments":          {{`"enforce"`, `"advise"`}},
	"telemetry.endpoint":                          {{`""`, `"http://127.0.0.1:4318"`}},
	"registries":                                  {{`{"a": "https://a/"}`, `{"a": "https://a/", "b": "https://b/"}`}},
	"notify.webhooks":                             {{`absent`, `[{"url": "http://a/"}]`}, {`[{"url": "http://a/"}]`, `[{"url": "http://a/"}, {"url": "http://b/"}]`}},
}

// changes maps each other key to two values. Either each change between them grants more access, or none does.
var changes = map[string]struct {
	a, b   string
	widens bool
}{
	"data_dir": {`"/a"`, `"/b"`, true}, "database": {`"sqlite"`, `"postgres://u@h/d"`, true}, "api_key": {`"a"`, `"b"`, true},
	"tools_limit": {`1`, `2`, false}, "tools_detail": {`"full"`, `"compact"`, false}, "discovery_limit": {`2000`, `3000`, false}, "learn_from_use": {`true`, `false`, false},
	"result_limit": {`1`, `0`, false}, "call_timeout": {`"1s"`, `"2s"`, false}, "connect_timeout": {`"1s"`, `"2s"`, false}, "idle_timeout": {`"1s"`, `"0s"`, false},
	"max_concurrent_calls": {`1`, `0`, false}, "queue_size": {`1`, `2`, false}, "queue_timeout": {`"1s"`, `"2s"`, false}, "ask.wait": {`"1s"`, `"2s"`, false},
	"log.level": {`"info"`, `"error"`, false}, "log.format": {`"text"`, `"json"`, false}, "$schema": {`"a"`, `"b"`, false},
	"server.command": {`"a"`, `"b"`, true}, "server.args": {`["a"]`, `[]`, true}, "server.env": {`{"A": "b"}`, `{}`, true}, "server.working_dir": {`"/a"`, `"/b"`, true},
	"server.pin": {`"npm:a@1#sha512-a"`, `"npm:a@2#sha512-b"`, true}, "server.previous_pins": {`[]`, `["npm:a@1#sha512-a"]`, false},
	"server.url": {`"http://a/"`, `"http://b/"`, true}, "server.headers": {`{"a": "b"}`, `{}`, true}, "server.protocol": {`"sse"`, `"http"`, true},
	"server.oauth.client_id": {`"a"`, `"b"`, true}, "server.oauth.client_secret": {`"a"`, `"b"`, true}, "server.oauth.client_metadata_url": {`"https://a/b"`, `"https://a/c"`, true},
	"server.oauth.authorization_server": {`"https://a"`, `"https://b"`, true}, "server.oauth.scopes": {`["a"]`, `["b"]`, true}, "server.oauth.redirect_port": {`1`, `2`, true},
	"server.sandbox.mode": {`"on"`, `"strict"`, true}, "server.sandbox.read": {`["/a"]`, `[]`, true}, "server.sandbox.write": {`["/a"]`, `["/b"]`, true},
	"server.sandbox.network": {`"none"`, `"all"`, true}, "server.sandbox.image": {`"a"`, `"b"`, true}, "server.sandbox.best_effort": {`true`, `false`, true},
	"server.lazy": {`true`, `false`, false}, "server.call_timeout": {`"1s"`, `"2s"`, false}, "server.max_concurrent_calls": {`1`, `0`, false}, "server.ask.wait": {`"1s"`, `"2s"`, false},
	"server.select": {`{"a": ".a"}`, `{"a": ".b"}`, false}, "server.tools": {`{"a": {"description": "x"}}`, `{"a": {"description": "y"}}`, true},
	"notify.desktop": {`true`, `false`, false}, "oidc.public_client_id": {`"a"`, `"b"`, false}, "oidc.request_scopes": {`["a"]`, `["b"]`, false},
	"oidc.issuers": {`[{"issuer": "https://a"}]`, `[{"issuer": "https://a", "trust_email": true}]`, true}, "users": {`[{"groups": ["a"]}]`, `[{"groups": ["a"], "role": "admin"}]`, true},
	// incomparable
	"notify.webhooks":                    {`[{"url": "http://a/", "events": ["call.held"]}]`, `[{"url": "http://a/"}]`, true},
	"profile.servers":                    {`["a"]`, `["b"]`, true},
	"server.enabled_tools":               {`["a"]`, `["b"]`, true},
	"server.validate_arguments":          {`"warn"`, `absent`, true},
	"server.infer_hints":                 {`absent`, `"advise"`, true},
	"server.lanes":                       {`{}`, `{"a": {"by": "sql", "argument": "$.q"}}`, true},
	"server.hint_overrides":              {`{"a": {"title": "A"}}`, `{"a": {"title": "B"}}`, true},
	"presence":                           {`"passphrase"`, `"passkey"`, true},
	"tls.certificate_file":               {`"/a"`, `"/b"`, true},
	"tls.key_file":                       {`"/a"`, `"/b"`, true},
	"intent_declaration.judge_arguments": {`"advise"`, `"off"`, true},
}

// fileWith returns a file that sets a key to a value, with the other keys that it requires.
func fileWith(name, value string) (text, path string) {
	object, key, _ := strings.Cut(name, ".")
	switch object {
	case "server", "profile":
	default:
		object, key = "", name
	}
	member := func(key string) string {
		if value == "absent" {
			return ""
		}
		if group, inner, nested := strings.Cut(key, "."); nested {
			return fmt.Sprintf("%q: {%q: %s}", group, inner, value)
		}
		return fmt.Sprintf("%q: %s", key, value)
	}
	with := func(all ...string) string {
		return "{" + strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), ", ") + "}"
	}
	switch object {
	case "server":
		base := `"command": "x"`
		switch {
		case strings.HasPrefix(key, "oauth.") && key == "oauth.client_secret":
			return with(`"mcpServers": {"s": {"url": "http://x/", "oauth": {"client_id": "i", "client_secret": ` + value + `}}}`), "mcpServers.s." + key
		case key == "trust_sandbox":
			base += `, "sandbox": {"mode": "on"}`
		case key == "sandbox.image":
			return with(`"mcpServers": {"s": {"command": "x", "sandbox": {"mode": "container", "image": ` + value + `}}}`), "mcpServers.s." + key
		case strings.HasPrefix(key, "sandbox.") && key != "sandbox.mode":
			return with(`"mcpServers": {"s": {"command": "x", "sandbox": {"mode": "on", ` + fmt.Sprintf("%q: %s", strings.TrimPrefix(key, "sandbox."), value) + `}}}`), "mcpServers.s." + key
		case strings.HasPrefix(key, "oauth."), key == "headers", key == "allow_private", key == "protocol":
			base = `"url": "http://x/"`
		case key == "command", key == "url":
			base = ""
		}
		return `{"mcpServers": {"s": ` + with(base, member(key)) + `}}`, "mcpServers.s." + key
	case "profile":
		return `{"profiles": {"p": ` + with(member(key)) + `}}`, "profiles.p." + key
	}
	switch key {
	case "tls.certificate_file":
		return `{"tls": {"certificate_file": ` + value + `, "key_file": "/k"}}`, key
	case "tls.key_file":
		return `{"tls": {"certificate_file": "/c", "key_file": ` + value + `}}`, key
	case "listen", "trusted_proxies", "public_url":
		return with(`"require_mcp_auth": true`, member(key)), key
	}
	return with(member(key)), key
}

// TestAccessRules checks that each key grants more access as its rule describes. It covers every key.
func TestAccessRules(t *testing.T) {
	volume.SkipUnderRace(t)
	tried := map[string]bool{"mcpServers": true, "profiles": true, "server.name": true}
	check := func(key, from, to string, want bool) {
		t.Helper()
		tried[key] = true
		was, path := fileWith(key, from)
		next, _ := fileWith(key, to)
		got := grantingKeys(t, was, next)
		got = slices.DeleteFunc(got, func(k string) bool { return path == "quarantine_enabled" && k == "mcpServers.s.trust" })
		if slices.Contains(got, path) != want || len(got) > 1 {
			t.Errorf("%s from %s to %s: %q grant more access, want the key in the list: %v", key, from, to, got, want)
		}
	}
	for key, pairs := range directions {
		for _, p := range pairs {
			check(key, p[0], p[1], true)
			if key != "listen" && key != "trusted_hosts" { // one pair of these keys has two values that other machines can reach
				check(key, p[1], p[0], false)
			}
		}
	}
	check("listen", `"0.0.0.0:1"`, `"127.0.0.1:2"`, false)
	check("listen", `"127.0.0.1:1"`, `"[::1]:2"`, false)
	check("trusted_hosts", `["a", "b"]`, `["b"]`, false)
	check("presence", `"none"`, `"passkey"`, false)
	check("server.disabled_tools", `["a1"]`, `["a*", "b"]`, false)
	check("server.enabled_tools", `["a*"]`, `["a1"]`, false)
	check("intent_declaration.judge_arguments", `"off"`, `"enforce"`, true)
	check("server.hint_overrides", `{"a": {"readOnlyHint": true}, "b": {"title": "x"}}`, `{"a": {"readOnlyHint": false}, "b": {"title": "x"}}`, false)
	check("server.hint_overrides", `{"ab": {"readOnlyHint": true}, "a*": {"readOnlyHint": false}}`, `{"a*": {"readOnlyHint": false}, "ab": {"readOnlyHint": true}}`, true)
	for key, c := range changes {
		check(key, c.a, c.b, c.widens)
		check(key, c.b, c.a, c.widens)
	}
	all := func(object string, keys []configKey) {
		for _, k := range keys {
			if !tried[object+k.name] {
				t.Errorf("%s%s is not tested", object, k.name)
			}
		}
	}
	all("", new(Config).keys())
	all("server.", new(Server).keys())
	all("profile.", new(Profile).keys())
}

func TestServersAndProfilesThatAreNew(t *testing.T) {
	for name, c := range map[string]struct{ was, next, want string }{
		"a server":         {`{}`, `{"mcpServers": {"a": {"command": "x"}}}`, "mcpServers.a"},
		"one that is off":  {`{}`, `{"mcpServers": {"a": {"command": "x", "enabled": false}}}`, "mcpServers.a"},
		"under review":     {`{}`, `{"mcpServers": {"a": {"command": "x", "quarantined": true}}}`, "mcpServers.a"},
		"another name":     {`{"mcpServers": {"a": {"command": "x"}}}`, `{"mcpServers": {"b": {"command": "x"}}}`, "mcpServers.b"},
		"a profile":        {`{}`, `{"profiles": {"p": {"lanes": ["read"]}}}`, "profiles.p"},
		"taken out":        {`{"mcpServers": {"a": {"command": "x"}}, "profiles": {"p": {}}}`, `{}`, ""},
		"order, the form":  {`{"mcpServers": {"a": {"command": "x"}, "b": {"url": "http://y/"}}}`, `{"mcpServers": [{"name": "b", "serverUrl": "http://y/"}, /* c */ {"name": "a", "command": "x", "args": [], "disabled": false}]}`, ""},
		"a reference":      {`{"mcpServers": {"a": {"command": "of-X"}}}`, `{"mcpServers": {"a": {"command": "${env:X}"}}}`, "mcpServers.a.command"},
		"another launch":   {`{"mcpServers": {"a": {"command": "x", "args": ["1"], "env": {"A": "b"}}}}`, `{"mcpServers": {"a": {"url": "http://y/"}}}`, "mcpServers.a.protocol mcpServers.a.command mcpServers.a.args mcpServers.a.env mcpServers.a.url"},
		"trust by default": {`{"mcpServers": {"a": {"command": "x"}}}`, `{"quarantine_enabled": false, "mcpServers": {"a": {"command": "x"}}}`, "quarantine_enabled mcpServers.a.trust"},
		"trust said":       {`{"mcpServers": {"a": {"command": "x"}}}`, `{"mcpServers": {"a": {"command": "x", "trust": "scan"}}}`, ""},
		"trust not said":   {`{"mcpServers": {"a": {"command": "x", "trust": "manual"}}}`, `{"mcpServers": {"a": {"command": "x"}}}`, "mcpServers.a.trust"},
		"lists of tools":   {`{"mcpServers": {"a": {"command": "x", "enabled_tools": ["a", "b"]}}}`, `{"mcpServers": {"a": {"command": "x", "disabled_tools": ["b"]}}}`, "mcpServers.a.enabled_tools"},
	} {
		if got := strings.Join(grantingKeys(t, c.was, c.next), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestShownChangesHoldNoSecret checks that the list of changes that grant more access contains no secret.
func TestShownChangesHoldNoSecret(t *testing.T) {
	a := parsed(t, `{"api_key": "s3cret-one", "mcpServers": {"a": {"command": "x", "env": {"T": "s3cret-two"}}}}`)
	b := parsed(t, `{"api_key": "s3cret-six", "mcpServers": {"a": {"command": "x", "env": {"T": "s3cret-ten"}}, "b": {"url": "https://u:s3cret@h/?token=s3cret-xyz", "headers": {"H": "s3cret-hdr"}}}}`)
	all := findAccessIncreases(a, b)
	if text := fmt.Sprintf("%s", all); len(all) != 3 || strings.Contains(text, "s3cret") {
		t.Errorf("%s", text)
	}
}

func parsed(t testing.TB, text string) *Config {
	t.Helper()
	c, err := Parse([]byte(text), func(name string) (string, bool) { return "of-" + name, true })
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// anyFile draws a file that may contain every key.
func anyFile(t *rapid.T, label string) string {
	one := func(of string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label+" "+of) }
	values := map[string][]string{}
	for key, pairs := range directions {
		for _, p := range pairs {
			values[key] = append(values[key], p[0], p[1])
		}
	}
	for key, c := range changes {
		values[key] = append(values[key], c.a, c.b)
	}
	delete(values, "$schema")
	for _, key := range []string{"listen", "trusted_proxies", "public_url", "tls.certificate_file", "tls.key_file"} {
		delete(values, key) // they require other keys: see TestExposure
	}
	object := func(prefix string, leave func(key string) bool) string {
		groups, members := map[string][]string{}, []string{}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			key, ok := strings.CutPrefix(name, prefix)
			if !ok || prefix == "" && (strings.HasPrefix(key, "server.") || strings.HasPrefix(key, "profile.")) || leave(key) {
				continue
			}
			v := one(name, append(slices.Clone(values[name]), "absent", "absent")...)
			if v == "absent" {
				continue
			}
			if group, inner, nested := strings.Cut(key, "."); nested {
				groups[group] = append(groups[group], fmt.Sprintf("%q: %s", inner, v))
			} else {
				members = append(members, fmt.Sprintf("%q: %s", key, v))
			}
		}
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			members = append(members, fmt.Sprintf("%q: {%s}", group, strings.Join(groups[group], ", ")))
		}
		return strings.Join(members, ", ")
	}
	var servers, profiles []string
	for _, name := range []string{"alpha", "beta"} {
		kind := one(name, "none", "command", "url")
		if kind == "none" {
			continue
		}
		lists := one(name+" lists", "enabled_tools", "disabled_tools")
		mode := one(name+" sandbox", "", "on", "strict")
		text := object("server.", func(key string) bool {
			switch {
			case (key == "enabled_tools" || key == "disabled_tools") && key != lists, key == "oauth.client_secret":
				return true
			case key == "command", key == "url", key == "sandbox.mode", key == "sandbox.image":
				return true // compared below
			case strings.HasPrefix(key, "sandbox."), key == "trust_sandbox":
				return kind == "url" || mode == ""
			case key == "args", key == "env", key == "working_dir", key == "pin", key == "previous_pins":
				return kind == "url"
			case strings.HasPrefix(key, "oauth."), key == "headers", key == "allow_private", key == "protocol":
				return kind == "command"
			}
			return false
		})
		if inner, rest, found := strings.Cut(text, `"sandbox": {`); found {
			text = inner + `"sandbox": {"mode": "` + mode + `", ` + rest
		} else if kind == "command" && mode != "" {
			text = strings.TrimPrefix(text+`, "sandbox": {"mode": "`+mode+`"}`, ", ")
		}
		launch := map[string]string{"command": `"command": "` + one("command", "x", "y", "${env:X}") + `"`, "url": `"url": "` + one("url", "http://x/", "http://y/") + `"`}[kind]
		servers = append(servers, fmt.Sprintf("%q: {%s}", name, strings.TrimSuffix(launch+", "+text, ", ")))
	}
	for _, name := range []string{"one", "two"} {
		if one(name, "there", "not") == "there" {
			profiles = append(profiles, fmt.Sprintf("%q: {%s}", name, object("profile.", func(string) bool { return false })))
		}
	}
	if one("order", "as is", "turned") == "turned" {
		slices.Reverse(servers)
		slices.Reverse(profiles)
	}
	top := object("", func(string) bool { return false })
	return strings.TrimSuffix(fmt.Sprintf("{\"mcpServers\": {%s}, \"profiles\": {%s}, %s", strings.Join(servers, ", "), strings.Join(profiles, ", "), top), ", ") + "}"
}

func parsedAny(t *rapid.T, label string) *Config {
	text := anyFile(t, label)
	c, err := Parse([]byte(text), func(name string) (string, bool) { return "of-" + name, true })
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// TestClamp checks that a clamped configuration grants no more access than the old one. It equals next if next grants
// no more access, and takes all other changes from next.
func TestClamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was, next := parsedAny(t, "was"), parsedAny(t, "next")
		if next2 := rapid.SampledFrom([]string{"other", "same"}).Draw(t, "next is"); next2 == "same" {
			next = was
		}
		live, found := clampAccessExcept(was, next, nil)
		if again := findAccessIncreases(was, live); len(again) != 0 {
			t.Fatalf("the clamped configuration grants more access: %s", differenceKeys(again))
		}
		if len(found) == 0 && !sameConfig(live, next) {
			a, _ := live.canonicalJSONWithSecrets()
			b, _ := next.canonicalJSONWithSecrets()
			t.Fatalf("next grants no more access, but the result differs from it: %s\n%s\n%s", differenceKeys(findDifferences(live, next)), a, b)
		}
		// Exactly the found keys differ from next.
		differ := differenceKeys(findDifferences(live, next))
		for _, d := range differ {
			if strings.HasSuffix(d, "abled_tools") && slices.ContainsFunc(differenceKeys(found), func(f string) bool { return strings.HasSuffix(f, "abled_tools") }) {
				continue // mutually exclusive keys
			}
			if !slices.Contains(differenceKeys(found), d) && d != "profiles" && d != "mcpServers" {
				t.Fatalf("%s differs from next but grants no more access, found: %s", d, differenceKeys(found))
			}
		}
		for _, f := range found {
			if !slices.ContainsFunc(differ, func(d string) bool { return d == f.Key || d == "profiles" && strings.HasPrefix(f.Key, "profiles.") }) && !writtenAlone(f) {
				t.Fatalf("%s grants more access but equals next, differences: %s", f.Key, differ)
			}
		}
		if twice := ClampAccess(was, live); !sameConfig(twice, live) {
			t.Fatalf("a second clamp changes the result: %s", differenceKeys(findDifferences(twice, live)))
		}
		if let, rest := clampAccessExcept(was, next, func(string) bool { return true }); len(rest) != 0 || !sameConfig(let, next) {
			a, _ := let.canonicalJSONWithSecrets()
			b, _ := next.canonicalJSONWithSecrets()
			t.Fatalf("the result differs from next although every key is allowed: %s\n%s\n%s\n%s\n%s", differenceKeys(findDifferences(let, next)), a, b, marshalToString(let.shown), marshalToString(next.shown))
		}
	})
}

// writtenAlone reports whether a difference exists only because a reference has the same value today.
func writtenAlone(d Difference) bool { return strings.Contains(string(d.From)+string(d.To), "${env:") }

// sameConfig reports whether two configurations are equal, in all of their forms.
func sameConfig(a, b *Config) bool {
	textA, errA := a.canonicalJSONWithSecrets()
	textB, errB := b.canonicalJSONWithSecrets()
	return errA == nil && errB == nil && bytes.Equal(textA, textB) && len(findDifferences(a, b)) == 0 && a.revision == b.revision && a.sharedRevision == b.sharedRevision
}

// TestCanonicalTextRoundTrips checks that the parsed canonical text is the same configuration, including launches and
// rules of profiles.
func TestCanonicalTextRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ClampAccess(parsedAny(t, "was"), parsedAny(t, "next"))
		text, err := c.canonicalJSONWithSecrets()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(text, func(name string) (string, bool) { return "of-" + name, true })
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i := range c.Servers {
			if s, other := &c.Servers[i], back.Server(c.Servers[i].Name); other == nil || s.TrySSE != other.TrySSE || s.LaunchFingerprint() != other.LaunchFingerprint() || s.Trust != other.Trust {
				t.Fatalf("%s: %+v, want %+v", s.Name, other, s)
			}
		}
		for _, p := range c.Profiles {
			if !reflect.DeepEqual(back.ProfileRule(p.Name), c.ProfileRule(p.Name)) {
				t.Fatalf("the rule of profile %s changed", p.Name)
			}
		}
		if again, err := back.canonicalJSONWithSecrets(); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%s, want %s", again, text)
		}
	})
}

// TestClampedConfigurationDecides compares the functions that decide. Whatever the old configuration rejects, asks
// about or gives more dangerous hints, the clamped one treats at least as strictly.
func TestClampedConfigurationDecides(t *testing.T) {
	names := []string{"a", "b", "a1", "ab", "t"}
	rapid.Check(t, func(t *rapid.T) {
		was := parsedAny(t, "was")
		live := ClampAccess(was, parsedAny(t, "next"))
		name := rapid.SampledFrom(names).Draw(t, "tool")
		id := tool.ID{Server: rapid.SampledFrom([]string{"alpha", "beta"}).Draw(t, "server"), Tool: name}
		s, before := live.Server(id.Server), was.Server(id.Server)
		if s != nil && before == nil {
			t.Fatal("the clamped configuration has an additional server")
		}
		if s == nil {
			return
		}
		fits := func(p string) bool { return policy.MatchesPattern(p, name) }
		denies := func(s *Server) bool {
			return !s.Enabled || s.Quarantined || len(s.EnabledTools) > 0 && !slices.ContainsFunc(s.EnabledTools, fits) || slices.ContainsFunc(s.DisabledTools, fits)
		}
		if denies(before) && !denies(s) {
			t.Fatalf("%s is no longer denied", id)
		}
		tri := rapid.SampledFrom([]tool.TriBool{tool.Unset, tool.False, tool.True})
		says := tool.Hints{ReadOnly: tri.Draw(t, "ro"), Destructive: tri.Draw(t, "d"), Idempotent: tri.Draw(t, "i"), OpenWorld: tri.Draw(t, "o")}
		effective := func(s *Server) tool.Hints {
			h := says
			for _, o := range s.HintOverrides {
				if fits(o.Pattern) {
					h = o.Hints.WithDefaults(h)
				}
			}
			return h
		}
		rank := func(t, strict tool.TriBool) int {
			switch t {
			case strict:
				return 0
			case tool.Unset:
				return 1
			}
			return 2
		}
		a, b := effective(before), effective(s)
		if rank(b.ReadOnly, tool.False) > rank(a.ReadOnly, tool.False) || rank(b.Destructive, tool.True) > rank(a.Destructive, tool.True) ||
			rank(b.Idempotent, tool.False) > rank(a.Idempotent, tool.False) || rank(b.OpenWorld, tool.True) > rank(a.OpenWorld, tool.True) {
			t.Fatalf("%s: %+v, was %+v", id, b, a)
		}
		for _, p := range append(slices.Clone(live.Profiles), Profile{}) {
			within := policy.NewScope(live.ProfileRule(p.Name))
			if p.Name != "" {
				if former := policy.NewScope(was.ProfileRule(p.Name)); within.AllowsTool(id.Server, name) && !former.AllowsTool(id.Server, name) || within.Lanes()&^former.Lanes() != 0 {
					t.Fatalf("profile %s additionally allows %s", p.Name, id)
				}
			}
			for lane := policy.Read; lane <= policy.Destructive; lane++ {
				if was.AskRuleFor(id, policy.NewScope(was.ProfileRule(p.Name)), lane).IsSet() && !live.AskRuleFor(id, within, lane).IsSet() {
					t.Fatalf("no ask rule for %s in the lane %v", id, lane)
				}
			}
		}
		if strict := map[ArgumentValidation]int{ValidateReject: 0, ValidateWarn: 1, ValidateOff: 2}; strict[live.ArgumentValidationMode(id.Server)] > strict[was.ArgumentValidationMode(id.Server)] {
			t.Fatalf("argument validation: %s, was %s", live.ArgumentValidationMode(id.Server), was.ArgumentValidationMode(id.Server))
		}
		if !maps.Equal(s.Env, before.Env) || !maps.Equal(s.Headers, before.Headers) || s.LaunchFingerprint() != before.LaunchFingerprint() {
			t.Fatalf("the launch changed: %+v, was %+v, %+v %+v", s.Launch, before.Launch, s.ExactLaunch(), before.ExactLaunch())
		}
		if _, err := json.Marshal(live); err != nil {
			t.Fatal(err)
		}
	})
}
