// Command masking measures how well redact finds credentials: in the samples of
// gitleaks' rules, in the keyword pairs of detect-secrets' tests, in encoded
// forms that it generates from a seed, and in clean text, where it should
// find none. It also measures the scan speed.
//
//	go run ./bench/masking [-gitleaks file] [-detect-secrets dir] [-shared dir]
//		[-clean dir,…] [-seed n] [-list half]
//
// The repository contains nothing of the two projects. In a checkout of gitleaks, replace
// cmd/generate/config/utils/validate.go with tell.go.txt to print its samples, which
// differ in each run:
//
//	cd cmd/generate/config && go run . /tmp/rules.toml > samples.jsonl
//
// A hash of the rule's name splits its rules into two halves: redact was developed with
// one half, and the other shows how well it generalizes. The command prints figures and
// has no pass or fail result.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"strings"

	"mcpproxy/internal/store/redact"
)

func main() {
	var (
		gitleaks = flag.String("gitleaks", "", "file of the samples of gitleaks")
		keywords = flag.String("detect-secrets", "", "a checkout of Yelp/detect-secrets")
		shared   = flag.String("shared", "../shared", "directory of definitions of tools, which are clean")
		clean    = flag.String("clean", "", "further directories of clean text, parted by commas")
		seed     = flag.Uint64("seed", 1, "what the encoded forms are made from")
		list     = flag.String("list", "", "list what is missed in a half: seen or unseen")
	)
	flag.Parse()
	if err := run(os.Stdout, *gitleaks, *keywords, *shared, *clean, *seed, *list); err != nil {
		fmt.Fprintln(os.Stderr, "masking:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, gitleaks, keywords, shared, clean string, seed uint64, list string) error {
	if gitleaks != "" {
		samples, err := readGitleaksSamples(gitleaks)
		if err != nil {
			return err
		}
		printFoundShare(w, "rules of gitleaks", samples, list)
	}
	if keywords != "" {
		samples, err := readKeywordPairs(keywords)
		if err != nil {
			return err
		}
		printFoundShare(w, "keyword pairs of detect-secrets", samples, list)
	}
	printFoundShare(w, "encoded forms", newEncodedSamples(seed), list)
	return printFlaggedCleanText(w, shared, clean, list != "")
}

// isMasked reports whether redaction finds a secret in a text, and in the same text as a JSON string. A text that is JSON is
// masked as JSON.
func isMasked(s secretSample) bool {
	if json.Valid([]byte(s.Text)) {
		return isUnrecoverable(s, string(redact.JSON(json.RawMessage(s.Text))))
	}
	quoted, _ := json.Marshal(map[string]string{"text": s.Text})
	var answer struct{ Text string }
	return isUnrecoverable(s, redact.Text(s.Text)) && json.Unmarshal(redact.JSON(quoted), &answer) == nil && isUnrecoverable(s, answer.Text)
}

// isUnrecoverable reports whether a text reveals no usable part of a secret: not even four in
// ten of its characters in sequence.
func isUnrecoverable(s secretSample, left string) bool {
	if left == s.Text {
		return false
	}
	n := min(len(s.Secret), max(6, len(s.Secret)*4/10))
	for i := 0; i+n <= len(s.Secret); i++ {
		if part := s.Secret[i : i+n]; strings.Contains(left, part) && strings.Count(left, part) >= strings.Count(s.Text, part) {
			return false
		}
	}
	return true
}

// isUnseenRule reports whether a rule is in the half that was not inspected during development.
func isUnseenRule(rule string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(rule))
	return h.Sum32()%2 == 1
}

// printFoundShare prints the mean detection rate over the rules.
func printFoundShare(w io.Writer, title string, samples []secretSample, list string) {
	type count struct{ found, all int }
	rules := map[string]count{}
	for _, s := range samples {
		c := rules[s.Rule]
		c.all++
		if isMasked(s) {
			c.found++
		} else if list == "seen" && !isUnseenRule(s.Rule) || list == "unseen" && isUnseenRule(s.Rule) {
			fmt.Fprintf(w, "  missed %s: %q, secret %q\n         %q\n", s.Rule, s.Text, s.Secret, redact.Text(s.Text))
		}
		rules[s.Rule] = c
	}
	mean := func(keep func(string) bool) (sum float64, n int) {
		for rule, c := range rules {
			if keep(rule) {
				sum, n = sum+float64(c.found)/float64(c.all), n+1
			}
		}
		return 100 * sum / float64(max(1, n)), n
	}
	seen, ns := mean(func(r string) bool { return !isUnseenRule(r) })
	other, no := mean(isUnseenRule)
	all, n := mean(func(string) bool { return true })
	fmt.Fprintf(w, "%s: %d samples, mean of %d rules %.1f %% (%d that were looked at %.1f %%, %d others %.1f %%)\n", title, len(samples), n, all, ns, seen, no, other)
	if list == "" {
		return
	}
	names := make([]string, 0, len(rules))
	for r, c := range rules {
		if c.found < c.all && (isUnseenRule(r) == (list == "unseen")) {
			names = append(names, r)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(rules[a].found*rules[b].all, rules[b].found*rules[a].all), cmp.Compare(a, b))
	})
	for _, r := range names {
		fmt.Fprintf(w, "  %4d of %4d %s\n", rules[r].found, rules[r].all, r)
	}
}
