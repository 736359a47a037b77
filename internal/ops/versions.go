package ops

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/pin"
	"mcpproxy/internal/upstream/sandbox"
)

// PackageTrials starts servers, versions of packages and sandboxes next to the running servers. app implements it.
type PackageTrials interface {
	// Environ returns the environment of the processes of a server.
	Environ(s config.Server) ([]string, error)
	// ListDefinitions starts a server, and returns what it lists. The server is stopped before it returns.
	ListDefinitions(ctx context.Context, s config.Server) ([]TrialDefinition, error)
	// TrySandbox starts a server in a sandbox, lists its tools, and stops it.
	TrySandbox(ctx context.Context, s config.Server, r sandbox.Rules) sandbox.Trial
}

// TrialDefinition is a definition that a version of a server lists.
type TrialDefinition struct {
	Kind tool.DefinitionKind
	Name string
	Raw  json.RawMessage
	// Fingerprint is set by a successful parse.
	Fingerprint tool.Fingerprint
	Report      scan.Report
}

// Time limits of requests to registries, and of the start of a server after a switch.
const (
	registryTimeout = 45 * time.Second
	switchTimeout   = 60 * time.Second
	maxPreviousPins = 5
	// maxRegistryRequests limits the requests at a time: each one of npm is a process.
	maxRegistryRequests = 4
	// maxReviewedVersions limits the versions that can be approved.
	maxReviewedVersions = 64
)

// The actions in the activity log.
const (
	updateVersion   = "update_version"
	rollBackVersion = "rollback_version"
)

// VersionView is one version of a package. Its texts come from the registry.
type VersionView struct {
	Version        string     `json:"version"`
	Integrity      string     `json:"integrity" doc:"dist.integrity of npm, a digest over the SHA-256 of all files for PyPI, or the digest of an image."`
	Published      *time.Time `json:"published,omitempty"`
	Publisher      string     `json:"publisher,omitempty" doc:"Who published the version. Absent if the registry does not tell."`
	InstallScripts []string   `json:"install_scripts,omitempty" doc:"The scripts that run when the version is installed."`
	Deprecated     string     `json:"deprecated,omitempty" doc:"Why the version is deprecated or withdrawn."`
}

// ServerVersions compares the pinned version of a server with another one.
type ServerVersions struct {
	Name         string        `json:"name"`
	Package      string        `json:"package,omitempty" doc:"The kind and name of the package: npm:NAME, pypi:NAME or docker:IMAGE."`
	Pinned       *VersionView  `json:"pinned,omitempty" doc:"The version that is started. Absent if the launch is not pinned."`
	Newest       *VersionView  `json:"newest,omitempty"`
	Outdated     bool          `json:"outdated"`
	Warnings     []string      `json:"warnings,omitempty" doc:"What to check before an update: another publisher, install scripts, a deprecated version, a changed integrity."`
	Problem      string        `json:"problem,omitempty" doc:"Why the versions are not known, or why the launch cannot be pinned."`
	Started      bool          `json:"started,omitempty" doc:"Whether the newest version was started, to list its definitions."`
	Sandbox      bool          `json:"sandbox,omitempty" doc:"Whether the server, and so the trial, runs in a sandbox."`
	Changes      []TrialChange `json:"changes,omitempty" doc:"The definitions that differ from the approved ones. Absent if none does, or if the version was not started."`
	Unchanged    int           `json:"unchanged,omitempty" doc:"The number of definitions that are equal to the approved ones."`
	Approval     string        `json:"approval,omitempty" doc:"The fingerprint to send as approve, to switch to the version. It covers the version, its integrity and all definitions."`
	Switched     bool          `json:"switched,omitempty"`
	Accepted     int           `json:"accepted,omitempty" doc:"The number of definitions that were approved with the switch."`
	LeftToReview int           `json:"left_to_review,omitempty" doc:"The number of definitions that still wait for approval after the switch."`
}

// TrialChange is one definition that differs.
type TrialChange struct {
	Kind       tool.DefinitionKind   `json:"kind,omitempty" doc:"Absent for a tool."`
	Name       string                `json:"name"`
	Change     string                `json:"change" enum:"added,removed,changed"`
	Definition json.RawMessage       `json:"definition,omitempty" doc:"The definition of the new version. Absent if it was removed."`
	Changes    []approval.Difference `json:"changes,omitempty"`
	ScanResult
}

