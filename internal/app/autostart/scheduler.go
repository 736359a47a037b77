package autostart

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"unicode/utf16"
)

// schedulerManager is the Windows Task Scheduler, which stores the task itself.
type schedulerManager struct{ account UserAccount }

// task is its name in the scheduler.
const task = "MCPProxy"

func (s *schedulerManager) Install(ctx context.Context, p Program) (changed bool, err error) {
	if err := p.rejectControlChars(); err != nil {
		return false, err
	}
	before, err := s.State(ctx)
	if err != nil {
		return false, err
	}
	file, err := os.CreateTemp("", "mcpproxy-*.xml")
	if err != nil {
		return false, newStepError("The task cannot be written", err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(toUTF16(windowsTaskXML(p, s.account.User)))
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return false, newStepError("The task cannot be written", err)
	}
	if before.Running {
		if err := s.runSchtasks(ctx, "/End"); err != nil {
			return false, err
		}
	}
	if err := s.runSchtasks(ctx, "/Create", "/XML", file.Name(), "/F"); err != nil {
		return false, err
	}
	return true, s.runSchtasks(ctx, "/Run")
}

func (s *schedulerManager) Uninstall(ctx context.Context) (was bool, err error) {
	before, err := s.State(ctx)
	if err != nil || !before.Installed {
		return false, err
	}
	if before.Running {
		if err := s.runSchtasks(ctx, "/End"); err != nil {
			return false, err
		}
	}
	return true, s.runSchtasks(ctx, "/Delete", "/F")
}

func (s *schedulerManager) runSchtasks(ctx context.Context, does string, args ...string) error {
	if _, err := s.account.Run(ctx, "schtasks.exe", append([]string{does, "/TN", task}, args...)...); err != nil {
		return newStepError("schtasks "+does+" failed", err)
	}
	return nil
}

// query prints the number of the task's state, nothing without a task. The output of schtasks is localized.
const query = "$t = Get-ScheduledTask -TaskName " + task + " -TaskPath '\\' -ErrorAction SilentlyContinue; if ($t) { [int]$t.State }"

func (s *schedulerManager) State(ctx context.Context) (ServiceState, error) {
	said, err := s.account.Run(ctx, "powershell.exe", "-NoProfile", "-NonInteractive", "-Command", query)
	if err != nil {
		return ServiceState{}, newStepError("The task scheduler does not respond", err)
	}
	state := ServiceState{Manager: "task scheduler", Installed: true, Enabled: true, Restart: "schtasks /End /TN " + task + " & schtasks /Run /TN " + task}
	switch number := strings.TrimSpace(said); number {
	case "":
		return ServiceState{Manager: state.Manager, Detail: "no such task"}, nil
	case "1":
		state.Enabled, state.Detail = false, "disabled"
	case "2":
		state.Detail = "queued"
	case "3":
		state.Detail = "ready"
	case "4":
		state.Running, state.Detail = true, "running"
	default:
		state.Detail = "in state " + number
	}
	return state, nil
}

// windowsTaskXML returns a task that starts a program at login. It checks each minute that the program runs, because the
// scheduler does not restart a program that ends with an error.
func windowsTaskXML(p Program, user string) string {
	words := make([]string, len(p.Args))
	for i, arg := range p.Args {
		words[i] = quoteWindowsArg(arg)
	}
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>MCPProxy, one endpoint in front of all MCP servers. %[1]s.</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Repetition>
        <Interval>PT1M</Interval>
        <StopAtDurationEnd>false</StopAtDurationEnd>
      </Repetition>
      <Enabled>true</Enabled>
      <UserId>%[2]s</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>%[2]s</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>%[3]s</Command>
      <Arguments>%[4]s</Arguments>
      <WorkingDirectory>%[5]s</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`, fileMarker, escapeXML(user), escapeXML(p.Path), escapeXML(strings.Join(words, " ")), escapeXML(p.Dir))
}

// quoteWindowsArg quotes one argument of a command line. Paths have no quotes.
func quoteWindowsArg(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t") {
		return word
	}
	backslashes := word[len(strings.TrimRight(word, `\`)):]
	return `"` + word + backslashes + `"`
}

// toUTF16 encodes a text for the scheduler.
func toUTF16(text string) []byte {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return out
}
