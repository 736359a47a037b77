package process

import (
	"strings"
	"testing"
)

func TestStartQueue(t *testing.T) {
	turn := func(p *StartSlot) bool {
		select {
		case <-p.TurnGranted():
			return true
		default:
			return false
		}
	}
	npx := func(pack string) PackageRunner { return PackageRunner{Name: "npx", Installs: true, pkg: pack} }
	q := NewStartQueueWithCapacity(4)
	a, b := q.Join(npx("a"), false), q.Join(npx("b"), false)
	c, plain := q.Join(npx("c"), false), q.Join(PackageRunner{}, false)
	if !turn(a) || !turn(b) || turn(c) || turn(plain) {
		t.Error("two package managers with a total weight of four fit")
	}
	hasty := q.Join(npx("d"), true)
	if !turn(hasty) {
		t.Error("an urgent start has no extra capacity")
	}
	if n, waits := plain.SlotsAhead(); n != 1 || !waits {
		t.Errorf("%d before the last one", n)
	}
	plain.MakeUrgent()
	if n, _ := plain.SlotsAhead(); n != 0 || turn(plain) {
		t.Errorf("%d before it, but there is no room for hasty ones any more", n)
	}
	hasty.Release(true)
	if !turn(plain) || turn(c) {
		t.Error("the one that is in a hurry goes first")
	}
	a.yieldCapacity()
	a.yieldCapacity()
	a.Release(false)
	a.Release(false)
	plain.Release(true)
	if !turn(c) || q.used != 4 {
		t.Errorf("%d are taken", q.used)
	}
	b.Release(true)
	c.Release(true)

	// The same package is not fetched twice at a time.
	first, second, other := q.Join(npx("same"), false), q.Join(npx("same"), true), q.Join(npx("other"), false)
	if !turn(first) || turn(second) || !turn(other) {
		t.Error("the second one waits for the first one, and holds up no one")
	}
	first.Release(false)
	if !turn(second) {
		t.Error("the first one has failed")
	}
	second.Release(true)
	again, twice := q.Join(npx("same"), false), q.Join(npx("same"), true)
	if !turn(again) || !turn(twice) {
		t.Error("it is installed by now")
	}
	for _, p := range []*StartSlot{other, again, twice, q.Join(PackageRunner{}, false)} {
		p.Release(false)
	}
	if q.used != 0 || len(q.waiting) != 0 || len(q.fetching) != 0 {
		t.Errorf("left: %+v", q)
	}
}

func TestRunnersAreRecognised(t *testing.T) {
	for line, want := range map[string]string{
		"npx -y @scope/server@1.2.3 /tmp":       "npx @scope/server@1.2.3",
		"npx --registry http://r x":             "npx x",
		"npx -p a -p b tool":                    "npx a b",
		"/usr/local/bin/npx -y x":               "npx x",
		`C:\Program_Files\nodejs\npx.cmd -y x`:  "npx x",
		"cmd /c npx -y x":                       "npx x",
		"cmd.exe /C npx.cmd x":                  "npx x",
		"env A=1 /a=b/npx x":                    "npx x",
		"env A=1 B=2 npx x":                     "npx x",
		"/usr/bin/env -i npx x":                 "npx x",
		"sh|-c|npx -y x /tmp":                   "npx x",
		"bash|-lc|cd /tmp && A=1 exec npx -y x": "npx x",
		"uvx mcp-server-git":                    "uvx mcp-server-git",
		"uv tool run x":                         "uvx x",
		"uv run --with x server.py":             "uv run x",
		"bunx x":                                "bunx x",
		"bun x y":                               "bunx y",
		"pnpm dlx x":                            "pnpm dlx x",
		"yarn dlx x":                            "yarn dlx x",
		"npm exec -y x":                         "npx x",
		"pipx run x":                            "pipx x",
		"deno run -A npm:x":                     "deno npm:x",
		"docker run -i --rm x":                  "docker",
		"podman run x":                          "podman",
		"node /usr/lib/node_modules/npm/bin/npx-cli.js -y x": "npx x",
		"node server.js":     "",
		"python -m x":        "",
		"sh|-c|exec server":  "",
		"npm start":          "",
		"deno run server.ts": "",
		"docker ps":          "",
		"env":                "",
		"env env env env env env env env env env npx x": "",
	} {
		words := strings.Split(line, "|")
		if len(words) == 1 {
			words = strings.Fields(line)
		}
		r := DetectRunner(words[0], words[1:])
		if got := strings.TrimSpace(r.Name + " " + strings.TrimSpace(r.pkg)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
