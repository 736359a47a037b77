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

// launchdManager manages agents of a logged-in user.
type launchdManager struct{ account UserAccount }

func (l *launchdManager) agentFilePath() string {
	return filepath.Join(l.account.Home, "Library", "LaunchAgents", name+".plist")
}

func (l *launchdManager) guiDomain() string     { return "gui/" + strconv.Itoa(l.account.UID) }
func (l *launchdManager) serviceTarget() string { return l.guiDomain() + "/" + name }

func (l *launchdManager) Install(ctx context.Context, p Program) (changed bool, err error) {
	if err := p.rejectControlChars(); err != nil {
		return false, err
	}
	before, err := l.State(ctx)
	if err != nil {
		return false, err
	}
	if changed, err = writeServiceFile(l.agentFilePath(), launchdPlist(p)); err != nil {
		return false, err
	}
	if before.Installed && changed {
		if err := l.bootOutAndWait(ctx); err != nil {
			return true, err
		}
		before.Installed = false
	}
	if err := l.runLaunchctl(ctx, "enable", l.serviceTarget()); err != nil {
		return changed, err
	}
	switch {
	case !before.Installed:
		err = l.runLaunchctl(ctx, "bootstrap", l.guiDomain(), l.agentFilePath())
	case !before.Running:
		err = l.runLaunchctl(ctx, "kickstart", l.serviceTarget())
	}
	return changed || !before.Enabled || !before.Installed || !before.Running, err
}

func (l *launchdManager) Uninstall(ctx context.Context) (was bool, err error) {
	before, err := l.State(ctx)
	if err != nil {
		return false, err
	}
	if _, err := readOwnServiceFile(l.agentFilePath()); err != nil {
		return false, err
	}
	if before.Installed {
		if err := l.bootOutAndWait(ctx); err != nil {
			return false, err
		}
	}
	was, err = removeServiceFile(l.agentFilePath())
	return was || before.Installed, err
}

// The time that launchd needs to end an agent, which it gives 20 seconds, and the poll interval.
const (
	endTime = 30 * time.Second
	endLook = 200 * time.Millisecond
)

// bootOutAndWait ends the agent and waits until launchd has removed it. Before that, launchd rejects another agent of that name.
func (l *launchdManager) bootOutAndWait(ctx context.Context) error {
	if err := l.runLaunchctl(ctx, "bootout", l.serviceTarget()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	look := time.NewTicker(endLook)
	defer look.Stop()
	for {
		if _, err := l.account.Run(ctx, "launchctl", "print", l.serviceTarget()); err != nil && ctx.Err() == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return newStepError("The launchd agent does not stop", ctx.Err())
		}
	}
}

func (l *launchdManager) runLaunchctl(ctx context.Context, args ...string) error {
	if _, err := l.account.Run(ctx, "launchctl", args...); err != nil {
		return newStepError("launchctl "+args[0]+" failed", err)
	}
	return nil
}

func (l *launchdManager) State(ctx context.Context) (ServiceState, error) {
	state := ServiceState{Manager: "launchd", Detail: "not loaded", Restart: "launchctl kickstart -k " + l.serviceTarget()}
	if _, err := os.Lstat(l.agentFilePath()); err == nil {
		state.File = l.agentFilePath()
	}
	disabled, err := l.account.Run(ctx, "launchctl", "print-disabled", l.guiDomain())
	if err != nil {
		return ServiceState{}, problem.New(problem.Conflict, "Cannot reach launchd for this user: "+strings.Join(strings.Fields(err.Error()), " "),
			"Log in to the desktop as the user, without sudo or ssh.").Because(err)
	}
	off := strings.Contains(disabled, `"`+name+`" => disabled`) || strings.Contains(disabled, `"`+name+`" => true`)
	state.Enabled = state.File != "" && !off
	said, err := l.account.Run(ctx, "launchctl", "print", l.serviceTarget())
	if err != nil { // the agent does not exist
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

// launchdPlist returns the property list of an agent that runs a program.
func launchdPlist(p Program) string {
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
	_ = xml.EscapeText(&out, []byte(text)) // a write to a strings.Builder does not fail
	return out.String()
}
