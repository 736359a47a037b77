package ops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// Tool returns one tool. If it does not exist, it returns SERVER_NOT_FOUND or TOOL_NOT_FOUND with similar names.
func (g *Gateway) Tool(_ context.Context, _ Caller, in ToolRef) (ToolView, error) {
	t, err := g.findTool(tool.ID(in))
	if err != nil {
		return ToolView{}, err
	}
	return g.toolViewWithDecisions(t), nil
}

// toToolView returns the view of a tool without the decisions about it. score is the score of a search, or 0.
func toToolView(t *catalog.Tool, score float64) ToolView {
	v := ToolView{
		Name: t.ID.String(), Server: t.ID.Server, Tool: t.ID.Tool, Title: t.Title,
		Description: t.Shown().Description, ShadowedBy: t.ShadowedBy(), InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
		Annotations: t.Effective.AppendJSON(nil), CallWith: t.CallWith.String(), Status: displayedToolStatus(t), Deprecated: t.IsDeprecated(), Score: score,
	}
	if v.Description != t.Description {
		v.DeclaredDescription = t.Description
	}
	if s := t.Settings(); s != nil {
		v.Settings = &ToolSettings{s.Alias, s.Description, s.AddDescription, s.Always}
	}
	if t.Effective != t.Hints {
		v.DeclaredAnnotations = t.Hints.AppendJSON(nil)
	}
	if in := t.InferredOperation(); in.Operation != policy.NoOperation {
		v.InferredOperation, v.InferredReason = in.Operation.String(), in.Reason
	}
	if v.LaneBy = laneArgument(t); v.LaneBy != "" {
		v.LaneDeclared = t.ArgumentRule().Declared
	}
	return v
}

// toolViewWithDecisions returns the view of a tool with the decisions about it.
func (g *Gateway) toolViewWithDecisions(t *catalog.Tool) ToolView {
	v, e := toToolView(t, 0), g.Book.ServerView(t.ID.Server).ToolDecisions(t.ID.Tool)
	v.Trust = &Trust{Fingerprint: t.Fingerprint().String(), Reason: approval.Evaluate(approval.EvaluationRules{}, e, t.ApprovalCandidate()).Why}
	if e.Pin != nil {
		v.Trust.Approved, v.Trust.ApprovedBy, v.Trust.ApprovedAt = e.Pin.Fingerprint.String(), e.Pin.By, &e.Pin.At
	}
	if e.Off != nil {
		v.Trust.OffBy, v.Trust.OffAt = e.Off.By, &e.Off.At
	}
	return v
}

// ChangeTool changes the user's name and texts for a tool in the configuration. Settings of a tool that the server no
// longer lists can still be removed.
func (a *Admin) ChangeTool(ctx context.Context, c Caller, in ToolChange) (ToolView, error) {
	id := tool.ID(in.ToolRef)
	keys := mapSlice(in.Changes, func(one config.ToolSettingChange) string { return one.Key })
	err := a.runUserAction(c, newActionRecord(c, activity.ConfigChange, id, "set_tool", strings.Join(keys, ", ")), func() error {
		if err := a.checkToolChange(id, in); err != nil {
			return err
		}
		return a.editor.SetToolSettings(a.configConfirmFunc(ctx), id.Server, id.Tool, in.Changes)
	})
	if err != nil {
		return ToolView{}, err
	}
	if t := a.Catalog.Current().Tool(id); t != nil {
		return a.toolViewWithDecisions(t), nil
	}
	return ToolView{Name: id.String(), Server: id.Server, Tool: id.Tool}, nil
}

// checkToolChange returns an error if the server has no such tool, or if an alias is the name of another one.
func (a *Admin) checkToolChange(id tool.ID, in ToolChange) error {
	switch proposed, err := a.isProposed(id.Server); {
	case err != nil:
		return err
	case proposed:
		return onlyProposedError(id.Server)
	}
	if a.Config().Server(id.Server).ToolSettingsOf(id.Tool) == nil {
		if _, err := a.findTool(id); err != nil {
			return err
		}
	}
	for _, one := range in.Changes {
		alias, _ := wirejson.String(one.Value)
		if other := (tool.ID{Server: id.Server, Tool: alias}); one.Key == "alias" && other != id && a.Catalog.Current().Tool(other) != nil {
			return problem.Newf(problem.Conflict, "The server has a tool with the name '%s'.", problem.ClipName(alias)).
				WithHint("Choose another alias.").With("parameter", "alias")
		}
	}
	return nil
}

