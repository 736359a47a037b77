package policy

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
)

// whenUnsureText returns the last sentence of a refused intent: the alternative that needs no more knowledge.
func whenUnsureText(required bool) string {
	return ` When unsure: call_tool_destructive always passes (with intent.operation_type "destructive"` + textUnlessRequired(required, " or none") + ")."
}

// textUnlessRequired returns a text only if no intent is required.
func textUnlessRequired(required bool, text string) string {
	if required {
		return ""
	}
	return text
}

// IntentNotObject is the message for an intent that is not a JSON object.
const IntentNotObject = "intent must be an object with operation_type and, optionally, data_sensitivity and reason"

// CallToolNotFoundText is the answer to the former call_tool, which does not exist.
const CallToolNotFoundText = "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or call_tool_destructive with matching intent.operation_type. " +
	"See retrieve_tools for annotations and recommendations."

// FieldNotStringText is the message for a member of the intent, or a flat parameter, that is not a string.
func FieldNotStringText(field string) string { return field + " must be a string" }

// FieldsDifferText is the message for two different values of one field, such as intent.reason and
// intent_reason.
func FieldsDifferText(one, other string) string {
	return one + " and " + other + " are both given and differ: give one of them"
}

// overlyCautiousText is the warning for a read-only tool called in the write lane.
func overlyCautiousText(r CallRequest, f *Facts, inferred Operation) string {
	return "Tool " + r.toolText() + hintSourceText("marked read-only", inferred, f) + ", " + r.callToolText(r.CallTool) +
		" is overly cautious: " + r.callToolText(CallToolRead) + " is enough"
}

// callLaneBelowInferredText is the warning for a call in a less dangerous lane than the inferred one.
func callLaneBelowInferredText(r CallRequest, f *Facts) string {
	return "Tool " + r.toolText() + " carries no hints and seems to " + operationVerbText(f.Inferred) + " (" + clipToLine(f.InferenceReason) + "): " +
		r.callToolText(CallToolForOperation(f.Inferred)) + " fits better than " + r.callToolText(r.CallTool)
}

// operationVerbText returns an operation as a verb.
func operationVerbText(o Operation) string {
	switch o {
	case Read:
		return "read only"
	case Write:
		return "write"
	}
	return "be destructive"
}

// hintSourceText returns the text of a hint and its source: the server, or the inference. For an overridden hint it
// also names the server; the detail "source" of the problem distinguishes the two.
func hintSourceText(what string, inferred Operation, f *Facts) string {
	if inferred == NoOperation {
		return " is " + what + " by server"
	}
	return " carries no hints and seems to " + operationVerbText(inferred) + " (" + clipToLine(f.InferenceReason) + ")"
}

// callToolText returns the name of a call tool for a message to the caller. For the endpoint of a lane it returns the
// address.
func (r *CallRequest) callToolText(v CallToolVariant) string {
	if r.LaneAddress != "" {
		return r.laneAddressOf(v)
	}
	return v.String()
}

func (r *CallRequest) laneAddressOf(v CallToolVariant) string {
	return r.LaneAddress + "/" + v.Operation().String()
}

// otherLaneHint returns how to make the same call in another lane.
func (r *CallRequest) otherLaneHint(use CallToolVariant) string {
	if r.LaneAddress != "" {
		return "Call the tool of the same name at " + r.laneAddressOf(use) + ", with the same arguments."
	}
	return "Call " + use.String() + ` with the same name and arguments; intent.operation_type, if you give it, must then be "` + use.Operation().String() + `".`
}

// withOtherLane adds to a refusal the call tool that the caller should use, or the address of its lane.
func (r *CallRequest) withOtherLane(p *problem.Problem, use CallToolVariant) *problem.Problem {
	if r.LaneAddress != "" {
		return p.With("address", r.laneAddressOf(use))
	}
	return p.With("call_with", use.String())
}

// argumentEffectText returns the effect of the arguments as text.
func argumentEffectText(r *CallRequest, a *ArgumentEffect) string {
	word := ""
	if a.Word != "" {
		word = " (" + clipToLine(a.Word) + ")"
	}
	return "These arguments make " + r.toolText() + " " + a.Operation.String() + word
}

func argumentsWarningText(r *CallRequest, a *ArgumentEffect) string {
	if !r.ChoosesLane() {
		return argumentEffectText(r, a) + ", which its hints do not say"
	}
	return argumentEffectText(r, a) + ": " + r.callToolText(CallToolForOperation(a.Operation)) + " fits better than " + r.callToolText(r.CallTool)
}

func argumentMismatchProblem(r *CallRequest, a *ArgumentEffect) *problem.Problem {
	use := CallToolForOperation(a.Operation)
	text, hint := argumentEffectText(r, a)+", use "+r.callToolText(use)+" instead of "+r.callToolText(r.CallTool), r.otherLaneHint(use)
	if !r.ChoosesLane() {
		text = argumentEffectText(r, a) + ", and its hints do not say that it may be"
		hint = "Use arguments that do less, or " + use.String() + " of MCPProxy's own tools at /mcp."
	}
	if a.Unread {
		hint += " What is judged by " + a.Path + " could not be read to its end."
	}
	return r.withOtherLane(problem.New(problem.ArgumentMismatch, text, hint), use).With("lane_by", string(a.By)).With("argument", a.Path).With("word", clipToLine(a.Word))
}

