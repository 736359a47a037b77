package ops

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/registry"
	"mcpproxy/internal/upstream/sandbox"
)

// RegistryQuery is a search in the registries.
type RegistryQuery struct {
	Query    string `query:"q" required:"true" doc:"A part of the name of a server, from 3 to 100 characters."`
	Registry string `query:"registry" doc:"The name of a registry. Default: all registries."`
}

// RegistryEntryRef identifies a server in a registry.
type RegistryEntryRef struct {
	Name     string `query:"name" required:"true" doc:"The name of the server in the registry, such as io.github.user/weather."`
	Version  string `query:"version" doc:"The version. Default: the latest one."`
	Registry string `query:"registry" doc:"The name of a registry. Default: the first one that has the server, in the order of their names."`
}

// AddFromRegistryRequest adds a server from a registry.
type AddFromRegistryRequest struct {
	Entry    string   `json:"entry" required:"true" doc:"The name of the server in the registry."`
	Version  string   `json:"version" doc:"The version. Default: the latest one."`
	Registry string   `json:"registry" doc:"The name of a registry. Default: the first one that has the server."`
	Option   string   `json:"option" doc:"The way to start or reach the server. Default: the first one that can be used."`
	Name     string   `json:"name" doc:"The name of the new server. Default: the last part of entry."`
	Values   []string `json:"values" doc:"What the option asks for, each as NAME=VALUE. Secrets are stored in the keyring."`
}

// Example returns an example for the OpenAPI document.
func (AddFromRegistryRequest) Example() string {
	return `{"entry": "io.github.user/weather", "values": ["API_KEY=…"]}`
}

// RegistryEntries lists servers in registries.
type RegistryEntries struct {
	Servers    []RegistryEntry  `json:"servers"`
	Registries []RegistryAnswer `json:"registries" doc:"How each registry answered."`
}

// RegistryAnswer is how a registry answered.
type RegistryAnswer struct {
	Name       string     `json:"name"`
	URL        string     `json:"url"`
	FetchedAt  *time.Time `json:"fetched_at,omitempty" doc:"When the registry gave this answer. Absent if there is none."`
	Problem    string     `json:"problem,omitempty" doc:"Why the registry was not asked. The servers are then those of a stored answer."`
	More       bool       `json:"more,omitempty" doc:"Whether the registry has more servers: use a longer query."`
	Unreadable int        `json:"unreadable,omitempty" doc:"The number of servers that were left out, because they exceed a limit or have a wrong type."`
}

// RegistryEntry is a server in a registry. Its texts are those of its publisher: untrusted, without control characters.
type RegistryEntry struct {
	Registry      string            `json:"registry"`
	Name          string            `json:"name"`
	Title         string            `json:"title,omitempty"`
	Description   string            `json:"description,omitempty"`
	Version       string            `json:"version"`
	Status        string            `json:"status,omitempty" doc:"active, deprecated or deleted. Absent if the registry does not tell."`
	StatusMessage string            `json:"status_message,omitempty"`
	Published     *time.Time        `json:"published,omitempty"`
	Website       string            `json:"website,omitempty"`
	Repository    string            `json:"repository,omitempty"`
	Options       []registry.Option `json:"options" doc:"The ways to start or reach the server."`
	ScanResult
}

// AddedFromRegistry is a server that was added from a registry. It waits for review and has not been started.
type AddedFromRegistry struct {
	Server  ServerView    `json:"server"`
	Entry   RegistryEntry `json:"entry"`
	Option  string        `json:"option"`
	Launch  LaunchView    `json:"launch"`
	Env     []string      `json:"env,omitempty" doc:"The environment variables as NAME=VALUE, with references to secrets."`
	Headers []string      `json:"headers,omitempty" doc:"The HTTP headers as NAME: VALUE, with references to secrets."`
	Stored  []string      `json:"stored,omitempty" doc:"The names of the secrets that were stored."`
	Missing []string      `json:"missing,omitempty" doc:"The names of the secrets that the server needs and that have no value yet."`
	Notes   []string      `json:"notes,omitempty"`
}

