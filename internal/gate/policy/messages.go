package policy

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
)

// whenUnsure returns the last sentence of a refused intent: the alternative that needs no more knowledge.
func whenUnsure(required bool) string {
	return ` When unsure: call_tool_destructive always passes (with intent.operation_type "destructive"` + unless(required, " or none") + ")."
}

// unless returns a text only if no intent is required.
func unless(required bool, text string) string {
	if required {
		return ""
	}
	return text
}

// IntentNotObject is the message for an intent that is no JSON object.
const IntentNotObject = "intent must be an object with operation_type and, optionally, data_sensitivity and reason"

// NoCallTool is the answer to the former call_tool, which does not exist.
const NoCallTool = "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or call_tool_destructive with matching intent.operation_type. " +
	"See retrieve_tools for annotations and recommendations."

// FieldNotString is the message for a member of the intent, or a flat parameter, that is no string.
func FieldNotString(field string) string { return field + " must be a string" }

// FieldsDiffer is the message for two different values of one field, such as intent.reason and
// intent_reason.
func FieldsDiffer(one, other string) string {
	return one + " and " + other + " are both given and differ: give one of them"
}

// warnOverlyCautious is the warning for a read-only tool called in the write lane.
func warnOverlyCautious(r Request, f *Facts, inferred Operation) string {
	return "Tool " + quote(r.ID.String()) + said("marked read-only", inferred, f) + ", " + r.Variant.String() +
		" is overly cautious: call_tool_read is enough"
}

// warnInferred is the warning for a call in a less dangerous lane than the inferred one.
func warnInferred(r Request, f *Facts) string {
	return "Tool " + quote(r.ID.String()) + " carries no hints and seems to " + does(f.Inferred) + " (" + clip(f.InferredWhy) + "): " +
		VariantOf(f.Inferred).String() + " fits better than " + r.Variant.String()
}

// does returns an operation as a verb.
func does(o Operation) string {
	switch o {
	case Read:
		return "read only"
	case Write:
		return "write"
	}
	return "be destructive"
}

// said returns what a hint says and its source as text: the server, or the inference. It names the
// server for an overridden hint, too; the detail "source" of the problem tells these apart.
func said(what string, inferred Operation, f *Facts) string {
	if inferred == NoOperation {
		return " is " + what + " by server"
	}
	return " carries no hints and seems to " + does(inferred) + " (" + clip(f.InferredWhy) + ")"
}

// makes returns the effect of the arguments as text.
func makes(r *Request, a *Arguments) string {
	word := ""
	if a.Word != "" {
		word = " (" + clip(a.Word) + ")"
	}
	return "These arguments make " + quote(r.ID.String()) + " " + a.Operation.String() + word
}

func warnArguments(r *Request, a *Arguments) string {
	if r.OwnNames {
		return makes(r, a) + ", which its hints do not say"
	}
	return makes(r, a) + ": " + VariantOf(a.Operation).String() + " fits better than " + r.Variant.String()
}

func argumentMismatch(r *Request, a *Arguments) *problem.Problem {
	use := VariantOf(a.Operation)
	text, hint := makes(r, a)+", use "+use.String()+" instead of "+r.Variant.String(),
		"Call "+use.String()+` with the same name and arguments; intent.operation_type, if you give it, must then be "`+use.Operation().String()+`".`
	if r.OwnNames {
		text = makes(r, a) + ", and its hints do not say that it may be"
		hint = "Use arguments that do less, or " + use.String() + " of MCPProxy's own tools at /mcp."
	}
	if a.Unread {
		hint += " What is judged by " + a.Path + " could not be read to its end."
	}
	return problem.New(problem.ArgumentMismatch, text, hint).With("call_with", use.String()).With("lane_by", string(a.By)).With("argument", a.Path).With("word", clip(a.Word))
}

// outsideByArguments refuses a call whose arguments exceed the caller's lanes.
func outsideByArguments(r *Request, a *Arguments) *problem.Problem {
	return problem.New(problem.OutOfScope, makes(r, a)+", which is outside the scope of this caller",
		"Use arguments that do less. Only the user can widen the scope of an agent token.")
}

// hint is a hint that a variant may contradict.
type hint uint8

const (
	agrees hint = iota
	saysDestructive
	saysNotReadOnly
)

