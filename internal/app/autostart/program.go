package autostart

import (
	"strings"
	"unicode"

	"mcpproxy/internal/problem"
)

// name is the name of the service.
const name = "mcpproxy"

// Program is the program to run. Texts with control characters are rejected.
type Program struct {
	Path string   // absolute path of the program
	Args []string // without the program
	Dir  string   // absolute working directory; "" is the home directory for systemd
	Env  []string // NAME=VALUE; ignored on Windows, where a task has the environment of its user
	Log  string   // file for stderr with launchd, which has no log
}

// ServiceState is the report of the service manager.
type ServiceState struct {
	Manager   string `json:"manager" doc:"The service manager: systemd, launchd or task scheduler."`
	File      string `json:"file,omitempty" doc:"The path of the service definition. Absent if the manager has no file."`
	Installed bool   `json:"installed"`
	Enabled   bool   `json:"enabled" doc:"Whether the service starts when the user logs in."`
	Running   bool   `json:"running"`
	PID       int    `json:"pid,omitempty" doc:"The id of the process. Absent if the manager does not report it."`
	Detail    string `json:"detail" doc:"The state as the manager reports it."`
	Restart   string `json:"restart" doc:"The command that restarts the service."`
	Log       string `json:"log,omitempty" doc:"The command that shows the output of the service. Absent if the manager does not store it."`
}

// rejectControlChars rejects characters that a service file cannot express.
func (p Program) rejectControlChars() error {
	for _, text := range append(append([]string{p.Path, p.Dir, p.Log}, p.Args...), p.Env...) {
		if strings.ContainsFunc(text, unicode.IsControl) {
			return problem.New(problem.InvalidParameter, "A path or a variable of the service has a control character.", "Rename it, or unset the variable.")
		}
	}
	return nil
}