// RegistryOperations are the operations on registries.
type RegistryOperations struct {
	admin   *Admin
	secrets *SecretOperations
	dir     string // of stored answers
}

// NewRegistryOperations returns RegistryOperations that store the answers of registries in dir.
func NewRegistryOperations(a *Admin, s *SecretOperations, dir string) *RegistryOperations {
	return &RegistryOperations{a, s, dir}
}

// registries returns the names and addresses of the wanted registry, or of all.
func (r *RegistryOperations) registries(wanted string) (names []string, all map[string]string, err error) {
	if all = r.admin.Config().Registries; len(all) == 0 {
		all = map[string]string{"official": registry.Official}
	}
	names = slices.Sorted(maps.Keys(all))
	if wanted == "" {
		return names, all, nil
	}
	if all[wanted] == "" {
		return nil, nil, problem.Newf(problem.NotFound, "There is no registry '%s'.", problem.ClipName(wanted)).WithHint("The registries are: " + strings.Join(names, ", ") + ".")
	}
	return []string{wanted}, all, nil
}

func (r *RegistryOperations) client(url string) registry.Client {
	return registry.Client{URL: url, Dir: r.dir, Now: time.Now}
}

// Search returns the latest versions of the servers whose names contain the query.
func (r *RegistryOperations) Search(ctx context.Context, _ Caller, in RegistryQuery) (RegistryEntries, error) {
	out := RegistryEntries{Servers: []RegistryEntry{}, Registries: []RegistryAnswer{}}
	names, all, err := r.registries(in.Registry)
	if err != nil {
		return out, err
	}
	answers, failed := make([]registry.Answer, len(names)), make([]error, len(names))
	var done sync.WaitGroup
	for i, name := range names {
		done.Go(func() { answers[i], failed[i] = r.client(all[name]).Search(ctx, in.Query) })
	}
	done.Wait()
	for i, name := range names {
		out.Registries = append(out.Registries, toRegistryAnswer(name, all[name], answers[i], failed[i]))
		for _, e := range answers[i].Entries {
			out.Servers = append(out.Servers, toRegistryEntry(name, e))
		}
	}
	if err := cmp.Or(failed...); err != nil && len(names) == 1 {
		return out, registryProblem(names[0], err)
	}
	return out, nil
}

// Show returns one version of a server in a registry.
func (r *RegistryOperations) Show(ctx context.Context, _ Caller, in RegistryEntryRef) (RegistryEntries, error) {
	name, url, a, err := r.find(ctx, in)
	if err != nil {
		return RegistryEntries{}, err
	}
	return RegistryEntries{[]RegistryEntry{toRegistryEntry(name, a.Entries[0])}, []RegistryAnswer{toRegistryAnswer(name, url, a, nil)}}, nil
}

// find returns the entry of the first registry that has it. If a registry does not answer, the next one is not asked,
// because its entry of the same name can have another publisher.
func (r *RegistryOperations) find(ctx context.Context, in RegistryEntryRef) (name, url string, a registry.Answer, err error) {
	names, all, err := r.registries(in.Registry)
	if err != nil {
		return "", "", a, err
	}
	for _, name = range names {
		if a, err = r.client(all[name]).Get(ctx, in.Name, in.Version); err == nil {
			return name, all[name], a, nil
		}
		if !errors.Is(err, registry.ErrNotFound) {
			break
		}
	}
	return "", "", a, registryProblem(name, err)
}

// registryProblem returns the problem for an error of the registry with a name.
func registryProblem(name string, err error) error {
	if errors.Is(err, registry.ErrNotFound) {
		return problem.New(problem.NotFound, "No registry has a server of that name and version.", "Run `mcpproxy registry search`.")
	}
	if input := (registry.InputError)(""); errors.As(err, &input) {
		return problem.Newf(problem.InvalidParameter, "Invalid search or name: %s.", input).WithHint("To find a name, run `mcpproxy registry search`.")
	}
	return problem.Newf(problem.UpstreamError, "The registry '%s' cannot be used: %s.", problem.ClipName(name), problem.ClipForDisplay(registry.Clean(err.Error()), 400)).
		WithHint("Try again later, check `registries` in the configuration, or name another registry with `--from`.")
}