// mismatch is a contradicted hint; inferred is the inferred operation, if that is the reason.
type mismatch struct {
	of       hint
	inferred Operation
}

// hints are the texts per hint.
var hints = [...]struct {
	marked, isNot string // the hint of the tool, and what the tool may be instead
	use           Variant
}{
	saysDestructive: {"marked destructive", "does not delete", CallToolDestructive},
	saysNotReadOnly: {"marked as not read-only", "only reads", CallToolWrite},
}

func (m mismatch) text(r Request, f *Facts) string {
	h := hints[m.of]
	return "Tool " + quote(r.ID.String()) + said(h.marked, m.inferred, f) + ", use " + h.use.String() + " instead of " + r.Variant.String()
}

// warning is the text for a call that strict validation would refuse.
func (m mismatch) warning(r Request, f *Facts) string {
	return m.text(r, f) + " (let through since strict_server_validation is off)"
}

func (m mismatch) problem(r Request, f *Facts) *problem.Problem {
	h := hints[m.of]
	hint := "Call " + h.use.String() + ` with the same name and arguments; intent.operation_type, if you give it, must then be "` + h.use.Operation().String() + `".`
	if m.inferred != NoOperation {
		hint += " If the tool " + h.isNot + ", the user can say so with hint_overrides."
	}
	return problem.New(problem.ServerMismatch, m.text(r, f), hint).With("call_with", h.use.String()).With("source", m.source(f))
}

// source returns the origin of the hint: server, override or inference.
func (m mismatch) source(f *Facts) string {
	byServer := f.ServerHints.ReadOnly == tool.False
	if m.of == saysDestructive {
		byServer = f.ServerHints.Destructive == tool.True
	}
	switch {
	case m.inferred != NoOperation:
		return "inference"
	case byServer:
		return "server"
	}
	return "override"
}

func intentMismatch(v Variant, declared Operation, required bool) *problem.Problem {
	return problem.New(problem.IntentMismatch,
		"Intent mismatch: tool is "+v.String()+" but intent declares "+declared.String(),
		"If the call is a "+declared.String()+" operation, use "+VariantOf(declared).String()+
			"; if it is a "+v.Operation().String()+" operation, declare intent.operation_type \""+v.Operation().String()+
			"\""+unless(required, " or leave it out")+"."+whenUnsure(required)).
		With("tool_variant", v.String()).With("operation_type", declared.String())
}

func missingIntent(v Variant) *problem.Problem {
	return problem.New(problem.MissingIntent, "intent parameter is required for "+v.String(),
		`Add intent: {"operation_type": "`+v.Operation().String()+`"} to the parameters of `+v.String()+".")
}

func missingOperation(v Variant) *problem.Problem {
	return problem.New(problem.MissingOperationType, "intent.operation_type is required",
		`Set intent.operation_type to "`+v.Operation().String()+`", which is what `+v.String()+" is for.")
}

func invalidOperation(given string, required bool) *problem.Problem {
	return problem.New(problem.InvalidOperationType,
		"Invalid intent.operation_type "+quote(given)+": must be read, write, or destructive",
		"Declare the operation type of the variant you call: call_tool_read read, call_tool_write write, call_tool_destructive destructive."+whenUnsure(required)).
		With("parameter", "intent.operation_type").With("value", clip(given)).
		With("allowed", []string{"read", "write", "destructive"})
}

func invalidSensitivity(given string) *problem.Problem {
	return problem.New(problem.InvalidSensitivity,
		"Invalid intent.data_sensitivity "+quote(given)+": must be public, internal, private, or unknown",
		`Use "unknown" when you cannot tell, or leave it out.`).
		With("parameter", "intent.data_sensitivity").With("value", clip(given)).
		With("allowed", Sensitivities())
}

func reasonTooLong() *problem.Problem {
	return problem.New(problem.ReasonTooLong,
		"intent.reason exceeds maximum length of "+strconv.Itoa(MaxReason)+" characters",
		"Say it in a sentence or two, or leave it out.")
}

func malformedIntent(v Variant, why string, required bool) *problem.Problem {
	return problem.New(problem.InvalidArgs, why,
		`Give intent as an object such as {"operation_type": "`+v.Operation().String()+`", "data_sensitivity": "internal", "reason": "why"}`+
			unless(required, ", or leave it out")+".").
		With("parameter", "intent")
}