// OutdatedList lists the versions of all servers that npx, uvx or docker starts, sorted by name.
type OutdatedList struct {
	Servers []ServerVersions `json:"servers"`
}

// UpdateRequest asks for another version of a server.
type UpdateRequest struct {
	ServerRef
	Version string `json:"version" doc:"The version. Default: the newest one."`
	Start   bool   `json:"start" doc:"Start the version next to the running one, and compare its definitions. Without it, only the registry is asked."`
	Approve string `json:"approve" doc:"The approval of an earlier response: switch to that version, and approve its definitions."`
}

// Example returns an example for the OpenAPI document.
func (UpdateRequest) Example() string { return `{"start": true}` }

// VersionOperations are the operations that start a server next to the running one: another version, or a sandbox.
type VersionOperations struct {
	admin  *Admin
	trials PackageTrials

	mu      sync.Mutex // guards the field below
	started map[string]reviewedVersion
}

// reviewedVersion is a version whose definitions a user has seen.
type reviewedVersion struct {
	server       string
	pin          pin.Pin
	fingerprints map[tool.Fingerprint]bool
}

// NewVersionOperations returns VersionOperations. It also makes approvals of launches pin their versions.
func NewVersionOperations(a *Admin, t PackageTrials) *VersionOperations {
	v := &VersionOperations{admin: a, trials: t, started: map[string]reviewedVersion{}}
	a.pinLaunch = v.pinLaunch
	return v
}