// Add adds a server from a registry. It waits for review: nothing of it is started or contacted before.
func (r *RegistryOperations) Add(ctx context.Context, c Caller, in AddFromRegistryRequest) (out AddedFromRegistry, err error) {
	if !c.IsUser() {
		return out, r.admin.addServerOfUser(ctx, c, config.NamedEdit{Name: problem.ClipName(in.Name)})
	}
	from, _, a, err := r.find(ctx, RegistryEntryRef{in.Entry, in.Version, in.Registry})
	if err != nil {
		return out, err
	}
	e := a.Entries[0]
	out.Entry = toRegistryEntry(from, e)
	if err := refuseStatus(out.Entry); err != nil {
		return out, err
	}
	name := cmp.Or(in.Name, strings.Trim(strings.ReplaceAll(e.Name[strings.IndexByte(e.Name, '/')+1:], "__", "_"), "."))
	values := registry.Values{Given: map[string][]string{}, Reference: r.newReferences(name)}
	for _, pair := range in.Values {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" || len(value) > maxServerText {
			return out, invalidServerParameterError("values", "A value has the form NAME=VALUE, with at most 8,192 bytes.")
		}
		values.Given[key] = append(values.Given[key], value)
	}
	if out.Option = in.Option; out.Option == "" {
		i := max(0, slices.IndexFunc(out.Entry.Options, func(o registry.Option) bool { return o.Problem == "" }))
		if len(out.Entry.Options) == 0 {
			return out, invalidServerParameterError("entry", "The entry has no package and no address.")
		}
		out.Option = out.Entry.Options[i].ID
	}
	l, err := e.Launch(out.Option, values)
	if err != nil {
		return out, problem.Newf(problem.InvalidParameter, "%s %s cannot be added: %s.", e.Name, problem.ClipName(e.Version), problem.ClipForDisplay(registry.Clean(err.Error()), 500)).
			WithHint("To see what it asks for, run `mcpproxy registry show "+e.Name+"`.").With("parameter", "values")
	}
	edit, err := validateNewServer(AddServerRequest{Name: name, Launch: config.Launch{Command: l.Command, Args: l.Args, Env: l.Env, URL: l.URL, Headers: l.Headers}, Quarantined: true})
	if err != nil {
		return out, err
	}
	edit.Sandbox = r.proposeSandbox(l, &out)
	named := config.NamedEdit{Name: name, ServerEdit: edit}
	if err := cmp.Or(r.admin.checkNameFree(name, c), r.admin.editor.CheckNotSelfReference(edit.Launch), r.admin.editor.CheckNewServers(named)); err != nil {
		return out, err
	}
	if err = r.storeSecrets(ctx, c, l.Secrets, values.Reference, &out); err == nil {
		err = r.admin.addServerOfUser(ctx, c, named)
	}
	if err != nil {
		for _, secret := range out.Stored {
			_, _ = r.secrets.DeleteSecret(ctx, c, SecretRef{secret}) // it belongs to no server
		}
		return AddedFromRegistry{}, err
	}
	out.Server, err = r.admin.Server(ctx, c, ServerRef{Name: name})
	if s := r.admin.Config().Server(name); s != nil {
		out.Launch = newLaunchView(s.MaskedLaunch())
	}
	r.admin.withdrawSuperseded(ctx, &out.Server, c)
	out.Env, out.Headers = showValues(l.Env, "="), showValues(l.Headers, ": ")
	if a.Offline != nil {
		out.Notes = append(out.Notes, "The registry cannot be reached. This is its answer of "+a.FetchedAt.Format(time.DateTime)+" UTC; the status may have changed since.")
	}
	return out, err
}

// showValues returns the names and values of variables or headers, sorted, with values that look like secrets masked.
func showValues(all map[string]string, separator string) (shown []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		if !wholeReference.MatchString(value) {
			value = maskNamedValue(name, value)
		}
		shown = append(shown, name+separator+registry.Clean(value))
	}
	return shown
}

