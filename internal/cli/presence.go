package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// newPresenceSetCommand returns `presence set`, which sets the passphrase or passkey that proves a user's decisions.
func newPresenceSetCommand(r *invocation) commandSpec {
	var made string
	return commandSpec{complete: newFixedCompletion("passphrase", "passkey", "none"), flags: map[string]any{"all": &r.signer.showAllClaims, "anchor": &made}, run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
		now, err := api.GetPresence.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		if made != "" && args[0] != "passkey" {
			return newUsageError("--anchor is for a passkey.", "Copy the command from the web UI.")
		}
		next := presence.Anchor{Kind: presence.None, Since: r.Now().UTC()}
		if err := next.Before.UnmarshalText([]byte(now.Head)); err != nil {
			return problem.From(err)
		}
		switch args[0] {
		case "passphrase":
			if next, err = r.signer.promptNewPassphrase(ctx, next.Before, r.Now()); err != nil {
				return err
			}
		case "passkey":
			if made == "" {
				return openPasskeyPage(ctx, r, c)
			}
			if next, err = parsePasskeyAnchor(made); err != nil {
				return err
			}
			r.printMessage("The fingerprint of the new passkey is %s.", next.Fingerprint())
		case "none":
			if !now.On {
				return problem.New(problem.Conflict, "Presence is already off.", "")
			}
		default:
			return newUsageError("Set a passphrase, a passkey or none.", "For example: mcpproxy presence set passphrase")
		}
		text, err := next.StoredJSON()
		if err != nil {
			return err
		}
		v, err := api.SetPresence.Call(ctx, c, ops.SetAnchorRequest{Anchor: text})
		if err != nil {
			return err
		}
		return printPresence(ctx, r, c, v)
	})}
}

// openPasskeyPage opens the page that creates a passkey. Its address has a host name, because browsers create no
// passkeys for IP addresses.
func openPasskeyPage(ctx context.Context, r *invocation, c *api.Client) error {
	address, err := fetchUIAddress(ctx, c)
	if err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return problem.From(err)
	}
	return openOrPrintUI(ctx, r, c, presence.PageOrigin(u.Port())+u.Path+"settings?part=passkey", false)
}

// parsePasskeyAnchor parses the anchor that the page created.
func parsePasskeyAnchor(text string) (presence.Anchor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return presence.Anchor{}, newUsageError("The value of --anchor differs from the one that the web UI shows.", "Copy the whole command from the web UI.")
	}
	a, err := presence.ParseAnchor(raw)
	if err != nil || a.Kind != presence.Passkey {
		return presence.Anchor{}, newUsageError("The value of --anchor is not a passkey.", "Copy the whole command from the web UI.")
	}
	return a, nil
}

// promptNewPassphrase asks twice for a new passphrase and returns its anchor.
func (s *presenceSigner) promptNewPassphrase(ctx context.Context, after presence.Digest, now time.Time) (a presence.Anchor, err error) {
	d, err := openUserTerminal()
	if err != nil {
		return a, err
	}
	defer d.close()
	d.writeLine("A user who can read the database can try passphrases offline. Use several words.")
	first, err := d.readSecretLine(ctx, "New passphrase: ")
	if err != nil {
		return a, err
	}
	second, err := d.readSecretLine(ctx, "Repeat it: ")
	switch {
	case err != nil:
		return a, err
	case !bytes.Equal(first, second):
		return a, problem.New(problem.Usage, "The passphrases differ: nothing was changed.", "")
	}
	a, key, err := presence.NewPassphraseAnchor(first, after, now)
	if err != nil {
		return a, problem.New(problem.Usage, "This passphrase is not accepted: "+err.Error()+".", "Use a longer one.")
	}
	s.anchor, s.key = a.Fingerprint(), key
	return a, nil
}

// newPresenceTestCommand returns `presence test`, which reports whether decisions are valid, and checks the passphrase.
func newPresenceTestCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) error {
		v, err := api.GetPresence.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		if err := r.printOutput(v, func(p *printer) { writePresence(p, v) }); err != nil || !v.On || v.Void != "" {
			return err
		}
		anchor, err := presence.ParseAnchor(v.Anchor)
		if err != nil {
			return problem.From(err)
		}
		if anchor.Kind != presence.Passphrase {
			return nil
		}
		d, err := openUserTerminal()
		if err != nil {
			return err
		}
		defer d.close()
		typed, err := d.readSecretLine(ctx, "Passphrase: ")
		if err != nil {
			return err
		}
		if _, err := anchor.OpenSealedKey(typed); errors.Is(err, presence.ErrPassphrase) {
			return problem.New(problem.PresenceRequired, "Wrong passphrase.", "If you lose it, run `mcpproxy presence reset`.")
		} else if err != nil {
			return problem.From(err)
		}
		d.writeLine("The passphrase is correct.")
		return nil
	})}
}

// newPresenceJoinCommand returns `presence join`, with which the user confirms the anchor of a shared database.
func newPresenceJoinCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) error {
		v, err := api.JoinPresence.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		return printPresence(ctx, r, c, v)
	})}
}

// printPresence prints the state of presence. It adds a note if configuration changes await confirmation, because none
// is confirmed after a join or a reset.
func printPresence(ctx context.Context, r *invocation, c *api.Client, v ops.PresenceView) error {
	status, err := api.GetStatus.Call(ctx, c, ops.Nothing{})
	return r.printOutput(v, func(p *printer) {
		if writePresence(p, v); v.On && v.Void == "" && err == nil && status.Unconfirmed > 0 {
			p.addNote("Changes of the configuration file that grant more access await confirmation. To confirm them, run `mcpproxy config confirm`.")
		}
	})
}

// newPresenceResetCommand returns `presence reset`, which invalidates all signatures or cancels a reset.
func newPresenceResetCommand(r *invocation) commandSpec {
	cancel := false
	agreed := confirmationFlags{}
	return commandSpec{flags: map[string]any{"cancel": &cancel, "yes": &agreed.yes}, run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) error {
		op := api.ResetPresence
		if cancel {
			op = api.KeepPresence
		} else if err := r.requireConfirmation(ctx, agreed, "All approvals become invalid, and nothing can be approved for 24 hours. Reset presence?", "To skip this question, pass --yes."); err != nil {
			return err
		}
		v, err := op.Call(ctx, c, ops.Nothing{})
		if err != nil {
			return err
		}
		return r.printOutput(v, func(p *printer) { writePresence(p, v) })
	})}
}

func writePresence(p *printer, v ops.PresenceView) {
	switch {
	case !v.On:
		p.writeLine("Presence is off: any program that runs under your account can approve for you.")
		p.addNote("To require a passphrase, run `mcpproxy presence set passphrase`.")
		return
	case v.Void != "":
		p.writeLine("No approval is valid. %s", toOneLine(v.Void))
		p.addNote("%s", toOneLine(v.Remedy))
	default:
		p.writeLine("Changes that grant more access have required the %s since %s.", escapeInvisibleLine(string(v.Kind)), p.formatTime(v.Since))
	}
	var f fieldList
	if v.Fingerprint != "" {
		f.add("Anchor", escapeInvisibleLine(v.Fingerprint))
	}
	for _, place := range v.Places {
		f.add("In "+escapeInvisibleLine(place.Name), string(place.State))
	}
	f.write(p)
	if len(v.Bad) > 0 {
		p.addNote("%d signatures are invalid: %s.", len(v.Bad), toOneLine(strings.Join(v.Bad, ", ")))
	}
	for _, what := range v.Unsigned {
		p.addNote("This decision has no signature: %s", toOneLine(what))
	}
}