// Unhinted counts the tools of a server that would benefit from enforcing inferred hints.
type Unhinted struct {
	Server string `json:"server"`
	Tools  int    `json:"tools" doc:"The number of callable tools that declare neither readOnlyHint nor destructiveHint."`
	Reads  int    `json:"reads" doc:"The number of these tools that are inferred to be reads."`
}

// countUnhintedTools counts a server's usable tools without hints, and how many of them look like reads. It returns nil
// if the user has configured infer_hints or if no tool would become a read.
func countUnhintedTools(s *catalog.Server, c *config.Server) *Unhinted {
	if c == nil || c.InferHints != "" {
		return nil
	}
	u := Unhinted{Server: s.Name}
	for _, t := range s.Tools {
		if t.InferMode != policy.InferAdvise || displayedToolStatus(t) != "" {
			continue
		}
		switch t.InferredOperation().Operation {
		case policy.NoOperation:
			continue
		case policy.Read:
			u.Reads++
		}
		u.Tools++
	}
	if u.Reads == 0 {
		return nil
	}
	return &u
}

// listServersWithUnhintedTools returns the servers that would benefit from enforcing inferred hints, with the largest
// benefit first.
func listServersWithUnhintedTools(servers []*catalog.Server, cfg *config.Config) (all []Unhinted) {
	for _, s := range servers {
		if u := countUnhintedTools(s, cfg.Server(s.Name)); u != nil {
			all = append(all, *u)
		}
	}
	slices.SortStableFunc(all, func(a, b Unhinted) int { return cmp.Compare(b.Reads, a.Reads) })
	return all
}

// UsableServer is a server whose tools a caller may use.
type UsableServer struct {
	Name   string
	Listed bool // whether its tools are known
	Tools  int  // number of callable tools
}

// UsableServers returns the enabled and approved servers in the caller's scope, sorted by name. It also returns a
// channel that is closed when they may have changed.
func (g *Gateway) UsableServers(c *auth.Caller) (all []UsableServer, changed <-chan struct{}) {
	snapshot := g.Catalog.Current().ScopedTo(c.Scope())
	for _, s := range snapshot.Servers() {
		if s.Enabled && !s.Quarantined {
			all = append(all, UsableServer{s.Name, s.Listed, s.Callable})
		}
	}
	return all, snapshot.ReplacedChan()
}

// CallsPerServer returns the number of calls of each server in the last 30 days, as of the last count. It returns nil
// before the first count. It also returns nil for a caller with a limited scope, because most of the calls are from
// other clients. Callers must not modify the map.
func (g *Gateway) CallsPerServer(c *auth.Caller) map[string]int64 {
	if calls := g.calls.Load(); calls != nil && !c.Scope().IsBounded() {
		return *calls
	}
	return nil
}

// Limits of a signature. Parts above a limit are replaced with "…". The detail level full contains the whole schema.
const (
	maxSignature      = 2000 // bytes; further parameters are left out
	maxBriefSignature = 200  // bytes; a brief signature leaves out further optional parameters
	maxEnum           = 12   // values of an enum
	maxLiteral        = 60   // bytes of one enum value or default value
	maxMembers        = 16   // members of a nested object
	maxNesting        = 4    // levels of nested objects, arrays, unions and references
	maxSteps          = 1000 // visited schemas, as a protection against hostile schemas
	maxDefinition     = 256 << 10
)

// formatToolSignature describes a tool in one line. It lists parameters with their types, required ones first. Optional
// parameters have a "?", enums list their values, default values follow "=", objects are written as {…} and arrays as
// T[]. The detail level compact contains the signature instead of the schema.
func formatToolSignature(name string, inputSchema json.RawMessage) string {
	return formatLimitedToolSignature(name, inputSchema, maxSignature)
}

