package classify

import (
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// Inference is the inferred effect of a tool, with the reason. The zero value means that nothing was inferred.
type Inference struct {
	Operation policy.Operation
	Reason    string
	// Unsure reports whether the operation is only the cautious default, because there is no evidence or the evidence
	// is contradictory.
	Unsure bool
}

// InferHints infers the effect of a tool from its name, title, description and schema. It ignores declared hints,
// because callers use it for tools without hints.
func InferHints(d tool.Definition) Inference {
	name := analyzeName(d.ID.Tool)
	if d.Title != "" {
		name = name.combinedWithTitle(analyzeName(d.Title))
	}
	text := analyzeText(d.Description)
	schema := analyzeSchema(d.InputSchema)
	if in, ok := inferDestructive(name, text, schema); ok {
		return in
	}
	if in, ok := inferRead(name, text, schema); ok {
		return in
	}
	return inferWrite(name, text, schema)
}

// inferDestructive reports whether a tool deletes, or can do anything.
func inferDestructive(n nameAnalysis, t textAnalysis, s schemaAnalysis) (Inference, bool) {
	why := ""
	switch {
	case n.head == destroys:
		why = `its name says "` + n.verb + `"`
	case t.lead == destroys && n.head != reads:
		why = `its description begins with "` + t.verb + `"`
	case s.deletes != "":
		why = `one of its actions is "` + s.deletes + `"`
	case n.head == runs && !t.readOnly && (n.code || s.code != ""):
		why = `it runs what it is given`
	case t.final && n.head != reads && t.lead != reads && (t.deletes != "" || n.deletes != ""):
		why = `its description says that what it does is final`
	default:
		return Inference{}, false
	}
	return Inference{Operation: policy.Destructive, Reason: why}, true
}

// inferRead reports whether a tool only reads. This requires evidence for a read and none against it.
func inferRead(n nameAnalysis, t textAnalysis, s schemaAnalysis) (Inference, bool) {
	sign := ""
	switch {
	case n.head == reads && !n.unsure:
		sign = `its name says "` + n.verb + `"`
	case t.lead == reads && (n.head == noRole || n.unsure && n.head != destroys && !hasTrait(n.verb, changer)):
		sign = `its description begins with "` + t.verb + `"`
	default:
		return Inference{}, false
	}
	if readContradictionText(n, t, s) != "" {
		return Inference{}, false
	}
	return Inference{Operation: policy.Read, Reason: sign + `, and nothing speaks against it`}, true
}

// readContradictionText returns the evidence against a read-only tool.
func readContradictionText(n nameAnalysis, t textAnalysis, s schemaAnalysis) string {
	switch {
	case n.deletes != "":
		return `its name says "` + n.deletes + `"`
	case n.changes != "":
		return `its name says "` + n.changes + `"`
	case t.lead != noRole && t.lead != reads && !hasTrait(t.verb, neutral), t.lead == runs && (n.verb == "query" || n.head != reads):
		return `its description begins with "` + t.verb + `"`
	case t.deletes != "":
		return `its description says "` + t.deletes + `"`
	case t.changes != "":
		return `its description says "` + t.changes + `"`
	case s.code != "":
		return `it takes "` + s.code + `"`
	case s.vessel != "" && (t.code != "" || n.asks):
		return `it takes "` + s.vessel + `", which may be code`
	case s.changes != "":
		return `it takes "` + s.changes + `"`
	case s.writes != "":
		return `one of its actions is "` + s.writes + `"`
	case n.foreign:
		return `its name has characters beyond ASCII`
	case n.long || t.long || s.long:
		return `it is too long to be read to its end`
	}
	return ""
}

// inferWrite returns the inference for all other tools, with the evidence for a write, if any.
func inferWrite(n nameAnalysis, t textAnalysis, s schemaAnalysis) Inference {
	in := Inference{Operation: policy.Write}
	why := readContradictionText(n, t, s)
	switch {
	case n.head == writes, n.head == mayWrite && !n.unsure, n.head == runs:
		in.Reason = `its name says "` + n.verb + `"`
		in.Unsure = hasTrait(n.verb, making) && n.deletes == "" && t.deletes == ""
	case (n.head != reads || n.unsure) && t.lead != noRole && t.lead != reads && !hasTrait(t.verb, neutral):
		in.Reason = `its description begins with "` + t.verb + `"`
	case why != "":
		in.Reason = why
		in.Unsure = t.deletes == ""
	default:
		in.Reason, in.Unsure = `nothing says that it only reads`, true
	}
	return in
}
