package tool

// Tri is a statement with three states. The zero value is "not said".
type Tri int8

// The states of a Tri.
const (
	Unsaid Tri = iota
	False
	True
)

// TriOf gives True or False.
func TriOf(b bool) Tri {
	if b {
		return True
	}
	return False
}

// Hints are a tool's MCP annotations as far as MCP names them. Title is empty
// when not said. Everything else a server puts into annotations stays in
// Definition.Raw.
type Hints struct {
	Title       string
	ReadOnly    Tri
	Destructive Tri
	Idempotent  Tri
	OpenWorld   Tri
}

// Over gives h where h says something, else base: the override rule.
func (h Hints) Over(base Hints) Hints {
	if h.Title == "" {
		h.Title = base.Title
	}
	h.ReadOnly = over(h.ReadOnly, base.ReadOnly)
	h.Destructive = over(h.Destructive, base.Destructive)
	h.Idempotent = over(h.Idempotent, base.Idempotent)
	h.OpenWorld = over(h.OpenWorld, base.OpenWorld)
	return h
}

func over(t, base Tri) Tri {
	if t == Unsaid {
		return base
	}
	return t
}