// formatLimitedToolSignature is like formatToolSignature, but leaves out optional parameters after most bytes.
func formatLimitedToolSignature(name string, inputSchema json.RawMessage, most int) string {
	if len(inputSchema) == 0 {
		return name + "()"
	}
	if len(inputSchema) > maxDefinition || wirejson.Check(inputSchema, wirejson.Limits{}) != nil || wirejson.Kind(inputSchema) != '{' {
		return name + "(…)"
	}
	w := toolSignatureWriter{root: inputSchema, most: most}
	w.out = append(w.out, name...)
	w.out = append(w.out, '(')
	w.writeProperties(w.resolveReferences(inputSchema, 0), 0)
	return string(append(w.out, ')'))
}

// toolSignatureWriter writes the signature of a tool.
type toolSignatureWriter struct {
	root  json.RawMessage // schema in which references are resolved
	out   []byte
	most  int // number of bytes after which only required parameters are written
	steps int
}

// schemaProperty is a property of an object.
type schemaProperty struct {
	name     string
	schema   json.RawMessage
	required bool
}

// listProperties returns the properties of an object in the server's order, required ones first.
func listProperties(schema json.RawMessage) []schemaProperty {
	var required []string
	_ = wirejson.EachElement(wirejson.Find(schema, "required"), func(value []byte) error {
		if s, ok := wirejson.String(value); ok {
			required = append(required, s)
		}
		return nil
	})
	var first, then []schemaProperty
	_ = wirejson.EachMember(wirejson.Find(schema, "properties"), func(name, value []byte) error {
		p := schemaProperty{string(name), value, slices.Contains(required, string(name))}
		if p.required {
			first = append(first, p)
		} else {
			then = append(then, p)
		}
		return nil
	})
	return append(first, then...)
}

// writeProperties writes the properties of an object.
func (w *toolSignatureWriter) writeProperties(schema json.RawMessage, depth int) {
	for i, p := range listProperties(schema) {
		if i > 0 {
			w.out = append(w.out, ", "...)
		}
		if len(w.out) > maxSignature || len(w.out) > w.most && !p.required || depth > 0 && i == maxMembers {
			w.out = append(w.out, "…"...)
			return
		}
		w.writePropertyName(p.name)
		if !p.required {
			w.out = append(w.out, '?')
		}
		w.out = append(w.out, ": "...)
		s := w.resolveReferences(p.schema, depth)
		w.writeType(s, depth)
		if value := wirejson.Find(s, "default"); value != nil {
			w.out = append(w.out, " = "...)
			w.writeLiteral(value)
		}
	}
}

// writePropertyName writes the name of a property, quoted where it is ambiguous.
func (w *toolSignatureWriter) writePropertyName(name string) {
	for _, r := range name {
		if r > '~' || !strings.ContainsRune("_-$.", r) && (r < '0' || '9' < r && r < 'A' || 'Z' < r && r < 'a' || 'z' < r) {
			w.out = wirejson.AppendString(w.out, problem.ClipForDisplay(name, maxLiteral))
			return
		}
	}
	w.out = append(w.out, problem.ClipForDisplay(name, maxLiteral)...)
}

func (w *toolSignatureWriter) writeLiteral(value json.RawMessage) {
	var b bytes.Buffer
	if len(value) > 4*maxLiteral || json.Compact(&b, value) != nil || b.Len() > maxLiteral {
		w.out = append(w.out, "…"...)
		return
	}
	w.out = append(w.out, b.Bytes()...)
}

