package policy

// JudgeMode says how the effect of a call's arguments is used. Unknown values count as JudgeEnforce.
type JudgeMode string

// The modes.
const (
	JudgeOff     JudgeMode = "off"
	JudgeAdvise  JudgeMode = "advise"
	JudgeEnforce JudgeMode = "enforce"
)

// LaneBy is the kind of argument that determines the lane of a call.
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

// LaneByWords returns all kinds.
func LaneByWords() []string {
	return []string{string(BySQL), string(ByShell), string(ByCLI), string(ByHTTP), string(ByGraphQL), string(ByAction)}
}

// Arguments is the effect of a call by its arguments. The zero value says that they were not classified.
type Arguments struct {
	Operation Operation
	Word      string // the word that decided
	By        LaneBy
	Path      string // of the argument
	// Declared says that a user has configured which argument decides: only then may the arguments relax
	// the hints.
	Declared bool
	// Unread says that the argument could not be parsed completely: then it relaxes nothing.
	Unread bool
}

// replaces reports whether the arguments replace the hints.
func (a *Arguments) replaces() bool {
	return a.Declared && !a.Unread && a.Operation != NoOperation
}

// LaneOf returns the lane of a call for scopes: the worse of tool and arguments, or only the arguments if
// a user has configured that they decide.
func LaneOf(t Operation, a *Arguments) Operation {
	if a.replaces() {
		return a.Operation
	}
	return max(t, a.Operation)
}

// loosens reports whether the hints are ignored because a user has configured that the arguments decide:
// always in mode enforce, otherwise if the arguments do not exceed the variant.
func (a *Arguments) loosens(v Variant, mode JudgeMode) bool {
	if !a.replaces() || mode == JudgeOff {
		return false
	}
	return mode != JudgeAdvise || a.Operation <= v.Operation()
}
