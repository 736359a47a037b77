package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// secretSample is a text and the secret in it.
type secretSample struct {
	Rule, Text, Secret string
}

// readGitleaksSamples reads the samples that gitleaks prints when tell.go.txt replaces its
// cmd/generate/config/utils/validate.go.
func readGitleaksSamples(path string) ([]secretSample, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var samples []secretSample
	for lines := json.NewDecoder(bytes.NewReader(text)); lines.More(); {
		var s secretSample
		if err := lines.Decode(&s); err != nil {
			return nil, err
		}
		if user, password, ok := strings.Cut(s.Secret, ":"); ok && !strings.ContainsAny(user, " \"'=") && strings.Contains(s.Text, "//"+s.Secret+"@") || ok && strings.Contains(s.Rule, "user") {
			s.Secret = password // who it is for is none
		}
		if s.Secret != "" { // some rules look at the name of a file alone
			samples = append(samples, s)
		}
	}
	return samples, nil
}

var (
	constant = regexp.MustCompile(`(?m)^(\w+_SECRET) = '(.*)'$`)
	pair     = regexp.MustCompile(`(?m)^    \((?:'(.*)'|"(.*)")\.format\((\w+_SECRET)\), (\w+_SECRET)\),`)
)

// readKeywordPairs reads the lines with a secret from the keyword tests of detect-secrets, each
// once. Each line is a rule.
func readKeywordPairs(checkout string) ([]secretSample, error) {
	text, err := os.ReadFile(filepath.Join(checkout, "tests/plugins/keyword_test.py"))
	if err != nil {
		return nil, err
	}
	secrets := map[string]string{}
	for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
		secrets[m[1]] = m[2]
	}
	var samples []secretSample
	seen := map[string]bool{}
	for _, m := range pair.FindAllStringSubmatch(string(text), -1) {
		line := strings.NewReplacer("{}", secrets[m[3]], "{{", "{", "}}", "}", `\'`, "'").Replace(m[1] + m[2])
		if !seen[line] {
			seen[line] = true
			samples = append(samples, secretSample{line, line, secrets[m[4]]})
		}
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf("no keyword pairs in %s", checkout)
	}
	return samples, nil
}