// outOfScopeByArgumentsProblem refuses a call whose arguments exceed the caller's lanes.
func outOfScopeByArgumentsProblem(r *CallRequest, a *ArgumentEffect) *problem.Problem {
	return problem.New(problem.OutOfScope, argumentEffectText(r, a)+", which is outside the scope of this caller",
		"Use arguments that do less. Only the user can extend the scope of an agent token.")
}

// contradictableHint is a hint that a variant may contradict.
type contradictableHint uint8

const (
	noContradiction contradictableHint = iota
	declaredDestructive
	declaredNotReadOnly
)

// hintMismatch is a contradicted hint. inferred is the inferred operation if that is the reason.
type hintMismatch struct {
	of       contradictableHint
	inferred Operation
}

// hints are the texts per hint.
var hints = [...]struct {
	marked, isNot string // the hint of the tool, and the opposite of this hint
	use           CallToolVariant
}{
	declaredDestructive: {"marked destructive", "does not delete", CallToolDestructive},
	declaredNotReadOnly: {"marked as not read-only", "only reads", CallToolWrite},
}

func (m hintMismatch) text(r CallRequest, f *Facts) string {
	h := hints[m.of]
	return "Tool " + r.toolText() + hintSourceText(h.marked, m.inferred, f) + ", use " + r.callToolText(h.use) + " instead of " + r.callToolText(r.CallTool)
}

// warningText is the text for a call that strict validation would refuse.
func (m hintMismatch) warningText(r CallRequest, f *Facts) string {
	return m.text(r, f) + " (let through since strict_server_validation is off)"
}

func (m hintMismatch) problem(r CallRequest, f *Facts) *problem.Problem {
	h := hints[m.of]
	hint := r.otherLaneHint(h.use)
	if m.inferred != NoOperation {
		hint += " If the tool " + h.isNot + ", the user can say so with hint_overrides."
	}
	return r.withOtherLane(problem.New(problem.ServerMismatch, m.text(r, f), hint), h.use).With("source", m.hintSource(f))
}

