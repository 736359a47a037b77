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
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// activityFilterFlags holds the values of the activity filter flags as the user typed them.
type activityFilterFlags struct {
	types, statuses []string
	since, until    string
	start, end      string
	users           []string
	noIcons         bool
}

// activityFilterFlagVars returns the variables of the activity filter flags, by flag name.
func activityFilterFlagVars(f *activity.Filter, flags *activityFilterFlags) map[string]any {
	return map[string]any{
		"type": (*commaListFlag)(&flags.types), "status": (*commaListFlag)(&flags.statuses), "server": (*commaListFlag)(&f.Servers), "tool": &f.Tools,
		"session": &f.SessionID, "request-id": &f.RequestID, "intent-type": (*commaListFlag)(&f.IntentTypes),
		"sensitivity": (*commaListFlag)(&f.Sensitivities), "actor": &f.Actors, "user": &flags.users, "client": &f.Clients, "since": &flags.since, "until": &flags.until,
		"start-time": &flags.start, "end-time": &flags.end, "search": &f.Search,
	}
}

func newActivityListCommand(r *invocation) commandSpec {
	var flags activityFilterFlags
	var onlyCalls bool
	f := activity.Filter{Limit: 50}
	all := activityFilterFlagVars(&f, &flags)
	all["limit"], all["cursor"], all["no-icons"] = &boundedIntFlag{&f.Limit, 1000}, &f.Cursor, &flags.noIcons
	return commandSpec{
		flags: all, completeFlags: r.activityFlagCompletions(),
		run: operationRunFunc(r, api.ListActivity, func(_ context.Context, _ *api.Client, _ []string) (activity.Filter, error) {
			if onlyCalls = len(flags.types) == 0; onlyCalls {
				flags.types = callTypes()
			}
			return toActivityFilter(r, f, flags)
		}, func(p *printer, page ops.ActivityList) {
			writeActivityTable(p, page, flags.noIcons)
			if onlyCalls {
				p.addNote("Only calls and rejected calls are listed. To list all records, pass --type all.")
			}
		}),
	}
}

// callTypes returns the types of calls and rejected calls.
func callTypes() []string {
	return []string{string(activity.ToolCall), string(activity.PolicyDecision)}
}

// everyType is the value of --type that selects every record.
const everyType = "all"

// toActivityFilter converts the typed filter flags to a filter for the daemon.
func toActivityFilter(r *invocation, f activity.Filter, flags activityFilterFlags) (activity.Filter, error) {
	for _, t := range flags.types {
		if t == everyType {
			f.Types = nil
			break
		}
		f.Types = append(f.Types, activity.Type(t))
	}
	f.Users = flags.users
	f.NormalizeUsers()
	f.Statuses = mapSlice(flags.statuses, func(s string) activity.Status { return activity.Status(s) })
	since, err := atMostOneValue("--since", flags.since, flags.start)
	if err != nil {
		return f, err
	}
	until, err := atMostOneValue("--until", flags.until, flags.end)
	if err != nil {
		return f, err
	}
	if f.Since, err = r.parseTimeFlag("--since", since); err != nil {
		return f, err
	}
	f.Until, err = r.parseTimeFlag("--until", until)
	return f, err
}

func newActivityShowCommand(r *invocation) commandSpec {
	var noIcons bool
	return commandSpec{flags: map[string]any{"no-icons": &noIcons}, run: operationRunFunc(r, api.GetActivity, func(_ context.Context, _ *api.Client, args []string) (ops.RecordRef, error) {
		return ops.RecordRef{ID: strings.TrimRight(args[0], "….")}, nil
	}, func(p *printer, record activity.Record) { writeActivityRecord(p, record, noIcons) })}
}

