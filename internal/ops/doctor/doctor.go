package doctor

import (
	"cmp"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/problem"
)

// Result is a finding with its check. A check without findings has one Result with state OK or Skipped.
type Result struct {
	Code  string `json:"code"`
	Name  string `json:"name"`
	Group Group  `json:"group"`
	Finding
	Why     string `json:"why,omitempty"`
	Fixable bool   `json:"fixable,omitempty"` // ApplyFixes can fix it
}

// Report has the results of all checks, in the order of the table.
type Report struct {
	Daemon bool     `json:"daemon"` // a daemon answered
	Checks []Result `json:"checks"`
	Bad    int      `json:"bad"`
	Warn   int      `json:"warn"`
	Fixed  []Fix    `json:"fixed"`
}

// Fix is the result of one automatic fix.
type Fix struct {
	Code    string `json:"code"`
	Subject string `json:"subject,omitempty"`
	Command string `json:"command"` // the equivalent command
	Error   string `json:"error,omitempty"`
}

// Examine runs the checks with these codes or names; none means all. It does not change the facts.
func Examine(f *Facts, only []string) (Report, error) {
	chosen, err := selectChecks(only)
	if err != nil {
		return Report{}, err
	}
	r := Report{Daemon: f.Daemon != nil, Checks: []Result{}, Fixed: []Fix{}}
	for _, c := range chosen {
		found := c.run(f)
		if len(found) == 0 {
			found = []Finding{{State: OK, What: c.Well}}
		}
		for _, one := range found {
			r.add(c, one)
		}
	}
	return r, nil
}

func (r *Report) add(c check, f Finding) {
	result := Result{Code: c.Code, Name: c.Name, Group: c.Group, Finding: f, Fixable: f.fix != nil}
	switch f.State {
	case Bad:
		r.Bad++
	case Warn:
		r.Warn++
	}
	if f.State == Bad || f.State == Warn || f.State == Note {
		result.Why = c.Why
	}
	r.Checks = append(r.Checks, result)
}

// ApplyFixes applies the safe fixes of a report and returns their results.
func ApplyFixes(r Report) []Fix {
	done := []Fix{}
	for _, c := range r.Checks {
		if c.fix == nil {
			continue
		}
		fix := Fix{Code: c.Code, Subject: c.Subject, Command: c.Command}
		if err := c.fix(); err != nil {
			fix.Error = err.Error()
		}
		done = append(done, fix)
	}
	return done
}

// selectChecks returns the checks with these codes or names, in the order of the table.
func selectChecks(only []string) ([]check, error) {
	if len(only) == 0 {
		return checks, nil
	}
	wanted := map[string]bool{}
	for _, word := range only {
		at := slices.IndexFunc(checks, func(c check) bool { return strings.EqualFold(c.Code, word) || strings.EqualFold(c.Name, word) })
		if at < 0 {
			return nil, unknownCheck(word)
		}
		wanted[checks[at].Code] = true
	}
	return slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return !wanted[c.Code] }), nil
}

func unknownCheck(word string) error {
	near := search.NearestNames(word, Codes(), 1)
	return problem.Newf(problem.Usage, "There is no check '%s'.", problem.ClipName(word)).
		WithHint(cmp.Or(strings.Join(near, ""), "D101") + " is one; `mcpproxy doctor -o json` lists all.")
}

// Codes returns the codes and names of all checks.
func Codes() (all []string) {
	for _, c := range checks {
		all = append(all, c.Code, c.Name)
	}
	return all
}
