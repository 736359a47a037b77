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

// toolList is the last known tools of one server.
type toolList struct {
	entries   []*analyzedTool
	indexPart *search.ServerIndexPart // the server's part of the index
	settings  []config.ToolSettings   // with which it was built
	received  bool                    // whether the server itself listed them to this process
	saved     bool
	admitted  bool // admission is done or running
	// externalRefs returns the entries that give instructions about tools outside this list. They are checked when a
	// tool of another server first appears.
	externalRefs func() []*analyzedTool
}

// newExternalRefsFunc returns the lazy function for toolList.externalRefs.
func newExternalRefsFunc(entries []*analyzedTool) func() []*analyzedTool {
	return sync.OnceValue(func() (beyond []*analyzedTool) {
		for _, e := range entries {
			if e.scanned.RefersToUnlistedTool() {
				beyond = append(beyond, e)
			}
		}
		return beyond
	})
}

// analyzedTool is one definition with everything that is derived from it alone, so that it is derived only once.
type analyzedTool struct {
	definition     *tool.Definition
	compile        sync.Once
	arguments      *schema.Schema
	scanned        *scan.ScannedDefinition
	classification *classify.ToolAnalysis
	strictForm     func() (json.RawMessage, error)
	output         func() *schema.Schema // for structuredContent; compiled at the first use
}

func newAnalyzedTool(d *tool.Definition, names *scan.CrossRefIndex) *analyzedTool {
	return &analyzedTool{definition: d, scanned: names.NewScannedTool(d), classification: classify.NewToolAnalysis(d),
		strictForm: sync.OnceValues(func() (json.RawMessage, error) { return tool.StrictForm(tool.KindTool, d.Raw) }),
		output:     sync.OnceValue(func() *schema.Schema { return schema.Compile(d.OutputSchema) })}
}

// reuseUnchangedTools returns entries for tools and reuses those of old that did not change.
func reuseUnchangedTools(old *toolList, tools []*tool.Definition, names *scan.CrossRefIndex) (entries []*analyzedTool, changed bool) {
	known := map[string]*analyzedTool{}
	if old != nil {
		for _, e := range old.entries {
			known[e.definition.ID.Tool] = e
		}
	}
	entries = make([]*analyzedTool, len(tools))
	for i, d := range tools {
		e := known[d.ID.Tool]
		if e == nil || !bytes.Equal(e.definition.Raw, d.Raw) || e.definition.ForClients != d.ForClients {
			e = newAnalyzedTool(d, names)
		}
		entries[i] = e
	}
	return entries, old == nil || !slices.Equal(entries, old.entries)
}

func (l *toolList) rawDefinitions() []json.RawMessage {
	raws := make([]json.RawMessage, len(l.entries))
	for i, e := range l.entries {
		raws[i] = e.definition.Raw
	}
	return raws
}

// analyzedToolSet returns the entries of a list as a set.
func (l *toolList) analyzedToolSet() map[*analyzedTool]bool {
	if l == nil {
		return nil
	}
	set := make(map[*analyzedTool]bool, len(l.entries))
	for _, e := range l.entries {
		set[e] = true
	}
	return set
}

// Tool is a tool with its status and effective hints. It is immutable.
type Tool struct {
	*tool.Definition
	// Effective contains, for each hint, the override if it sets the hint, else the server's hint, else what a trusted
	// sandbox proves, else, if the configuration enforces inference, the inferred hint.
	Effective       tool.Hints
	CallWith        policy.CallToolVariant
	Status          policy.ToolStatus
	Blocked         bool                      // a user has rejected this exact definition
	InferMode       policy.InferMode          // how inferred hints are used
	ArgumentEffects policy.ArgumentEffectMode // how the effect of its arguments is used
	entry           *analyzedTool
	undeclared      bool                   // neither the server nor an override declares its hints
	override        tool.Hints             // from hint_overrides
	proven          tool.Hints             // by a trusted sandbox
	settings        *config.ToolSettings   // from tools of its server; nil if there are none
	shown           *tool.Definition       // as agents see it
	shadowedBy      string                 // see ShadowedBy
	laneRule        *classify.ArgumentRule // the configured rule that classifies its arguments
	pin             *approval.Pin          // the approval of this definition, nil if there is none
	factsCache      atomic.Pointer[tool.DecisionFacts]
}

// Callable reports whether the tool can be called.
func (t *Tool) Callable() bool { return t.Status == policy.Callable }

// ArgumentSchema returns the schema for the tool's arguments. It is compiled at the first use.
func (t *Tool) ArgumentSchema() *schema.Schema {
	e := t.entry
	e.compile.Do(func() { e.arguments = schema.Compile(e.definition.InputSchema) })
	return e.arguments
}

// FitsOutputSchema reports whether the structuredContent of a result fits the tool's output schema. The tool must have
// one.
func (t *Tool) FitsOutputSchema(structured json.RawMessage) bool {
	violations, err := t.entry.output().CheckArguments(structured)
	return err == nil && len(violations) == 0
}

// StrictForm returns the definition in a form that strict clients accept, or the reason why they would reject it. Lists
// for strict clients omit a rejected definition.
func (t *Tool) StrictForm() (json.RawMessage, error) { return t.entry.strictForm() }

// InferredOperation returns the inferred operation and the reasons for it. It returns the zero value if hints are
// declared or inference is off.
func (t *Tool) InferredOperation() classify.Inference {
	if !t.undeclared {
		return classify.Inference{}
	}
	return t.entry.classification.InferredHints()
}

// LacksDeclaredHints reports whether neither the server nor an override declares the tool's
// hints.
func (t *Tool) LacksDeclaredHints() bool { return t.undeclared || policy.HintsUnset(t.Effective) }

// HintOverrides returns the hints that hint_overrides set, and whether there are any.
func (t *Tool) HintOverrides() (tool.Hints, bool) { return t.override, t.override != tool.Hints{} }

// ApprovalCandidate returns the tool's definition as input for approval.
func (t *Tool) ApprovalCandidate() approval.CandidateDefinition {
	return t.entry.approvalCandidate(t.InferMode)
}

// approvalCandidate returns the definition with its declared hints as input for approval. If inferred hints are
// enforced, they are included, because a change must not loosen them either.
func (e *analyzedTool) approvalCandidate(infer policy.InferMode) approval.CandidateDefinition {
	hints := e.definition.Hints
	if areInferredHintsEnforced(infer) && policy.HintsUnset(hints) {
		hints = policy.EffectiveHints(hints, e.classification.InferredHints().Operation, infer)
	}
	return approval.CandidateDefinition{
		Tool: e.definition.ID.Tool, Fingerprint: e.definition.Fingerprint(), Hints: hints,
		Definition: e.definition.Raw, Report: e.scanned.Report, Orders: e.scanned.RefersToOtherServer,
	}
}

// serverHintInferenceMode returns a server's inference mode, or the general one.
func serverHintInferenceMode(s config.Server, general policy.InferMode) policy.InferMode {
	return cmp.Or(s.InferHints, general)
}

// areInferredHintsEnforced reports whether inferred hints are part of the effective hints.
func areInferredHintsEnforced(infer policy.InferMode) bool {
	return infer != policy.InferOff && infer != policy.InferAdvise
}