// newActivitySummaryCommand returns `activity summary`, which prints call counts and latencies by group.
func newActivitySummaryCommand(r *invocation) commandSpec {
	var flags activityFilterFlags
	q := ops.SummaryQuery{Group: activity.ByTool}
	all := activityFilterFlagVars(&q.Filter, &flags)
	all["period"], all["group"] = &q.Period, (*string)(&q.Group)
	return commandSpec{flags: all, completeFlags: r.activityFlagCompletions(), run: operationRunFunc(r, api.GetSummary, func(_ context.Context, _ *api.Client, _ []string) (in ops.SummaryQuery, err error) {
		in = q
		in.Filter, err = toActivityFilter(r, q.Filter, flags)
		return in, err
	}, func(p *printer, s ops.Summary) { writeActivitySummary(p, s, string(q.Group)) })}
}

func writeActivitySummary(p *printer, s ops.Summary, group string) {
	if s.Cut {
		p.addNote("There are older records that were not counted.")
	}
	if s.Incomplete {
		p.addNote("The newest records are missing because the database cannot store them now. See `mcpproxy status`.")
	}
	var f fieldList
	f.add("From", s.Since.In(p.timeZone).Format(time.DateTime))
	f.add("To", s.Until.In(p.timeZone).Format(time.DateTime))
	f.add("Calls", strconv.FormatInt(s.Calls, 10))
	f.add("Refused", strconv.FormatInt(s.Refused, 10))
	f.add("Failed", strconv.FormatInt(s.Failed, 10)+" ("+strconv.FormatInt(s.FailedTool, 10)+" by the tool, "+strconv.FormatInt(s.FailedServer, 10)+" by the server)")
	f.add("Duration", "p50 "+formatMilliseconds(s.P50)+", p95 "+formatMilliseconds(s.P95))
	f.add("Own time", "p50 "+formatMicroseconds(s.OwnP50)+", p95 "+formatMicroseconds(s.OwnP95))
	f.write(p)
	if len(s.Groups) == 0 {
		return
	}
	p.writeLine("")
	name := map[string]string{"tool": "TOOL", "server": "SERVER", "lane": "LANE", "client": "CLIENT"}[group]
	t := table{p: p, header: []string{name, "CALLS", "REFUSED", "FAILED", "ERRORS", "P50", "P95", "OWN P50", "LAST"}, rightAligned: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true},
		narrowingSteps: append(append(columnHidingSteps("OWN P50", "LAST"), columnTruncationStep(name, 16)...), columnHidingSteps("REFUSED", "P50")...)}
	for _, g := range s.Groups {
		t.addRow(cmp.Or(toOneLine(g.Key), "-"), strconv.FormatInt(g.Calls, 10), strconv.FormatInt(g.Refused, 10), strconv.FormatInt(g.Failed, 10), formatShareAsPercent(g.Failed, g.Calls),
			formatMilliseconds(g.P50), formatMilliseconds(g.P95), formatMicroseconds(g.OwnP50), p.formatTime(&g.Last))
	}
	t.write()
}

func formatMilliseconds(ms int64) string { return strconv.FormatInt(ms, 10) + "ms" }

func formatMicroseconds(us int64) string { return (time.Duration(us) * time.Microsecond).String() }

// formatShareAsPercent formats part as a percentage of all.
func formatShareAsPercent(part, all int64) string {
	if all == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(part)/float64(all), 'f', 1, 64) + "%"
}

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
	return problem.New(problem.Unproven, "The signatures do not match this key. "+mismatch.Reason, hint).With("seq", mismatch.Seq).With("reason", mismatch.Reason)
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
		in.Fields = mapSlice(fields, func(f string) activity.ErasableField { return activity.ErasableField(f) })
		question := fmt.Sprintf("Erase %s of record %s permanently?", strings.Join(fields, ", "), in.ID)
		return in, r.requireConfirmation(ctx, yes, question, "Review with `mcpproxy activity show "+in.ID+"`, then pass --yes.")
	}, func(p *printer, record activity.Record) {
		p.writeLine("Erased from record %s: %s. The log records the erasure.", toOneLine(record.ID), strings.Join(fields, ", "))
	})}
}