// Outdated compares the version of each server with the newest one. It starts nothing.
func (v *VersionOperations) Outdated(ctx context.Context, _ Caller, _ Nothing) (OutdatedList, error) {
	list := OutdatedList{[]ServerVersions{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, maxRegistryRequests)
	for _, s := range v.admin.Config().Servers {
		l, why, ok := pin.FindLaunch(s.Command, s.Args)
		if s.URL != "" || !ok && why == "" {
			continue
		}
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			one := ServerVersions{Name: s.Name, Problem: why}
			if ok {
				one, _ = v.compare(ctx, s, l, "")
			}
			mu.Lock()
			defer mu.Unlock()
			list.Servers = append(list.Servers, one)
		})
	}
	all.Wait()
	slices.SortFunc(list.Servers, func(a, b ServerVersions) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// compare asks the registry about the pinned and the wanted version. The second result is the wanted version.
func (v *VersionOperations) compare(ctx context.Context, s config.Server, l pin.Launch, version string) (out ServerVersions, newest pin.Version) {
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	out = ServerVersions{Name: s.Name, Package: string(l.Kind) + ":" + l.Name, Sandbox: s.Sandbox.IsOn()}
	env, err := v.trials.Environ(s)
	if err == nil {
		newest, err = l.Resolve(ctx, cmp.Or(version, l.Wanted), env)
	}
	if err != nil {
		out.Problem = problem.ClipForDisplay(err.Error(), 500)
		return out, newest
	}
	out.Newest = newVersionView(newest)
	if s.Pin == "" {
		out.Outdated = true
		out.Warnings = append(out.Warnings, "The version is not pinned: each start may use another one.")
	}
	var now pin.Version
	if now.Pin, err = pin.Parse(s.Pin); err == nil {
		out.Outdated = now.Pin != newest.Pin
		out.Pinned = newVersionView(now)
		if now.Version == newest.Version {
			now = newest
		} else if known, err := l.Resolve(ctx, now.Version, env); err == nil {
			now = known
		}
		if pinned, _ := pin.Parse(s.Pin); now.Integrity != pinned.Integrity {
			out.Warnings = append(out.Warnings, "The registry now has another integrity for the pinned version "+pinned.Version+": it was replaced. MCPProxy does not start it.")
			now.Pin = pinned
		}
		out.Pinned = newVersionView(now)
	}
	out.Warnings = append(out.Warnings, versionWarnings(now, newest, s.Pin != "")...)
	return out, newest
}

// versionWarnings tells what to check before an update.
func versionWarnings(now, next pin.Version, pinned bool) (out []string) {
	if pinned && now.Publisher != "" && next.Publisher != now.Publisher {
		out = append(out, "The publisher changed from "+now.Publisher+" to "+cmp.Or(next.Publisher, "unknown")+".")
	}
	if len(next.InstallScripts) > 0 && (!pinned || !slices.Equal(next.InstallScripts, now.InstallScripts)) {
		out = append(out, "It runs scripts when it is installed: "+strings.Join(next.InstallScripts, ", ")+".")
	}
	if next.Deprecated != "" {
		out = append(out, "It is deprecated: "+problem.ClipForDisplay(next.Deprecated, 300))
	}
	return out
}

func newVersionView(v pin.Version) *VersionView {
	view := &VersionView{Version: v.Version, Integrity: v.Integrity, Publisher: problem.ClipName(v.Publisher), InstallScripts: v.InstallScripts, Deprecated: problem.ClipForDisplay(v.Deprecated, 300)}
	if !v.Published.IsZero() {
		view.Published = &v.Published
	}
	return view
}

// findPackage returns a configured server and the package that its command starts.
func (v *VersionOperations) findPackage(name string) (s config.Server, l pin.Launch, err error) {
	c := v.admin.Config().Server(name)
	if c == nil {
		return s, l, v.admin.serverNotFoundError(name)
	}
	l, why, ok := pin.FindLaunch(c.Command, c.Args)
	if !ok || c.URL != "" {
		return *c, l, problem.Newf(problem.Conflict, "The version of server '%s' cannot be managed: %s.", name, cmp.Or(why, "its command does not start npx, uvx or docker run")).
			WithHint("Write the version into its command with `mcpproxy upstream set " + name + " command`.")
	}
	return *c, l, nil
}

// Update shows another version of a server, starts it next to the running one, or switches to it.
func (v *VersionOperations) Update(ctx context.Context, c Caller, in UpdateRequest) (out ServerVersions, err error) {
	s, l, err := v.findPackage(in.Name)
	if err != nil {
		return out, err
	}
	if in.Approve != "" {
		return v.approve(ctx, c, s, in.Approve)
	}
	out, next := v.compare(ctx, s, l, in.Version)
	if out.Problem != "" {
		return out, problem.Newf(problem.ServerUnavailable, "The versions of server '%s' are not known: %s", in.Name, out.Problem).WithHint("Check the network and the registry, then try again.")
	}
	if !in.Start || !out.Outdated {
		return out, nil
	}
	return out, v.admin.runUserAction(c, newActionRecord(c, activity.ServerChange, tool.ID{Server: in.Name}, "try_version", next.Pin.String()), func() error {
		if err := v.admin.Presence.RequireSigned(ctx, presence.NewClaim("start a version for comparison", s.Name, next.Pin.String())); err != nil {
			return err
		}
		listed, err := v.trials.ListDefinitions(ctx, s.WithPin(next.Pin.String()))
		if err != nil {
			return problem.Newf(problem.ServerUnavailable, "Version %s of server '%s' did not start: %v", next.Version, in.Name, err).
				WithHint("The running version is not affected.").Because(err)
		}
		out.Started = true
		v.compareDefinitions(ctx, &out, s.Name, listed)
		reviewed := reviewedVersion{s.Name, next.Pin, map[tool.Fingerprint]bool{}}
		h := sha256.New()
		fmt.Fprintf(h, "mcpproxy version %s %s\n", s.Name, next.Pin)
		for _, d := range listed {
			reviewed.fingerprints[d.Fingerprint] = true
			fmt.Fprintf(h, "%s %s %q\n", d.Fingerprint, d.Kind, d.Name)
		}
		out.Approval = hex.EncodeToString(h.Sum(nil))
		v.mu.Lock()
		defer v.mu.Unlock()
		if len(v.started) >= maxReviewedVersions {
			clear(v.started)
		}
		v.started[out.Approval] = reviewed
		return nil
	})
}

// compareDefinitions compares what a version lists with the approved definitions.
func (v *VersionOperations) compareDefinitions(ctx context.Context, out *ServerVersions, server string, listed []TrialDefinition) {
	slices.SortFunc(listed, func(a, b TrialDefinition) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	decided := v.admin.Book.ServerView(server)
	has := map[string]bool{}
	for _, d := range listed {
		has[string(d.Kind)+" "+d.Name] = true
		e := decided.DecisionsOn(d.Kind, d.Name)
		if e.Approves(d.Fingerprint) {
			out.Unchanged++
			continue
		}
		change := TrialChange{Kind: d.Kind, Name: d.Name, Change: "added", Definition: d.Raw, ScanResult: toScanResult(d.Report)}
		if was, err := v.admin.Book.ApprovedDefinition(ctx, d.Kind, tool.ID{Server: server, Tool: d.Name}); err == nil && e.Pin != nil && was != nil {
			change.Change = "changed"
			change.Changes, _, _ = approval.Diff(was, d.Raw)
		}
		out.Changes = append(out.Changes, change)
	}
	if now := v.admin.Catalog.Current().Server(server); now != nil {
		for _, t := range now.Tools {
			if !has[" "+t.ID.Tool] {
				out.Changes = append(out.Changes, TrialChange{Name: t.ID.Tool, Change: "removed"})
			}
		}
		for _, o := range v.admin.Catalog.Primitives(server).Reviewable() {
			if !has[string(o.Kind)+" "+o.Name] {
				out.Changes = append(out.Changes, TrialChange{Kind: o.Kind, Name: o.Name, Change: "removed"})
			}
		}
	}
}

// approve switches a server to a version that was started and compared.
func (v *VersionOperations) approve(ctx context.Context, c Caller, s config.Server, fingerprint string) (out ServerVersions, err error) {
	v.mu.Lock()
	reviewed, there := v.started[fingerprint]
	v.mu.Unlock()
	if !there || reviewed.server != s.Name {
		return out, problem.Newf(problem.Conflict, "No version of server '%s' with this approval was compared since MCPProxy started.", s.Name).WithHint("Run the update again.")
	}
	return v.switchTo(ctx, c, s, updateVersion, reviewed.pin, func(f tool.Fingerprint, _ approval.DefinitionDecisions) bool { return reviewed.fingerprints[f] })
}

// Rollback switches a server to the version before the last update. Definitions that the update has replaced are approved
// again.
func (v *VersionOperations) Rollback(ctx context.Context, c Caller, in ServerRef) (out ServerVersions, err error) {
	s, _, err := v.findPackage(in.Name)
	if err != nil {
		return out, err
	}
	if len(s.PreviousPins) == 0 {
		return out, problem.Newf(problem.Conflict, "Server '%s' has no earlier version.", in.Name).WithHint("`mcpproxy upstream update " + in.Name + " --version VERSION` switches to any version.")
	}
	before, err := pin.Parse(s.PreviousPins[0])
	if err != nil {
		return out, err
	}
	return v.switchTo(ctx, c, s, rollBackVersion, before, func(f tool.Fingerprint, e approval.DefinitionDecisions) bool {
		return e.Pin != nil && e.Pin.Before != nil && e.Pin.Before.Pin != nil && e.Pin.Before.Pin.Fingerprint == f
	})
}

// switchTo writes another pin, approves the launch if the server's launch was reviewed, waits until the server lists its
// definitions, and approves those that accept selects.
func (v *VersionOperations) switchTo(ctx context.Context, c Caller, s config.Server, action string, to pin.Pin, accept func(tool.Fingerprint, approval.DefinitionDecisions) bool) (out ServerVersions, err error) {
	a := v.admin
	out = ServerVersions{Name: s.Name, Package: string(to.Kind) + ":" + to.Name, Pinned: newVersionView(pin.Version{Pin: to})}
	return out, a.runUserAction(c, newActionRecord(c, activity.ConfigChange, tool.ID{Server: s.Name}, action, s.Pin+" → "+to.String()), func() error {
		previous := slices.DeleteFunc(slices.Clone(s.PreviousPins), func(p string) bool { return p == to.String() || p == s.Pin })
		if s.Pin != "" && action == updateVersion {
			previous = slices.Insert(previous, 0, s.Pin)
		}
		var earlier []byte // nil removes the key
		if len(previous) > 0 {
			if earlier, err = json.Marshal(previous[:min(len(previous), maxPreviousPins)]); err != nil {
				return err
			}
		}
		text, err := json.Marshal(to.String())
		if err != nil {
			return err
		}
		reviewed := a.Book.ServerView(s.Name).ApprovedLaunch() != nil
		next := s.WithPin(to.String()).LaunchFingerprint()
		if a.Presence.IsOn() {
			widens, err := requiredClaims(func(permit config.ConfirmFunc) error { return a.editor.SetServer(permit, s.Name, "pin", text) })
			if err != nil {
				return err
			}
			if reviewed {
				widens = append(widens, approval.LaunchClaim(s.Name, next))
			}
			if err := a.Presence.RequireSigned(ctx, widens...); err != nil {
				return err
			}
		}
		began := time.Now()
		if err := a.editor.SetServer(a.configConfirmFunc(ctx), s.Name, "previous_pins", earlier); err != nil {
			return err
		}
		if err := a.editor.SetServer(a.configConfirmFunc(ctx), s.Name, "pin", text); err != nil { // a reviewed server is quarantined from now on
			return err
		}
		if reviewed {
			if err := a.Book.ApproveLaunch(ctx, s.Name, next, c.Actor.String()); err != nil {
				return err
			}
		}
		out.Switched = true
		return v.acceptDefinitions(ctx, c, s.Name, began, &out, accept)
	})
}

// acceptDefinitions waits until a server is ready, and approves the waiting definitions that accept selects. With
// presence, they wait for a signed approval of their own.
func (v *VersionOperations) acceptDefinitions(ctx context.Context, c Caller, server string, began time.Time, out *ServerVersions, accept func(tool.Fingerprint, approval.DefinitionDecisions) bool) error {
	a := v.admin
	ctx, cancel := context.WithTimeout(ctx, switchTimeout)
	defer cancel()
	for {
		now := a.Catalog.Current()
		if s := now.Server(server); s != nil && s.State.Phase == upstream.Ready && s.State.Since.After(began) || s != nil && !s.Enabled {
			break
		}
		select {
		case <-now.ReplacedChan():
		case <-ctx.Done():
			out.Problem = "The server is not ready yet: see `mcpproxy upstream get " + server + "`. Its changed definitions wait for approval."
			return nil
		}
	}
	s, err := a.findServerUnderReview(server)
	if err != nil {
		return err
	}
	all := s.definitionsToApprove()
	accepted := slices.DeleteFunc(slices.Clone(all), func(d approval.CandidateDefinition) bool {
		return a.Presence.IsOn() || !accept(d.Fingerprint, s.decided.DecisionsOn(d.Kind, d.Tool))
	})
	out.Accepted, out.LeftToReview = len(accepted), len(all)-len(accepted)
	if len(accepted) == 0 {
		return nil
	}
	return a.Book.Approve(ctx, server, c.Actor.String(), accepted, nil)
}

// pinLaunch returns the server with a pin for the version that its command would start now. A launch that cannot be
// pinned, or whose registry does not answer, stays as it is; why is the reason.
func (v *VersionOperations) pinLaunch(ctx context.Context, s config.Server) (pinned config.Server, why string) {
	l, why, ok := pin.FindLaunch(s.Command, s.Args)
	if s.Pin != "" || !ok {
		return s, why
	}
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	env, err := v.trials.Environ(s)
	if err != nil {
		return s, err.Error()
	}
	found, err := l.Resolve(ctx, l.Wanted, env)
	if err != nil {
		return s, err.Error()
	}
	return s.WithPin(found.Pin.String()), ""
}

// ParseTrialDefinition parses a definition that a server lists.
func ParseTrialDefinition(server string, kind tool.DefinitionKind, raw json.RawMessage) (TrialDefinition, error) {
	d := TrialDefinition{Kind: kind, Raw: bytes.Clone(raw)}
	if kind == tool.KindTool {
		t, err := tool.ParseDefinition(server, d.Raw)
		if err != nil {
			return d, err
		}
		d.Name, d.Fingerprint, d.Report = t.ID.Tool, t.Fingerprint(), scan.ScanDefinition(t)
		return d, nil
	}
	o, err := tool.ParsePrimitive(kind, d.Raw)
	d.Name, d.Fingerprint, d.Report = o.Name, o.Fingerprint, scan.ScanText(string(kind), string(raw))
	return d, err
}