func invalidVariant() *problem.Problem {
	return problem.New(problem.InvalidParameter,
		"No calling tool given: must be call_tool_read, call_tool_write, or call_tool_destructive",
		"Use the call_with value that retrieve_tools gives for the tool.").
		With("parameter", "tool_variant").
		With("allowed", []string{CallToolRead.String(), CallToolWrite.String(), CallToolDestructive.String()})
}

func invalidName(name string, why error, nearest []string) *problem.Problem {
	reason := "the server part or the tool part is empty"
	switch {
	case name == "":
		reason = "it is missing"
	case why != nil:
		reason = why.Error()
	}
	example := "; must be server:tool, for example github:create_issue"
	if len(nearest) > 0 {
		example = "; must be server:tool." + didYouMean(nearest)
	}
	p := problem.New(problem.InvalidName,
		"Invalid name "+quote(name)+": "+reason+example,
		"Give as name exactly what retrieve_tools gives as name.").
		With("parameter", "name").With("value", clip(name)).Because(why)
	if len(nearest) > 0 {
		p.With("nearest", nearest)
	}
	return p
}

func outOfScope(r Request) *problem.Problem {
	lists := "retrieve_tools"
	if r.OwnNames {
		lists = mcp.ListTools
	}
	return problem.New(problem.OutOfScope,
		"Tool "+quote(r.ID.String())+" is outside the scope of this caller: use a tool that "+lists+" lists",
		"Only the user can widen the scope of an agent token.")
}

func serverNotFound(r Request, nearest []string) *problem.Problem {
	return notFound(r, problem.ServerNotFound, "Server "+quote(r.ID.Server), nearest)
}

func toolNotFound(r Request, nearest []string) *problem.Problem {
	return notFound(r, problem.ToolNotFound, "Tool "+quote(r.ID.String()), nearest)
}

func serverUnlisted(id tool.ID, why string) *problem.Problem {
	return problem.New(problem.ServerUnavailable,
		"Server "+quote(id.Server)+" has not told its tools yet, so "+quote(id.String())+" cannot be called: "+why,
		"Try again in a moment; if it stays so, ask the user to look at the server's log.").
		With("server", id.Server)
}

func loginNeeded(id tool.ID) *problem.Problem {
	return problem.New(problem.LoginNeeded,
		"Server "+quote(id.Server)+" asks for a login, so "+quote(id.String())+" cannot be called yet",
		"Only a person can log in: `mcpproxy upstream login "+clip(id.Server)+"`.").
		With("server", id.Server)
}

func notFound(r Request, code problem.Code, what string, nearest []string) *problem.Problem {
	if nearest == nil {
		nearest = []string{} // an empty list, not null, in the details
	}
	if r.OwnNames { // the nearest names have another form for this caller
		return problem.New(code, what+" not found.", "Use a name exactly as tools/list gives it.").With("nearest", nearest)
	}
	return problem.New(code, what+" not found."+didYouMean(nearest)+findTools,
		"Use the name exactly as retrieve_tools gives it.").
		With("nearest", nearest)
}

// What refusals tell a model to do.
const (
	findTools = " Use retrieve_tools to find the tools that exist."
	seeLocked = " Run retrieve_tools with include_disabled: true to see which tools are locked and why."
)

// ForUser removes from a refusal what only a model can do.
func ForUser(message string) string {
	return strings.TrimSuffix(strings.TrimSuffix(message, findTools), seeLocked)
}

func didYouMean(names []string) string {
	const most = 3
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, 0, most)
	for _, n := range names[:min(len(names), most)] {
		quoted = append(quoted, quote(n))
	}
	return " Did you mean " + strings.Join(quoted, " or ") + "?"
}

func toolLocked(r Request, s Status) *problem.Problem {
	more := seeLocked
	if r.OwnNames {
		more = ""
	}
	return problem.New(problem.ToolLocked,
		"Tool "+quote(r.ID.String())+" cannot be called, its status is "+s.String()+". "+s.Remedy()+more,
		"Trying again does not help before that has happened: use another tool, or tell the user what is needed.").
		With("status", s.String())
}

// quote quotes text of a caller.
func quote(s string) string { return "'" + clip(s) + "'" }

// clip shortens text of a caller and removes control characters, so that a message is always one readable
// line.
func clip(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, problem.ClipForDisplay(s, 200))
}