// wholeReference matches a reference, possibly after an authorization scheme.
var wholeReference = regexp.MustCompile(`^((?i:bearer|basic|token) )?\$\{[a-z]+:[^{}]*\}$`)

// refuseStatus refuses a server that the registry reports as deprecated or deleted.
func refuseStatus(e RegistryEntry) error {
	if e.Status != registry.Deprecated && e.Status != registry.Deleted {
		return nil
	}
	return problem.Newf(problem.Conflict, "%s %s is %s in the registry, so it is not added. %s", e.Name, problem.ClipName(e.Version), e.Status, e.StatusMessage).
		WithHint("Choose another version or another server: `mcpproxy registry search`.")
}

// newReferences returns a function that gives the secrets of a server names that no other secret has.
func (r *RegistryOperations) newReferences(server string) func(input string) string {
	used := map[string]bool{}
	if index, err := r.secrets.secrets.Store.ListIndex(); err == nil {
		for name := range index {
			used[name] = true
		}
	}
	for _, s := range r.admin.Config().Servers {
		for _, name := range s.SecretNames() {
			used[name] = true
		}
	}
	names := map[string]string{}
	return func(input string) string {
		if names[input] == "" {
			name := ToSecretName(server + "_" + strings.TrimLeft(input, "-"))
			for used[name] {
				name += "_"
			}
			used[name], names[input] = true, name
		}
		return "${keyring:" + names[input] + "}"
	}
}

// storeSecrets stores the given secrets, and notes the missing ones.
func (r *RegistryOperations) storeSecrets(ctx context.Context, c Caller, all map[string]string, reference func(string) string, out *AddedFromRegistry) error {
	for _, input := range slices.Sorted(maps.Keys(all)) {
		name := strings.TrimSuffix(strings.TrimPrefix(reference(input), "${keyring:"), "}")
		if all[input] == "" {
			out.Missing = append(out.Missing, name)
			continue
		}
		if _, err := r.secrets.SetSecret(ctx, c, SetSecretRequest{name, all[input]}); err != nil {
			return err
		}
		out.Stored = append(out.Stored, name)
	}
	return nil
}

// proposeSandbox returns a strict sandbox for a package whose arguments name folders, if this machine can enforce it.
func (r *RegistryOperations) proposeSandbox(l registry.Launch, out *AddedFromRegistry) *sandbox.Rules {
	if len(l.Folders) == 0 || l.Command != "npx" && l.Command != "uvx" || r.admin.Sandboxes == nil {
		return nil
	}
	rules := &sandbox.Rules{Mode: sandbox.Strict, Read: l.Folders}
	if len(l.Secrets) > 0 {
		rules.Network = sandbox.AllNetwork // a secret is for a service
	}
	if gaps := r.admin.Sandboxes.NotEnforced(*rules); len(gaps) > 0 {
		out.Notes = append(out.Notes, "It has no sandbox, because this machine cannot enforce one: "+gaps[0].String())
		return nil
	}
	out.Notes = append(out.Notes, "It has a sandbox: it "+rules.Text()+". Change it with `mcpproxy upstream set` before you approve it.")
	return rules
}

func toRegistryAnswer(name, url string, a registry.Answer, failed error) RegistryAnswer {
	v := RegistryAnswer{Name: name, URL: url, FetchedAt: timeOrNil(a.FetchedAt), More: a.More, Unreadable: a.Unreadable}
	if err := cmp.Or(failed, a.Offline); err != nil {
		v.Problem = problem.ClipForDisplay(registry.Clean(err.Error()), 300)
	}
	return v
}

func toRegistryEntry(from string, e *registry.Entry) RegistryEntry {
	return RegistryEntry{
		Registry: from, Name: e.Name, Title: registry.Clean(e.Title), Description: registry.Clean(e.Description), Version: e.Version,
		Status: registry.Clean(e.Status), StatusMessage: registry.Clean(e.StatusMessage), Published: timeOrNil(e.Published),
		Website: registry.Clean(e.WebsiteURL), Repository: registry.Clean(e.RepositoryURL), Options: append([]registry.Option{}, e.Options()...),
		ScanResult: toScanResult(scan.ScanText("entry", e.Texts())),
	}
}
