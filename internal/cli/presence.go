package cli

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

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
	return commandSpec{flags: map[string]any{"cancel": &cancel, "yes": &agreed.yes}, run: showResultRunFunc(r, func(ctx context.Context, c *api.Client, _ []string) (none ops.PresenceView, err error) {
		if cancel {
			return api.KeepPresence.Call(ctx, c, ops.Nothing{})
		}
		if err := r.requireConfirmation(ctx, agreed, "All approvals become invalid, and nothing can be approved for 24 hours. Reset presence?", "To skip this question, pass --yes."); err != nil {
			return none, err
		}
		return api.ResetPresence.Call(ctx, c, ops.Nothing{})
	}, writePresence)}
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

// userTerminal is the terminal of the user, regardless of stdin and stdout. Passphrases are read only from it.
type userTerminal struct {
	in, out *os.File
	*term.Terminal
}

func openUserTerminal() (*userTerminal, error) {
	in, out, err := openUserTerminalFiles()
	if err != nil {
		return nil, problem.New(problem.PresenceRequired, "This requires your passphrase, but there is no terminal to ask for it.",
			"Run the command in a terminal.").Because(err)
	}
	return &userTerminal{in, out, term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, out}, "")}, nil
}

func (d *userTerminal) close() {
	_ = d.in.Close()
	_ = d.out.Close()
}

func (d *userTerminal) writeLine(format string, args ...any) {
	fmt.Fprintf(d.out, format+"\n", args...)
}

// readSecretLine reads a line without echo. It discards input that was typed before, returns io.EOF after an interrupt,
// and restores the terminal mode.
func (d *userTerminal) readSecretLine(ctx context.Context, question string) ([]byte, error) {
	before, err := term.MakeRaw(int(d.in.Fd()))
	if err != nil {
		return nil, problem.Newf(problem.PresenceRequired, "The terminal cannot be read: %v", err)
	}
	value, err := readUntilDone(ctx, func() (string, error) { return d.ReadPassword(question) })
	_ = term.Restore(int(d.in.Fd()), before)
	switch {
	case errors.Is(err, io.EOF):
		return nil, problem.New(problem.Interrupted, "Interrupted: nothing was changed.", "")
	case err != nil && ctx.Err() == nil:
		return nil, problem.Newf(problem.PresenceRequired, "The passphrase cannot be read: %v", err)
	}
	return []byte(value), err
}

const (
	maxShownClaims     = 20
	maxPassphraseTries = 3
)

// presenceSigner signs presence statements with the user's passphrase.
type presenceSigner struct {
	showAllClaims bool // show all claims, even above maxShownClaims
	// The anchor that this command sets, and its key. The user has just entered the passphrase.
	anchor presence.Digest
	key    ed25519.PrivateKey
}

// confirmAndSign shows the statement to the user and signs it. The passphrase never leaves this process.
func (s *presenceSigner) confirmAndSign(ctx context.Context, a presence.SignRequest) (none presence.SignedStatement, err error) {
	if a.Anchor.Kind != presence.Passphrase {
		return none, problem.New(problem.PresenceRequired, "Confirm this in the web UI.", "Open it with `mcpproxy ui`.")
	}
	d, err := openUserTerminal()
	if err != nil {
		return none, err
	}
	defer d.close()
	d.writeLine("You sign with %s:", toOneLine(a.For))
	s.showClaims(d, a.Claims)
	if s.key != nil && a.Anchor.Fingerprint() == s.anchor {
		return presence.SignStatement(a.Statement, s.key), nil
	}
	for range maxPassphraseTries {
		typed, err := d.readSecretLine(ctx, "Passphrase (empty to stop): ")
		switch {
		case err != nil:
			return none, err
		case len(typed) == 0:
			return none, problem.New(problem.Interrupted, "You did not sign: nothing was changed.", "")
		}
		key, err := a.Anchor.OpenSealedKey(typed)
		if err == nil {
			return presence.SignStatement(a.Statement, key), nil
		}
		if !errors.Is(err, presence.ErrPassphrase) {
			return none, err
		}
		d.writeLine("Wrong passphrase.")
	}
	return none, problem.New(problem.PresenceRequired, "The passphrase was wrong: nothing was changed.", "If you lost it, run `mcpproxy presence reset`.")
}

// showClaims shows the claims to sign. If there are more than maxShownClaims, it shows only their counts.
func (s *presenceSigner) showClaims(d *userTerminal, claims []presence.Claim) {
	if len(claims) <= maxShownClaims || s.showAllClaims {
		for _, c := range claims {
			d.writeLine("  %s", escapeInvisibleLine(string(c)))
		}
		return
	}
	counts := map[string]int{}
	var words []string
	for _, c := range claims {
		what, _, _ := strings.Cut(string(c), ` "`)
		if counts[what]++; counts[what] == 1 {
			words = append(words, what)
		}
	}
	slices.Sort(words)
	for _, what := range words {
		d.writeLine("  %s: %d", escapeInvisibleLine(what), counts[what])
	}
	d.writeLine("  (To show the whole list, pass --all.)")
}