// resolveReferences follows local references and a single allOf.
func (w *toolSignatureWriter) resolveReferences(schema json.RawMessage, depth int) json.RawMessage {
	for ; depth < 2*maxNesting; depth++ {
		if all := firstElements(wirejson.Find(schema, "allOf"), 2); len(all) == 1 {
			schema = all[0]
			continue
		}
		ref, ok := wirejson.String(wirejson.Find(schema, "$ref"))
		path, local := strings.CutPrefix(ref, "#/")
		if !ok || !local {
			return schema
		}
		found := w.root
		for step := range strings.SplitSeq(path, "/") {
			found = wirejson.Find(found, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		}
		if found == nil {
			return schema
		}
		schema = found
	}
	return nil // the references form a cycle
}

// firstElements returns at most n elements of an array.
func firstElements(array json.RawMessage, n int) (out []json.RawMessage) {
	if wirejson.Kind(array) != '[' {
		return nil
	}
	_ = wirejson.EachElement(array, func(value []byte) error {
		if len(out) < n {
			out = append(out, value)
		}
		return nil
	})
	return out
}

// writeType writes the type that a schema describes.
func (w *toolSignatureWriter) writeType(schema json.RawMessage, depth int) {
	if value := wirejson.Find(schema, "const"); value != nil {
		w.writeLiteral(value)
		return
	}
	if values := firstElements(wirejson.Find(schema, "enum"), maxEnum+1); len(values) > 0 {
		w.writeEnum(values)
		return
	}
	if w.steps++; w.steps > maxSteps || len(w.out) > maxSignature || depth >= maxNesting {
		w.out = append(w.out, "…"...)
		return
	}
	for _, keyword := range [...]string{"anyOf", "oneOf"} {
		if choices := firstElements(wirejson.Find(schema, keyword), maxEnum+1); len(choices) > 0 {
			w.writeUnion(choices, depth)
			return
		}
	}
	kinds := schemaTypes(schema)
	for i, kind := range kinds {
		if i > 0 {
			w.out = append(w.out, '|')
		}
		w.writeNamedType(schema, kind, depth)
	}
}

// schemaTypes returns the types that a schema names or implies.
func schemaTypes(schema json.RawMessage) (kinds []string) {
	named := wirejson.Find(schema, "type")
	if one, ok := wirejson.String(named); ok {
		return []string{one}
	}
	for _, value := range firstElements(named, 8) {
		if kind, ok := wirejson.String(value); ok {
			kinds = append(kinds, kind)
		}
	}
	switch {
	case len(kinds) > 0:
		return kinds
	case wirejson.Find(schema, "properties") != nil:
		return []string{"object"}
	case wirejson.Find(schema, "items") != nil:
		return []string{"array"}
	}
	return []string{"any"}
}

func (w *toolSignatureWriter) writeNamedType(schema json.RawMessage, kind string, depth int) {
	switch kind {
	case "array":
		w.writeArray(wirejson.Find(schema, "items"), depth)
	case "object":
		w.writeObject(schema, depth)
	default:
		w.out = append(w.out, problem.ClipForDisplay(kind, maxLiteral)...)
	}
}

func (w *toolSignatureWriter) writeArray(items json.RawMessage, depth int) {
	if wirejson.Kind(items) != '{' {
		w.out = append(w.out, "any[]"...)
		return
	}
	start := len(w.out)
	w.writeType(w.resolveReferences(items, depth+1), depth+1)
	if item := w.out[start:]; bytes.IndexByte(item, '|') >= 0 && item[0] != '{' {
		w.out = append(slices.Insert(w.out, start, '('), ')')
	}
	w.out = append(w.out, "[]"...)
}

func (w *toolSignatureWriter) writeObject(schema json.RawMessage, depth int) {
	if wirejson.Kind(wirejson.Find(schema, "properties")) == '{' {
		w.out = append(w.out, '{')
		w.writeProperties(schema, depth+1)
		w.out = append(w.out, '}')
		return
	}
	if values := wirejson.Find(schema, "additionalProperties"); wirejson.Kind(values) == '{' {
		w.out = append(w.out, "{[key]: "...)
		w.writeType(w.resolveReferences(values, depth+1), depth+1)
		w.out = append(w.out, '}')
		return
	}
	w.out = append(w.out, "object"...)
}

func (w *toolSignatureWriter) writeEnum(values []json.RawMessage) {
	for i, value := range values {
		if i > 0 {
			w.out = append(w.out, '|')
		}
		if i == maxEnum {
			w.out = append(w.out, "…"...)
			return
		}
		w.writeLiteral(value)
	}
}

// writeUnion writes the distinct choices of a union.
func (w *toolSignatureWriter) writeUnion(choices []json.RawMessage, depth int) {
	var seen []string
	for _, choice := range choices {
		start := len(w.out)
		if len(seen) > 0 {
			w.out = append(w.out, '|')
		}
		from := len(w.out)
		w.writeType(w.resolveReferences(choice, depth+1), depth+1)
		if text := string(w.out[from:]); slices.Contains(seen, text) {
			w.out = w.out[:start]
		} else {
			seen = append(seen, text)
		}
	}
}
