package classify

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/gate/policy"
)

// nameAnalysis is the analysis of a name.
type nameAnalysis struct {
	head   wordEffect // effect of its verb; noRole if there is none
	verb   string     // the verb
	unsure bool       // the verb may also be a noun
	// deletes is a word about deletion, at any position.
	deletes string
	// changes is a word after a reading verb that implies a change.
	changes string
	code    bool // contains a language or a command
	asks    bool // queries in a language that can also write: sql_query
	long    bool
	foreign bool // contains characters that may hide other words
}

// analyzeName analyzes a name.
func analyzeName(s string) nameAnalysis {
	var buffer [maxNameWords]string
	words := splitIdentifier(s, buffer[:0])
	n := nameAnalysis{long: len(words) >= maxNameWords, foreign: hasNonASCII(s)}
	known := lexicon()
	for i, w := range words {
		v := known.words[w]
		if n.deletes == "" && meansDeletion(w) {
			n.deletes = w
		}
		n.code = n.code || v.has(codeWord)
		if v.role == noRole || v.form == participle || v.form == gerund && v.role != destroys && i > 0 || v.has(spoken) {
			continue
		}
		last := i == len(words)-1
		switch {
		case v.role == destroys && n.head != reads:
			n.head, n.verb, n.unsure = destroys, w, false
		case v.role == destroys && last && v.form == base && !hasTrait(n.verb, asking):
			n.head, n.verb, n.unsure = destroys, w, false // list_delete deletes a list
		case n.head == destroys:
		case n.head == noRole:
			n.head, n.verb = v.role, w
			n.unsure = v.role == mayWrite && (i > 0 || last && !v.has(changer)) || v.form == third && v.role != writes || v.role == reads && v.form == base && i == 0 && v.has(namespace)
		case n.head == reads && v.role == mayWrite && !(hasTrait(words[i-1], joining) && v.form == base):
			// get_updates, list_posts; but view_update is ambiguous.
			n.unsure = n.unsure || last && v.form == base && hasTrait(n.verb, listLike)
		case n.head == reads && v.role == runs && (w == "run" || w == "runs"):
			// list_workflow_runs
		case n.head == reads && v.role != reads:
			n.changes = w
		case n.head == mayWrite && v.role == reads && v.form == base && last:
			// post_get reads; update_list is ambiguous.
			switch {
			case v.has(asking) && w != "read":
				n.head, n.verb, n.unsure = reads, w, false
			case v.has(listLike):
				n.unsure = true
			}
		case n.head == mayWrite && (n.unsure || last) && (v.role > mayWrite || v.has(changer)):
			n.head, n.verb, n.unsure = v.role, w, v.role == mayWrite
		case v.role == runs && n.head != runs:
			n.changes = w
		}
		if n.head == reads && v.role == reads && !last && slices.Contains(known.idioms, w+" "+words[i+1]) {
			n.changes = w + " " + words[i+1]
		}
	}
	n.asks = n.verb == "query" && slices.ContainsFunc(words, func(w string) bool { return hasTrait(w, language) })
	if n.head == reads && n.verb == "fetch" && len(words) > 1 && words[0] == "git" {
		n.head = writes // git fetch writes to the repository
	}
	return n
}

// combinedWithTitle adds the analysis of a title. The name has priority, but a title that implies a change counts.
func (n nameAnalysis) combinedWithTitle(title nameAnalysis) nameAnalysis {
	if n.head == noRole {
		n.head, n.verb, n.unsure = title.head, title.verb, title.unsure
	}
	n.deletes = cmp.Or(n.deletes, title.deletes)
	n.changes = cmp.Or(n.changes, title.changes)
	if title.head == writes || title.head == runs {
		n.changes = cmp.Or(n.changes, title.verb)
	}
	n.code = n.code || title.code
	n.long = n.long || title.long
	return n
}

// meansDeletion reports whether a word is about deletion, in any form or compound.
func meansDeletion(w string) bool {
	known := lexicon()
	switch v := known.words[w]; {
	case v.has(harmlessWords):
		return false
	case v.role == destroys:
		return true
	}
	if len(w) < 5 && w[0] < utf8.RuneSelf {
		return false
	}
	return slices.ContainsFunc(known.deletions, func(stem string) bool { return strings.Contains(w, stem) }) ||
		slices.ContainsFunc(known.shortDeletions, func(stem string) bool { return strings.HasPrefix(w, stem) || strings.HasSuffix(w, stem) })
}

// operationOfName returns the operation that the name of a tool, an action or a field implies: a write if
// it is not clear.
func operationOfName(s string) policy.Operation {
	o, _ := operationAndCertainty(s)
	return o
}

// nameSaysChange reports whether a name clearly implies a change or deletion.
func nameSaysChange(s string) bool {
	o, sure := operationAndCertainty(s)
	return sure && o != policy.Read
}

func operationAndCertainty(s string) (o policy.Operation, sure bool) {
	switch n := analyzeName(s); {
	case n.head == destroys:
		return policy.Destructive, true
	case n.head == reads && !n.unsure && n.deletes == "" && n.changes == "" && !n.long && !n.foreign:
		return policy.Read, true
	default:
		return policy.Write, n.head > reads
	}
}
