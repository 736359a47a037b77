package doctor

import (
	"cmp"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/problem"
)

// CheckResult is a finding and its check. A check without findings has one CheckResult with the state OK or Skipped.
type CheckResult struct {
	Code  string     `json:"code"`
	Name  string     `json:"name"`
	Group CheckGroup `json:"group"`
	Finding
	Why     string `json:"why,omitempty"`
	Fixable bool   `json:"fixable,omitempty"` // ApplyFixes can fix it
}

// Report contains the results of all checks that ran, in the order of the table.
type Report struct {
	Daemon bool          `json:"daemon"` // whether a daemon answered
	Checks []CheckResult `json:"checks"`
	Bad    int           `json:"bad"`
	Warn   int           `json:"warn"`
	Fixed  []FixResult   `json:"fixed"`
}

// FixResult is the result of one automatic fix.
type FixResult struct {
	Code    string `json:"code"`
	Subject string `json:"subject,omitempty"`
	Command string `json:"command"` // the equivalent command
	Error   string `json:"error,omitempty"`
}

// RunChecks runs the checks with the given codes or names, or all checks if only is empty. It does not change the
// facts.
func RunChecks(f *Facts, only []string) (Report, error) {
	chosen, err := selectChecks(only)
	if err != nil {
		return Report{}, err
	}
	r := Report{Daemon: f.Daemon != nil, Checks: []CheckResult{}, Fixed: []FixResult{}}
	for _, c := range chosen {
		found := c.run(f)
		if len(found) == 0 {
			found = []Finding{{State: OK, What: c.NoFindingText}}
		}
		for _, one := range found {
			r.addFinding(c, one)
		}
	}
	return r, nil
}

func (r *Report) addFinding(c checkRow, f Finding) {
	result := CheckResult{Code: c.Code, Name: c.Name, Group: c.Group, Finding: f, Fixable: f.fix != nil}
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
func ApplyFixes(r Report) []FixResult {
	done := []FixResult{}
	for _, c := range r.Checks {
		if c.fix == nil {
			continue
		}
		fix := FixResult{Code: c.Code, Subject: c.Subject, Command: c.Command}
		if err := c.fix(); err != nil {
			fix.Error = err.Error()
		}
		done = append(done, fix)
	}
	return done
}

// selectChecks returns the checks with the given codes or names, in the order of the table.
func selectChecks(only []string) ([]checkRow, error) {
	if len(only) == 0 {
		return checks, nil
	}
	wanted := map[string]bool{}
	for _, word := range only {
		at := slices.IndexFunc(checks, func(c checkRow) bool { return strings.EqualFold(c.Code, word) || strings.EqualFold(c.Name, word) })
		if at < 0 {
			return nil, unknownCheckError(word)
		}
		wanted[checks[at].Code] = true
	}
	return slices.DeleteFunc(slices.Clone(checks), func(c checkRow) bool { return !wanted[c.Code] }), nil
}

func unknownCheckError(word string) error {
	near := search.NearestNames(word, CodesAndNames(), 1)
	return problem.Newf(problem.Usage, "There is no check '%s'.", problem.ClipName(word)).
		WithHint(cmp.Or(strings.Join(near, ""), "D101") + " is one; `mcpproxy doctor -o json` lists all.")
}

// CodesAndNames returns the codes and names of all checks.
func CodesAndNames() (all []string) {
	for _, c := range checks {
		all = append(all, c.Code, c.Name)
	}
	return all
}
