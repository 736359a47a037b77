package autostart

import (
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/problem"
)

// launchd manages agents of a logged-in user.
type launchd struct{ account Account }

func (l *launchd) file() string {
	return filepath.Join(l.account.Home, "Library", "LaunchAgents", name+".plist")
}

func (l *launchd) domain() string { return "gui/" + strconv.Itoa(l.account.UID) }
func (l *launchd) target() string { return l.domain() + "/" + name }

func (l *launchd) Install(ctx context.Context, p Program) (changed bool, err error) {
	if err := p.check(); err != nil {
		return false, err
	}
	before, err := l.State(ctx)
	if err != nil {
		return false, err
	}
	if changed, err = writeFile(l.file(), launchdAgent(p)); err != nil {
		return false, err
	}
	if before.Installed && changed {
		if err := l.bootout(ctx); err != nil {
			return true, err
		}
		before.Installed = false
	}
	if err := l.launchctl(ctx, "enable", l.target()); err != nil {
		return changed, err
	}
	switch {
	case !before.Installed:
		err = l.launchctl(ctx, "bootstrap", l.domain(), l.file())
	case !before.Running:
		err = l.launchctl(ctx, "kickstart", l.target())
	}
	return changed || !before.Enabled || !before.Installed || !before.Running, err
}

func (l *launchd) Uninstall(ctx context.Context) (was bool, err error) {
	before, err := l.State(ctx)
	if err != nil {
		return false, err
	}
	if _, err := readOwnFile(l.file()); err != nil {
		return false, err
	}
	if before.Installed {
		if err := l.bootout(ctx); err != nil {
			return false, err
		}
	}
	was, err = removeFile(l.file())
	return was || before.Installed, err
}

// The time that launchd needs to end an agent, which it gives 20 seconds, and the poll interval.
const (
	endTime = 30 * time.Second
	endLook = 200 * time.Millisecond
)

// bootout ends the agent and waits until launchd has removed it. Before that, launchd rejects another agent of that name.
func (l *launchd) bootout(ctx context.Context) error {
	if err := l.launchctl(ctx, "bootout", l.target()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	look := time.NewTicker(endLook)
	defer look.Stop()
	for {
		if _, err := l.account.Run(ctx, "launchctl", "print", l.target()); err != nil && ctx.Err() == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return stepError("The agent does not end", ctx.Err())
		}
	}
}

func (l *launchd) launchctl(ctx context.Context, args ...string) error {
	if _, err := l.account.Run(ctx, "launchctl", args...); err != nil {
		return stepError("launchctl "+args[0]+" failed", err)
	}
	return nil
}

func (l *launchd) State(ctx context.Context) (State, error) {
	state := State{Manager: "launchd", Detail: "not loaded", Restart: "launchctl kickstart -k " + l.target()}
	if _, err := os.Lstat(l.file()); err == nil {
		state.File = l.file()
	}
	disabled, err := l.account.Run(ctx, "launchctl", "print-disabled", l.domain())
	if err != nil {
		return State{}, problem.New(problem.Conflict, "launchd does not answer for this user: "+strings.Join(strings.Fields(err.Error()), " "),
			"Log in on the screen as the user, without sudo or ssh.").Because(err)
	}
	off := strings.Contains(disabled, `"`+name+`" => disabled`) || strings.Contains(disabled, `"`+name+`" => true`)
	state.Enabled = state.File != "" && !off
	said, err := l.account.Run(ctx, "launchctl", "print", l.target())
	if err != nil { // it knows no such agent
		return state, nil
	}
	state.Installed = true
	is := map[string]string{}
	for line := range strings.Lines(said) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && is[name] == "" {
			is[name] = value
		}
	}
	state.PID, _ = strconv.Atoi(is["pid"])
	state.Running, state.Detail = is["state"] == "running", is["state"]
	if code := is["last exit code"]; code != "" && code != "0" && code != "(never exited)" {
		state.Detail += ", the last run ended with " + code
	}
	return state, nil
}

// launchdAgent returns the property list of an agent that runs a program.
func launchdAgent(p Program) string {
	var out strings.Builder
	fmt.Fprintf(&out, `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- %s. -->
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>%s</string>
	<key>ProgramArguments</key>
	<array>
`, fileMarker, name)
	for _, word := range append([]string{p.Path}, p.Args...) {
		fmt.Fprintf(&out, "\t\t<string>%s</string>\n", escapeXML(word))
	}
	out.WriteString("\t</array>\n")
	if len(p.Env) > 0 {
		out.WriteString("\t<key>EnvironmentVariables</key>\n\t<dict>\n")
		for _, variable := range p.Env {
			name, value, _ := strings.Cut(variable, "=")
			fmt.Fprintf(&out, "\t\t<key>%s</key>\n\t\t<string>%s</string>\n", escapeXML(name), escapeXML(value))
		}
		out.WriteString("\t</dict>\n")
	}
	for _, path := range [][2]string{{"WorkingDirectory", p.Dir}, {"StandardErrorPath", p.Log}} {
		if path[1] != "" {
			fmt.Fprintf(&out, "\t<key>%s</key>\n\t<string>%s</string>\n", path[0], escapeXML(path[1]))
		}
	}
	out.WriteString(`	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ProcessType</key>
	<string>Interactive</string>
</dict>
</plist>
`)
	return out.String()
}

// escapeXML escapes a text for XML.
func escapeXML(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a strings.Builder takes everything
	return out.String()
}
