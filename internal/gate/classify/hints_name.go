package classify

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/gate/policy"
)

// name is the analysis of a name.
type name struct {
	head   role   // effect of its verb, noRole without one
	verb   string // the verb
	unsure bool   // the verb may also be a noun
	// deletes is a word about deletion, at any position.
	deletes string
	// changes is a word after a reading verb that implies a change.
	changes string
	code    bool // it names a language or a command
	asks    bool // it queries in a language that can also write: sql_query
	long    bool
	foreign bool // it has characters that may hide other words
}

// readName analyzes a name.
func readName(s string) name {
	var buffer [maxNameWords]string
	words := pieces(s, buffer[:0])
	n := name{long: len(words) >= maxNameWords, foreign: hasForeign(s)}
	known := lexicon()
	for i, w := range words {
		v := known.words[w]
		if n.deletes == "" && aboutDeleting(w) {
			n.deletes = w
		}
		n.code = n.code || v.is(codeWord)
		if v.role == noRole || v.form == participle || v.form == gerund && v.role != destroys && i > 0 || v.is(spoken) {
			continue
		}
		last := i == len(words)-1
		switch {
		case v.role == destroys && n.head != reads:
			n.head, n.verb, n.unsure = destroys, w, false
		case v.role == destroys && last && v.form == base && !is(n.verb, asking):
			n.head, n.verb, n.unsure = destroys, w, false // list_delete deletes a list
		case n.head == destroys:
		case n.head == noRole:
			n.head, n.verb = v.role, w
			n.unsure = v.role == mayWrite && (i > 0 || last && !v.is(changer)) || v.form == third && v.role != writes || v.role == reads && v.form == base && i == 0 && v.is(namespace)
		case n.head == reads && v.role == mayWrite && !(is(words[i-1], joining) && v.form == base):
			// get_updates, list_posts; but view_update is ambiguous.
			n.unsure = n.unsure || last && v.form == base && is(n.verb, listLike)
		case n.head == reads && v.role == runs && (w == "run" || w == "runs"):
			// list_workflow_runs
		case n.head == reads && v.role != reads:
			n.changes = w
		case n.head == mayWrite && v.role == reads && v.form == base && last:
			// post_get, but update_list is ambiguous.
			switch {
			case v.is(asking) && w != "read":
				n.head, n.verb, n.unsure = reads, w, false
			case v.is(listLike):
				n.unsure = true
			}
		case n.head == mayWrite && (n.unsure || last) && (v.role > mayWrite || v.is(changer)):
			n.head, n.verb, n.unsure = v.role, w, v.role == mayWrite
		case v.role == runs && n.head != runs:
			n.changes = w
		}
		if n.head == reads && v.role == reads && !last && slices.Contains(known.idioms, w+" "+words[i+1]) {
			n.changes = w + " " + words[i+1]
		}
	}
	n.asks = n.verb == "query" && slices.ContainsFunc(words, func(w string) bool { return is(w, language) })
	if n.head == reads && n.verb == "fetch" && len(words) > 1 && words[0] == "git" {
		n.head = writes // it fetches into the repository
	}
	return n
}

// with adds the analysis of a title. The name has priority, but a title that implies a change counts.
func (n name) with(title name) name {
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

// aboutDeleting reports whether a word is about deletion, in any form or compound.
func aboutDeleting(w string) bool {
	known := lexicon()
	switch v := known.words[w]; {
	case v.is(harmlessWords):
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
	o, _ := ofName(s)
	return o
}

// nameSaysChange reports whether a name clearly implies a change or deletion.
func nameSaysChange(s string) bool {
	o, sure := ofName(s)
	return sure && o != policy.Read
}

func ofName(s string) (o policy.Operation, sure bool) {
	switch n := readName(s); {
	case n.head == destroys:
		return policy.Destructive, true
	case n.head == reads && !n.unsure && n.deletes == "" && n.changes == "" && !n.long && !n.foreign:
		return policy.Read, true
	default:
		return policy.Write, n.head > reads
	}
}