// hintSource returns the origin of the hint: server, override or inference.
func (m hintMismatch) hintSource(f *Facts) string {
	byServer := f.ServerHints.ReadOnly == tool.False
	if m.of == declaredDestructive {
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

func intentMismatchProblem(v CallToolVariant, declared Operation, required bool) *problem.Problem {
	return problem.New(problem.IntentMismatch,
		"Intent mismatch: tool is "+v.String()+" but intent declares "+declared.String(),
		"If the call is a "+declared.String()+" operation, use "+CallToolForOperation(declared).String()+
			"; if it is a "+v.Operation().String()+" operation, declare intent.operation_type \""+v.Operation().String()+
			"\""+textUnlessRequired(required, " or leave it out")+"."+whenUnsureText(required)).
		With("tool_variant", v.String()).With("operation_type", declared.String())
}

func missingIntentProblem(r *CallRequest) *problem.Problem {
	v := r.CallTool
	if r.OwnNames {
		return problem.New(problem.MissingIntent, "intent parameter is required for "+v.String(),
			"This address accepts no intent. Use the address of a lane, such as /mcp/all/"+v.Operation().String()+", or "+v.String()+" at /mcp.")
	}
	return problem.New(problem.MissingIntent, "intent parameter is required for "+v.String(),
		`Add intent: {"operation_type": "`+v.Operation().String()+`"} to the parameters of `+v.String()+".")
}

func missingOperationProblem(v CallToolVariant) *problem.Problem {
	return problem.New(problem.MissingOperationType, "intent.operation_type is required",
		`Set intent.operation_type to "`+v.Operation().String()+`", which is what `+v.String()+" is for.")
}

func invalidOperationProblem(given string, required bool) *problem.Problem {
	return problem.New(problem.InvalidOperationType,
		"Invalid intent.operation_type "+quoteClipped(given)+": must be read, write, or destructive",
		"Declare the operation type of the variant you call: call_tool_read read, call_tool_write write, call_tool_destructive destructive."+whenUnsureText(required)).
		With("parameter", "intent.operation_type").With("value", clipToLine(given)).
		With("allowed", []string{"read", "write", "destructive"})
}

func invalidSensitivityProblem(given string) *problem.Problem {
	return problem.New(problem.InvalidSensitivity,
		"Invalid intent.data_sensitivity "+quoteClipped(given)+": must be public, internal, private, or unknown",
		`Use "unknown" when you cannot tell, or leave it out.`).
		With("parameter", "intent.data_sensitivity").With("value", clipToLine(given)).
		With("allowed", Sensitivities())
}

func reasonTooLongProblem() *problem.Problem {
	return problem.New(problem.ReasonTooLong,
		"intent.reason exceeds maximum length of "+strconv.Itoa(MaxReason)+" characters",
		"Give the reason in one or two sentences, or omit it.")
}

func malformedIntentProblem(v CallToolVariant, why string, required bool) *problem.Problem {
	return problem.New(problem.InvalidArgs, why,
		`Give intent as an object such as {"operation_type": "`+v.Operation().String()+`", "data_sensitivity": "internal", "reason": "why"}`+
			textUnlessRequired(required, ", or leave it out")+".").
		With("parameter", "intent")
}

func invalidCallToolProblem() *problem.Problem {
	return problem.New(problem.InvalidParameter,
		"No calling tool given: must be call_tool_read, call_tool_write, or call_tool_destructive",
		"Use the call_with value that retrieve_tools gives for the tool.").
		With("parameter", "tool_variant").
		With("allowed", []string{CallToolRead.String(), CallToolWrite.String(), CallToolDestructive.String()})
}

func invalidNameProblem(name string, why error, nearest []string) *problem.Problem {
	reason := "the server part or the tool part is empty"
	switch {
	case name == "":
		reason = "it is missing"
	case why != nil:
		reason = why.Error()
	}
	example := "; must be server:tool, for example github:create_issue"
	if len(nearest) > 0 {
		example = "; must be server:tool." + didYouMeanText(nearest)
	}
	p := problem.New(problem.InvalidName,
		"Invalid name "+quoteClipped(name)+": "+reason+example,
		"Use the name exactly as retrieve_tools returns it.").
		With("parameter", "name").With("value", clipToLine(name)).Because(why)
	if len(nearest) > 0 {
		p.With("nearest", nearest)
	}
	return p
}

func outOfScopeProblem(r CallRequest) *problem.Problem {
	lists := "retrieve_tools"
	if r.OwnNames {
		lists = mcp.ListTools
	}
	return problem.New(problem.OutOfScope,
		"Tool "+r.toolText()+" is outside the scope of this caller: use a tool that "+lists+" lists",
		"Only the user can extend the scope of an agent token.")
}

func serverNotFoundProblem(r CallRequest, nearest []string) *problem.Problem {
	return notFoundProblem(r, problem.ServerNotFound, "Server "+quoteClipped(r.ID.Server), nearest)
}

func toolNotFoundProblem(r CallRequest, nearest []string) *problem.Problem {
	return notFoundProblem(r, problem.ToolNotFound, "Tool "+r.toolText(), nearest)
}

func serverUnlistedProblem(id tool.ID, why string) *problem.Problem {
	return problem.New(problem.ServerUnavailable,
		"Server "+quoteClipped(id.Server)+" has not listed its tools yet, so "+quoteClipped(id.String())+" cannot be called: "+why,
		"Try again in a moment. If this persists, ask the user to check the server's log.").
		With("server", id.Server)
}

func loginNeededProblem(id tool.ID) *problem.Problem {
	return problem.New(problem.LoginNeeded,
		"Server "+quoteClipped(id.Server)+" requires a login, so "+quoteClipped(id.String())+" cannot be called yet",
		"Only the user can log in: `mcpproxy login "+clipToLine(id.Server)+"`.").
		With("server", id.Server)
}

func notFoundProblem(r CallRequest, code problem.Code, what string, nearest []string) *problem.Problem {
	if nearest == nil {
		nearest = []string{} // the details must contain an empty list, not null
	}
	if r.OwnNames { // the nearest names have another form for this caller
		return problem.New(code, what+" not found.", "Use a name exactly as tools/list gives it.").With("nearest", nearest)
	}
	return problem.New(code, what+" not found."+didYouMeanText(nearest)+findTools,
		"Use the name exactly as retrieve_tools gives it.").
		With("nearest", nearest)
}

// The instructions to a model in refusals.
const (
	findTools = " Use retrieve_tools to find the tools that exist."
	seeLocked = " Run retrieve_tools with include_disabled: true to see which tools are locked and why."
)

// WithoutModelAdvice removes from a refusal the advice that only a model can follow.
func WithoutModelAdvice(message string) string {
	return strings.TrimSuffix(strings.TrimSuffix(message, findTools), seeLocked)
}

func didYouMeanText(names []string) string {
	const most = 3
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, 0, most)
	for _, n := range names[:min(len(names), most)] {
		quoted = append(quoted, quoteClipped(n))
	}
	return " Did you mean " + strings.Join(quoted, " or ") + "?"
}

func toolLockedProblem(r CallRequest, s ToolStatus, blocked bool) *problem.Problem {
	more, remedy := seeLocked, s.Remedy()
	if r.OwnNames {
		more = ""
	}
	blocked = blocked && s == PendingApproval // the other reasons come first
	if blocked {
		remedy = blockedRemedy
	}
	p := problem.New(problem.ToolLocked,
		"Tool "+r.toolText()+" cannot be called: its status is "+s.String()+". "+remedy+more,
		"Do not repeat the call before that: use another tool, or tell the user what is needed.").
		With("status", s.String())
	if blocked {
		p = p.With("blocked", true)
	}
	return p
}

// quoteClipped quotes text of a caller.
func quoteClipped(s string) string { return "'" + clipToLine(s) + "'" }

// clipToLine shortens text of a caller and removes control characters, so that a message is always one readable
// line.
func clipToLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, problem.ClipForDisplay(s, 200))
}
