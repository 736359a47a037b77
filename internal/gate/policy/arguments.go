package policy

// ArgumentEffectMode determines how the effect of a call's arguments is used. Unknown values count as
// ArgumentsEnforce.
type ArgumentEffectMode string

// The modes.
const (
	ArgumentsOff     ArgumentEffectMode = "off"
	ArgumentsAdvise  ArgumentEffectMode = "advise"
	ArgumentsEnforce ArgumentEffectMode = "enforce"
)

// ArgumentKind is the kind of argument that determines the lane of a call.
type ArgumentKind string

// The kinds.
const (
	BySQL     ArgumentKind = "sql"
	ByShell   ArgumentKind = "shell"
	ByCLI     ArgumentKind = "cli"
	ByHTTP    ArgumentKind = "http"
	ByGraphQL ArgumentKind = "graphql"
	ByAction  ArgumentKind = "action"
)

// ArgumentKindNames returns all kinds.
func ArgumentKindNames() []string {
	return []string{string(BySQL), string(ByShell), string(ByCLI), string(ByHTTP), string(ByGraphQL), string(ByAction)}
}

// ArgumentEffect is the effect of a call by its arguments. The zero value means that they were not classified.
type ArgumentEffect struct {
	Operation Operation
	Word      string // the word in the argument that determined the effect
	By        ArgumentKind
	Path      string // path of the argument
	// Declared reports whether a user has configured the argument that decides. Only then may the arguments relax the
	// hints.
	Declared bool
	// Unread reports whether the argument could not be parsed completely. If so, it relaxes nothing.
	Unread bool
}

// replacesHints reports whether the arguments replace the hints.
func (a *ArgumentEffect) replacesHints() bool {
	return a.Declared && !a.Unread && a.Operation != NoOperation
}

// LaneWithArguments returns the lane of a call for scopes: the more dangerous lane of the tool and the arguments. If
// a user has configured that the arguments decide, only the arguments count.
func LaneWithArguments(t Operation, a *ArgumentEffect) Operation {
	if a.replacesHints() {
		return a.Operation
	}
	return max(t, a.Operation)
}

// overridesHintsFor reports whether the hints are ignored because a user has configured that the arguments decide. In
// mode enforce they are always ignored, otherwise only if the arguments do not exceed the variant.
func (a *ArgumentEffect) overridesHintsFor(v CallToolVariant, mode ArgumentEffectMode) bool {
	if !a.replacesHints() || mode == ArgumentsOff {
		return false
	}
	return mode != ArgumentsAdvise || a.Operation <= v.Operation()
}
