package cli

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// newActivityExportCommand returns `activity export`, which writes records to stdout or to a file.
func newActivityExportCommand(r *invocation) commandSpec {
	var flags activityFilterFlags
	q := ops.ExportQuery{}
	format, path := "", ""
	all := activityFilterFlagVars(&q.Filter, &flags)
	all["format"], all["include-bodies"], all["file"] = &format, &q.Bodies, &path
	return commandSpec{flags: all, completeFlags: r.activityFlagCompletions(), run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) (err error) {
		if len(flags.types) == 0 && len(flags.statuses) > 0 { // the statuses are those of calls, as in activity list
			flags.types = callTypes()
			r.printMessage("Only calls and rejected calls are exported. To export all records, pass --type all.")
		}
		if q.Filter, err = toActivityFilter(r, q.Filter, flags); err != nil {
			return err
		}
		q.Format = ops.ExportFormat(format)
		if path == "" {
			return api.ExportActivity.Stream(ctx, c, q, r.Stdout)
		}
		return exportActivityToFile(ctx, c, q, path)
	})}
}

// exportActivityToFile writes an export to a temporary file and renames it at the end, so that path never contains a
// partial export.
func exportActivityToFile(ctx context.Context, c *api.Client, q ops.ExportQuery, path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // mode 0600: accessible only to its owner
	if err != nil {
		return newExportWriteError(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := api.ExportActivity.Stream(ctx, c, q, f); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return newExportWriteError(err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return newExportWriteError(err)
	}
	return nil
}

func newExportWriteError(err error) error {
	return problem.Newf(problem.Usage, "The export cannot be written: %v.", err)
}

// newActivityVerifyCommand returns `activity verify`, which verifies the daemon's activity log or an export.
func newActivityVerifyCommand(r *invocation) commandSpec {
	key := ""
	return commandSpec{flags: map[string]any{"key": &key}, run: func(cmd *cobra.Command, args []string) error {
		if err := checkPublicKeyForm(key); err != nil {
			return err
		}
		if len(args) > 0 {
			return verifyExportFile(r, args[0], key)
		}
		return r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) error {
			v, err := api.VerifyActivity.Call(ctx, c, struct{}{})
			if err != nil {
				return err
			}
			otherKey := v.OK && key != "" && key != v.Signer
			if otherKey {
				v.OK, v.FirstBreak = false, &activity.Break{Reason: "The log is signed with the key " + cmp.Or(v.Signer, "-") + " instead of " + key + "."}
			}
			if err := r.printOutput(v, func(p *printer) {
				p.writeLine("%d records, %d entries, read in %d ms.", v.Records, v.Entries, v.TookMS)
				writeLogSigner(p, v.Signer)
			}); err != nil {
				return err
			}
			if otherKey {
				return otherKeyError(v.FirstBreak, "The log is unchanged. Compare the key with the one that you noted before.")
			}
			return verificationError(v.OK, v.FirstBreak, "The log was changed.")
		})(cmd, args)
	}}
}

// checkPublicKeyForm rejects a --key that cannot be a public key.
func checkPublicKeyForm(key string) error {
	if b, err := hex.DecodeString(key); key != "" && (err != nil || len(b) != ed25519.PublicKeySize || key != strings.ToLower(key)) {
		return newUsageError(fmt.Sprintf("Invalid value '%s' for --key: must be %d hexadecimal digits in lower case", toPrintable(key), hex.EncodedLen(ed25519.PublicKeySize)),
			"`mcpproxy activity verify` shows the whole key of the log.")
	}
	return nil
}

// otherKeyError returns the error of a verification with a key that is not the signer's.
func otherKeyError(mismatch *activity.Break, hint string) error {
	return problem.New(problem.Unproven, "The signatures do not verify with this key. "+mismatch.Reason, hint).With("seq", mismatch.Seq).With("reason", mismatch.Reason)
}

func verifyExportFile(r *invocation, path, key string) error {
	f, err := os.Open(path)
	if err != nil {
		return problem.Newf(problem.Usage, "The export cannot be read: %v.", err)
	}
	defer func() { _ = f.Close() }()
	v, err := ops.VerifyExport(f, key)
	if err != nil {
		return err
	}
	if err := r.printOutput(v, func(p *printer) { writeExportVerification(p, v) }); err != nil {
		return err
	}
	if !v.OK && key != "" && v.Signer != "" && v.Signer != key { // the verification ends at the key
		return otherKeyError(v.FirstBreak, "The content was not checked. Compare the key with the one that `mcpproxy activity verify` shows where the export was written.")
	}
	return verificationError(v.OK, v.FirstBreak, "The export was changed.")
}

func writeExportVerification(p *printer, v ops.ExportVerification) {
	p.writeLine("%d records, %d entries, of which %d were checked against the previous one.", v.Records, v.Entries, v.Linked)
	if v.Filtered {
		p.writeLine("The export is filtered. Its records are unchanged; it does not cover the rest of the log.")
	}
	if v.Withheld > 0 {
		p.writeLine("%d values are left out; their hashes are verified.", v.Withheld)
	}
	if v.Erased > 0 {
		p.writeLine("%d values were erased by a user; the log has a record of it.", v.Erased)
	}
	writeLogSigner(p, v.Signer)
}

func writeLogSigner(p *printer, signer string) {
	if signer != "" {
		p.writeLine("Signed with %s", toOneLine(signer))
	}
}

// verificationError returns the error of a failed verification.
func verificationError(ok bool, first *activity.Break, message string) error {
	if ok {
		return nil
	}
	p := problem.New(problem.Unproven, message, "Entries before it are unchanged.")
	if first == nil {
		return p
	}
	p.Message += " " + first.Reason
	if first.ID != "" {
		p.Message += " Record " + first.ID + "."
	}
	return p.With("seq", first.Seq).With("id", first.ID).With("reason", first.Reason)
}

// newActivityRedactCommand returns `activity redact`, which erases fields of a record.
func newActivityRedactCommand(r *invocation) commandSpec {
	var fields commaListFlag
	var yes confirmationFlags
	return commandSpec{flags: map[string]any{"field": &fields, "yes": &yes.yes}, run: operationRunFunc(r, api.RedactActivity, func(ctx context.Context, _ *api.Client, args []string) (in ops.RedactRequest, err error) {
		if len(fields) == 0 {
			return in, newUsageError("Name the fields to erase: --field", "They are "+strings.Join(activity.ErasableField("").Words(), ", ")+".")
		}
		in.ID = strings.TrimRight(args[0], "….")
		for _, f := range fields {
			in.Fields = append(in.Fields, activity.ErasableField(f))
		}
		question := fmt.Sprintf("Erase %s of record %s permanently?", strings.Join(fields, ", "), in.ID)
		return in, r.requireConfirmation(ctx, yes, question, "Review with `mcpproxy activity show "+in.ID+"`, then pass --yes.")
	}, func(p *printer, record activity.Record) {
		p.writeLine("Erased from record %s: %s. The log records the erasure.", toOneLine(record.ID), strings.Join(fields, ", "))
	})}
}
