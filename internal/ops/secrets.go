package ops

import (
	"context"
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/upstream/secret"
)

// SecretView is what may be known of a secret. It never has the value.
type SecretView struct {
	Name   string     `json:"name"`
	State  string     `json:"state" enum:"set,missing,locked" doc:"set; missing: a server needs it, or it was set, and no value is there; locked: in a keyring that cannot be used."`
	Kept   string     `json:"kept,omitempty" enum:"keyring,file" doc:"In the keyring of the system, or in the sealed file of the data directory."`
	UsedBy []string   `json:"used_by" doc:"The servers whose configuration names it."`
	SetAt  *time.Time `json:"set_at,omitempty" doc:"When it was set last, if that was with MCPProxy."`
}

// SecretViews are all secrets that are known or needed.
type SecretViews struct {
	Secrets []SecretView `json:"secrets"`
}

// SecretRef names a secret.
type SecretRef struct {
	Name string `path:"name" doc:"The name of the secret: letters, digits, underscores, dots and dashes."`
}

// NewSecret is a secret with its value.
type NewSecret struct {
	Name  string `path:"name" doc:"The name of the secret: letters, digits, underscores, dots and dashes."`
	Value string `json:"value" required:"true" doc:"The value, up to 65536 bytes. It is stored, and never answered."`
}

// secretsTime is how long a list may ask the keyring.
const secretsTime = 10 * time.Second

// Secrets are the operations on secrets, with a daemon or without.
type Secrets struct {
	Store *secret.Store
	// Servers are those of the configuration.
	Servers func() []config.Server
}

// List lists the secrets that were set, and those that servers need.
func (s Secrets) List(ctx context.Context) (SecretViews, error) {
	ctx, cancel := context.WithTimeout(ctx, secretsTime)
	defer cancel()
	index, err := s.Store.List()
	if err != nil {
		return SecretViews{}, refusedSecret(err)
	}
	names := secret.SortedNames(index)
	for _, server := range s.Servers() {
		names = append(names, server.SecretNames()...)
	}
	slices.Sort(names)
	all := SecretViews{[]SecretView{}}
	for _, name := range slices.Compact(names) {
		info, there := index[name]
		v, err := s.view(ctx, name, info, there)
		if err != nil {
			return SecretViews{}, refusedSecret(err)
		}
		all.Secrets = append(all.Secrets, v)
	}
	return all, nil
}

// view looks whether there is a value.
func (s Secrets) view(ctx context.Context, name string, info secret.Info, there bool) (SecretView, error) {
	v := SecretView{Name: name, State: "set", UsedBy: s.users(name)}
	if there {
		v.Kept, v.SetAt = string(info.Place), &info.SetAt
	}
	switch _, err := s.Store.Get(ctx, name); {
	case errors.Is(err, secret.ErrMissing):
		v.State, v.Kept = "missing", ""
	case errors.Is(err, secret.ErrLocked):
		v.State = "locked"
	case err != nil:
		return v, err
	}
	return v, nil
}

// users are the servers that need a secret.
func (s Secrets) users(name string) []string {
	used := []string{}
	for _, server := range s.Servers() {
		if slices.Contains(server.SecretNames(), name) {
			used = append(used, server.Name)
		}
	}
	return used
}

// Set stores a secret.
func (s Secrets) Set(ctx context.Context, in NewSecret) (SecretView, error) {
	if err := CheckSecret(in.Name, in.Value); err != nil {
		return SecretView{}, err
	}
	info, err := s.Store.Set(ctx, in.Name, in.Value)
	if err != nil {
		return SecretView{}, refusedSecret(err)
	}
	return SecretView{Name: in.Name, State: "set", Kept: string(info.Place), UsedBy: s.users(in.Name), SetAt: &info.SetAt}, nil
}

// Delete removes a secret. Servers that need it are not started any more.
func (s Secrets) Delete(ctx context.Context, in SecretRef) (SecretView, error) {
	if err := checkSecretName(in.Name); err != nil {
		return SecretView{}, err
	}
	if err := s.Store.Delete(ctx, in.Name); err != nil {
		return SecretView{}, refusedSecret(err)
	}
	return SecretView{Name: in.Name, State: "missing", UsedBy: s.users(in.Name)}, nil
}

// CheckSecret refuses a name or a value. It repeats neither: a value may have been
// given in the place of the name.
func CheckSecret(name, value string) error {
	if err := checkSecretName(name); err != nil {
		return err
	}
	if err := secret.CheckValue(value); err != nil {
		return problem.Newf(problem.InvalidParameter, "The secret cannot be kept: %v.", err).With("parameter", "value")
	}
	return nil
}

func checkSecretName(name string) error {
	if err := secret.CheckName(name); err != nil {
		return problem.Newf(problem.InvalidName, "This cannot be the name of a secret: %v.", err).
			WithHint("Choose a name such as GITHUB_TOKEN.")
	}
	return nil
}

// refusedSecret is an error of the store for people.
func refusedSecret(err error) error {
	switch {
	case errors.Is(err, secret.ErrMissing):
		return problem.New(problem.NotFound, "There is no secret of that name.", "See `mcpproxy secrets list`.").Because(err)
	case errors.Is(err, secret.ErrLocked):
		return problem.New(problem.Conflict, "The secret is in the keyring of the system, which cannot be used from here.",
			"Unlock it, and run MCPProxy in the session of the desktop.").Because(err)
	}
	return problem.Newf(problem.Internal, "The secrets cannot be used: %v.", err).
		WithHint("Check the files secrets.* in the data directory.").Because(err)
}

// SecretOperations are the operations on secrets in the daemon.
type SecretOperations struct {
	secrets Secrets
	journal Journal
	changed func()
}

// NewSecrets makes Operations. changed is told that a secret may be another one.
func NewSecrets(s Secrets, journal Journal, changed func()) *SecretOperations {
	return &SecretOperations{s, journal, changed}
}

// ListSecrets lists the secrets that were set, and those that servers need.
func (s *SecretOperations) ListSecrets(ctx context.Context, _ Caller, _ Nothing) (SecretViews, error) {
	return s.secrets.List(ctx)
}

// SetSecret stores a secret and has the servers restarted that need it. The record
// names it.
func (s *SecretOperations) SetSecret(ctx context.Context, c Caller, in NewSecret) (v SecretView, err error) {
	if err := CheckSecret(in.Name, in.Value); err != nil {
		return v, err
	}
	err = s.journal.Act(c, Action(c, activity.ConfigChange, tool.ID{}, "set_secret", in.Name), func() error {
		v, err = s.secrets.Set(ctx, in)
		return err
	})
	s.changed()
	return v, err
}

// DeleteSecret removes a secret. Servers that need it are stopped.
func (s *SecretOperations) DeleteSecret(ctx context.Context, c Caller, in SecretRef) (v SecretView, err error) {
	if err := checkSecretName(in.Name); err != nil {
		return v, err
	}
	err = s.journal.Act(c, Action(c, activity.ConfigChange, tool.ID{}, "delete_secret", in.Name), func() error {
		v, err = s.secrets.Delete(ctx, in)
		return err
	})
	s.changed()
	return v, err
}
