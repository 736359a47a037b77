package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/schema"
	"mcpproxy/internal/catalog/search"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

// list is the last known tools of one server.
type list struct {
	entries  []*entry
	part     *search.Part // what of the index is this server's
	received bool         // from the server itself, in this process
	saved    bool
	admitted bool // what may be accepted is, or is just being
	// beyond are the entries that order something about tools that are not of this
	// list: found when tools of another server first come.
	beyond func() []*entry
}

// entriesBeyond returns how beyond is found.
func entriesBeyond(entries []*entry) func() []*entry {
	return sync.OnceValue(func() (beyond []*entry) {
		for _, e := range entries {
			if e.scanned.Beyond() {
				beyond = append(beyond, e)
			}
		}
		return beyond
	})
}

// entry is one definition with what is derived from it alone, so that it is
// derived once however often the rest changes.
type entry struct {
	definition *tool.Definition
	compile    sync.Once
	arguments  *schema.Schema
	scanned    *scan.Scanned
	nature     *classify.Analysis
}

func newEntry(d *tool.Definition, names *scan.CrossRefs) *entry {
	return &entry{definition: d, scanned: names.Tool(d), nature: classify.NewAnalysis(d)}
}

// merge makes entries for tools, taking over those of old that did not change.
func merge(old *list, tools []*tool.Definition, names *scan.CrossRefs) (entries []*entry, changed bool) {
	known := map[string]*entry{}
	if old != nil {
		for _, e := range old.entries {
			known[e.definition.ID.Tool] = e
		}
	}
	entries = make([]*entry, len(tools))
	for i, d := range tools {
		e := known[d.ID.Tool]
		if e == nil || !bytes.Equal(e.definition.Raw, d.Raw) || e.definition.ForClients != d.ForClients {
			e = newEntry(d, names)
		}
		entries[i] = e
	}
	return entries, old == nil || !slices.Equal(entries, old.entries)
}

func (l *list) raws() []json.RawMessage {
	raws := make([]json.RawMessage, len(l.entries))
	for i, e := range l.entries {
		raws[i] = e.definition.Raw
	}
	return raws
}

// set is the entries of a list.
func (l *list) set() map[*entry]bool {
	if l == nil {
		return nil
	}
	set := make(map[*entry]bool, len(l.entries))
	for _, e := range l.entries {
		set[e] = true
	}
	return set
}

// Tool is a tool as the product sees it. It is immutable.
type Tool struct {
	*tool.Definition
	// Effective is the override where it says something, else the server's hint,
	// else, when the configuration enforces it, what is inferred.
	Effective tool.Hints
	CallWith  policy.Variant
	Status    policy.Status
	Blocked   bool             // a user has refused this very definition
	Infers    policy.InferMode // what is made of it when it says nothing
	Judges    policy.JudgeMode // what is made of what its arguments do
	entry     *entry
	inferred  bool           // neither the server nor an override says what it does
	override  tool.Hints     // what a person has said
	declared  *classify.Rule // by which a person has it judged
	pin       *approval.Pin  // the approval of this definition, nil when there is none
	judged    atomic.Pointer[tool.Facts]
}

// Callable reports whether the tool can be called.
func (t *Tool) Callable() bool { return t.Status == policy.Callable }

// Arguments is the schema that the tool's arguments must satisfy; it is
// compiled at the first use.
func (t *Tool) Arguments() *schema.Schema {
	e := t.entry
	e.compile.Do(func() { e.arguments = schema.Compile(e.definition.InputSchema) })
	return e.arguments
}

// Inferred is what the tool seems to do, and why; nothing when it says so itself
// or the configuration wants no inference.
func (t *Tool) Inferred() classify.Inference {
	if !t.inferred {
		return classify.Inference{}
	}
	return t.entry.nature.Inferred()
}

// Guessed reports whether neither the server nor an override says what the tool
// does.
func (t *Tool) Guessed() bool { return t.inferred || policy.Silent(t.Effective) }

// Corrected returns the hints that hint_overrides say, and whether they say any.
func (t *Tool) Corrected() (tool.Hints, bool) { return t.override, t.override != tool.Hints{} }

// Candidate is the tool's definition as it is judged.
func (t *Tool) Candidate() approval.Candidate { return t.entry.candidate(t.Infers) }

// candidate has the hints that are declared. Where what is inferred counts as
// such, a change must not loosen that either.
func (e *entry) candidate(infer policy.InferMode) approval.Candidate {
	hints := e.definition.Hints
	if counts(infer) && policy.Silent(hints) {
		hints = policy.Effective(hints, e.nature.Inferred().Operation, infer)
	}
	return approval.Candidate{
		Tool: e.definition.ID.Tool, Fingerprint: e.definition.Fingerprint(), Hints: hints,
		Definition: e.definition.Raw, Report: e.scanned.Report, Orders: e.scanned.Orders,
	}
}

// infers is what is made of tools of a server that say nothing.
func infers(s config.Server, general policy.InferMode) policy.InferMode {
	return cmp.Or(s.InferHints, general)
}

// counts reports whether what is inferred is part of the effective hints.
func counts(infer policy.InferMode) bool {
	return infer != policy.InferOff && infer != policy.InferAdvise
}
