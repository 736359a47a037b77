package cli

import (
	"context"
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

// activityExport writes records as a file.
func activityExport(r *run) command {
	var flags listFlags
	q := ops.ExportQuery{}
	format, path := "", ""
	all := filters(&q.Filter, &flags)
	all["format"], all["include-bodies"], all["file"] = &format, &q.Bodies, &path
	return command{flags: all, run: r.withClient(func(ctx context.Context, c *api.Client, _ []string) (err error) {
		if q.Filter, err = filter(r, q.Filter, flags); err != nil {
			return err
		}
		q.Format = ops.ExportFormat(format)
		if path == "" {
			return api.ExportActivity.Stream(ctx, c, q, r.Stdout)
		}
		return exportTo(ctx, c, q, path)
	})}
}

// exportTo writes an export to a file, completely or not at all: it renames the file at the end.
func exportTo(ctx context.Context, c *api.Client, q ops.ExportQuery, path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // accessible only to its owner
	if err != nil {
		return exportWriteError(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := api.ExportActivity.Stream(ctx, c, q, f); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return exportWriteError(err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return exportWriteError(err)
	}
	return nil
}

func exportWriteError(err error) error {
	return problem.Newf(problem.Usage, "The export cannot be written: %v.", err)
}

// activityVerify verifies the log of the daemon, or an export.
func activityVerify(r *run) command {
	key := ""
	return command{flags: map[string]any{"key": &key}, run: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return verifyFile(r, args[0], key)
		}
		return r.withClient(func(ctx context.Context, c *api.Client, _ []string) error {
			v, err := api.VerifyActivity.Call(ctx, c, struct{}{})
			if err != nil {
				return err
			}
			if key != "" && key != v.Signer {
				v.OK, v.FirstBreak = false, &activity.Break{Reason: "The log is signed with the key " + dashIfEmpty(v.Signer) + ", and not with " + key + "."}
			}
			if err := r.print(v, func(p *printer) {
				p.line("%d records, %d entries, read in %d ms.", v.Records, v.Entries, v.TookMS)
				writeSigner(p, v.Signer)
			}); err != nil {
				return err
			}
			return verificationError(v.OK, v.FirstBreak, "The log is not as it was written.")
		})(cmd, args)
	}}
}

func verifyFile(r *run, path, key string) error {
	f, err := os.Open(path)
	if err != nil {
		return problem.Newf(problem.Usage, "The export cannot be read: %v.", err)
	}
	defer func() { _ = f.Close() }()
	v, err := ops.VerifyExport(f, key)
	if err != nil {
		return err
	}
	if err := r.print(v, func(p *printer) { writeFileVerification(p, v) }); err != nil {
		return err
	}
	return verificationError(v.OK, v.FirstBreak, "The export is not as it was written.")
}

func writeFileVerification(p *printer, v ops.ExportVerification) {
	p.line("%d records, %d entries, of which %d were held against the one before.", v.Records, v.Entries, v.Linked)
	if v.Filtered {
		p.line("The export is filtered: what it has is as it was written, and nothing is said of the rest of the log.")
	}
	if v.Withheld > 0 {
		p.line("%d values are left out; the log commits to them.", v.Withheld)
	}
	if v.Erased > 0 {
		p.line("%d values were erased by a person, which is on record.", v.Erased)
	}
	writeSigner(p, v.Signer)
}

func writeSigner(p *printer, signer string) {
	if signer != "" {
		p.line("Signed with %s", oneLine(signer))
	}
}

// verificationError returns the error of a failed verification.
func verificationError(ok bool, first *activity.Break, message string) error {
	if ok {
		return nil
	}
	p := problem.New(problem.Unproven, message, "What was before that entry is as it was written.")
	if first == nil {
		return p
	}
	p.Message += " " + first.Reason
	if first.ID != "" {
		p.Message += " Record " + first.ID + "."
	}
	return p.With("seq", first.Seq).With("id", first.ID).With("reason", first.Reason)
}

// activityRedact erases fields of a record.
func activityRedact(r *run) command {
	var fields commaList
	var yes consent
	return command{flags: map[string]any{"field": &fields, "yes": &yes.yes}, run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		if len(fields) == 0 {
			return usage("Say which fields to erase: --field", "They are "+strings.Join(activity.ErasableField("").Words(), ", ")+".")
		}
		in := ops.RedactRequest{ID: strings.TrimRight(args[0], "….")}
		for _, f := range fields {
			in.Fields = append(in.Fields, activity.ErasableField(f))
		}
		question := fmt.Sprintf("Erase %s of record %s, for good?", strings.Join(fields, ", "), in.ID)
		if err := r.confirm(ctx, yes, question, "Look with `mcpproxy activity show "+in.ID+"`, then give --yes."); err != nil {
			return err
		}
		record, err := api.RedactActivity.Call(ctx, c, in)
		if err != nil {
			return err
		}
		return r.print(record, func(p *printer) {
			p.line("Erased of record %s: %s. That it was done is on record.", oneLine(record.ID), strings.Join(fields, ", "))
		})
	})}
}
