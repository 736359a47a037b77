package policy

// JudgeMode is what is made of what a call does by its arguments. What is none of these
// counts as JudgeEnforce.
type JudgeMode string

// The modes.
const (
	JudgeOff     JudgeMode = "off"
	JudgeAdvise  JudgeMode = "advise"
	JudgeEnforce JudgeMode = "enforce"
)

// LaneBy is the kind of argument by which a call is judged.
type LaneBy string

// The kinds.
const (
	BySQL     LaneBy = "sql"
	ByShell   LaneBy = "shell"
	ByCLI     LaneBy = "cli"
	ByHTTP    LaneBy = "http"
	ByGraphQL LaneBy = "graphql"
	ByAction  LaneBy = "action"
)

// LaneByWords are all kinds.
func LaneByWords() []string {
	return []string{string(BySQL), string(ByShell), string(ByCLI), string(ByHTTP), string(ByGraphQL), string(ByAction)}
}

// Arguments is what a call does by its arguments, as far as anybody has looked. The zero
// value says that nothing was judged.
type Arguments struct {
	Operation Operation
	Word      string // that decided
	By        LaneBy
	Path      string // of the argument
	// Declared says that a person has said by which argument the tool is judged: only
	// then what is judged may loosen what the hints say.
	Declared bool
	// Unread says that the argument could not be read to its end: then it loosens nothing.
	Unread bool
}

// replaces reports whether what the arguments do takes the place of the hints.
func (a *Arguments) replaces() bool {
	return a.Declared && !a.Unread && a.Operation != NoOperation
}

// LaneOf is what a call counts as in a scope: what the tool does, and what its arguments
// do; or these alone, where a person has said that they decide.
func LaneOf(t Operation, a *Arguments) Operation {
	if a.replaces() {
		return a.Operation
	}
	return max(t, a.Operation)
}

// loosens reports whether the hints do not count, for a person has said that the
// arguments decide: always where that is enforced, else where these do not do more than
// the variant says.
func (a *Arguments) loosens(v Variant, mode JudgeMode) bool {
	if !a.replaces() || mode == JudgeOff {
		return false
	}
	return mode != JudgeAdvise || a.Operation <= v.Operation()
}
