package cli

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
)

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
