package ops

import (
	"context"
	"errors"
	"slices"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/secret"
)

// SecretView describes a secret without its value.
type SecretView struct {
	Name   string     `json:"name"`
	State  string     `json:"state" enum:"set,missing,locked" doc:"The state. set: it has a value. missing: it has no value, but a server needs it or it was set before. locked: its keyring is unavailable."`
	Kept   string     `json:"kept,omitempty" enum:"keyring,file" doc:"The storage: the keyring of the system, or the encrypted file in the data directory."`
	UsedBy []string   `json:"used_by" doc:"The servers whose configuration refers to the secret."`
	SetAt  *time.Time `json:"set_at,omitempty" doc:"The time at which MCPProxy last set the secret. Absent if it never did."`
}

// SecretViews lists all secrets that are stored or needed.
type SecretViews struct {
	Secrets []SecretView `json:"secrets"`
}

// SecretRef identifies a secret.
type SecretRef struct {
	Name string `path:"name" doc:"The name of the secret: letters, digits, underscores, dots and dashes."`
}

// SetSecretRequest is a request to store a secret.
type SetSecretRequest struct {
	Name  string `path:"name" doc:"The name of the secret: letters, digits, underscores, dots and dashes."`
	Value string `json:"value" required:"true" doc:"The value, at most 65,536 bytes. No response contains it."`
}

// secretsTimeout limits how long a list waits for the keyring.
const secretsTimeout = 10 * time.Second

// SecretManager implements the operations on secrets, with or without a daemon.
type SecretManager struct {
	Store *secret.Store
	// Servers returns the configured servers.
	Servers func() []config.Server
}

// List returns the stored secrets and the secrets that servers need.
func (s SecretManager) List(ctx context.Context) (SecretViews, error) {
	ctx, cancel := context.WithTimeout(ctx, secretsTimeout)
	defer cancel()
	index, err := s.Store.ListIndex()
	if err != nil {
		return SecretViews{}, toSecretProblem(err)
	}
	names := secret.SortedNames(index)
	for _, server := range s.Servers() {
		names = append(names, server.SecretNames()...)
	}
	slices.Sort(names)
	all := SecretViews{[]SecretView{}}
	for _, name := range slices.Compact(names) {
		info, there := index[name]
		v, err := s.secretView(ctx, name, info, there)
		if err != nil {
			return SecretViews{}, toSecretProblem(err)
		}
		all.Secrets = append(all.Secrets, v)
	}
	return all, nil
}

// secretView returns the view of a secret. It checks whether the secret has a value.
func (s SecretManager) secretView(ctx context.Context, name string, info secret.SecretInfo, there bool) (SecretView, error) {
	v := SecretView{Name: name, State: "set", UsedBy: s.serversUsing(name)}
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

// serversUsing returns the servers that need a secret.
func (s SecretManager) serversUsing(name string) []string {
	used := []string{}
	for _, server := range s.Servers() {
		if slices.Contains(server.SecretNames(), name) {
			used = append(used, server.Name)
		}
	}
	return used
}

// Set stores a secret.
func (s SecretManager) Set(ctx context.Context, in SetSecretRequest) (SecretView, error) {
	if err := ValidateSecret(in.Name, in.Value); err != nil {
		return SecretView{}, err
	}
	info, err := s.Store.Set(ctx, in.Name, in.Value)
	if err != nil {
		return SecretView{}, toSecretProblem(err)
	}
	return SecretView{Name: in.Name, State: "set", Kept: string(info.Place), UsedBy: s.serversUsing(in.Name), SetAt: &info.SetAt}, nil
}

// Delete deletes a secret. Servers that need the secret can no longer start.
func (s SecretManager) Delete(ctx context.Context, in SecretRef) (SecretView, error) {
	if err := checkSecretName(in.Name); err != nil {
		return SecretView{}, err
	}
	if err := s.Store.Delete(ctx, in.Name); err != nil {
		return SecretView{}, toSecretProblem(err)
	}
	return SecretView{Name: in.Name, State: "missing", UsedBy: s.serversUsing(in.Name)}, nil
}

// ValidateSecret validates a name and a value. Its errors contain neither, because the user may have swapped them.
func ValidateSecret(name, value string) error {
	if err := checkSecretName(name); err != nil {
		return err
	}
	if err := secret.CheckValue(value); err != nil {
		return problem.Newf(problem.InvalidParameter, "The secret cannot be stored: %v.", err).With("parameter", "value")
	}
	return nil
}

func checkSecretName(name string) error {
	if err := secret.CheckName(name); err != nil {
		return problem.Newf(problem.InvalidName, "Invalid name for a secret: %v.", err).
			WithHint("Choose a name such as GITHUB_TOKEN.")
	}
	return nil
}

// toSecretProblem converts an error of the secret store to a problem.
func toSecretProblem(err error) error {
	switch {
	case errors.Is(err, secret.ErrMissing):
		return problem.New(problem.NotFound, "There is no secret with this name.", "See `mcpproxy secrets list`.").Because(err)
	case errors.Is(err, secret.ErrLocked):
		return problem.New(problem.Conflict, "The secret is in the keyring of the system, which is not available to this process.",
			"Unlock it, and run MCPProxy in the session of the desktop.").Because(err)
	}
	return problem.Newf(problem.Internal, "The secrets cannot be used: %v.", err).
		WithHint("Check the files secrets.* in the data directory.").Because(err)
}

// SecretOperations implements the daemon's operations on secrets.
type SecretOperations struct {
	secrets SecretManager
	gateway *Gateway
	changed func()
}

// NewSecretOperations returns a SecretOperations. changed is called after a secret may have changed.
func NewSecretOperations(s SecretManager, g *Gateway, changed func()) *SecretOperations {
	return &SecretOperations{s, g, changed}
}

// ListSecrets returns the stored secrets and the secrets that servers need.
func (s *SecretOperations) ListSecrets(ctx context.Context, _ Caller, _ Nothing) (SecretViews, error) {
	return s.secrets.List(ctx)
}

// SetSecret stores a secret and restarts the servers that need it. The record contains only the name.
func (s *SecretOperations) SetSecret(ctx context.Context, c Caller, in SetSecretRequest) (v SecretView, err error) {
	if err := ValidateSecret(in.Name, in.Value); err != nil {
		return v, err
	}
	err = s.gateway.runConfigChange(c, "set_secret", in.Name, func() error {
		v, err = s.secrets.Set(ctx, in)
		return err
	})
	s.changed()
	return v, err
}

// DeleteSecret deletes a secret. The servers that need it stop.
func (s *SecretOperations) DeleteSecret(ctx context.Context, c Caller, in SecretRef) (v SecretView, err error) {
	if err := checkSecretName(in.Name); err != nil {
		return v, err
	}
	err = s.gateway.runConfigChange(c, "delete_secret", in.Name, func() error {
		v, err = s.secrets.Delete(ctx, in)
		return err
	})
	s.changed()
	return v, err
}
