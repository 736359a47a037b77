package history

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/rawjson"
)

// ExportQuery asks for records as a file.
type ExportQuery struct {
	activity.Filter
	Format Format `query:"format" doc:"jsonl (application/x-ndjson): a record in a line, as one alone is shown, but for its place in the chain; or csv (text/csv): a table of what matters. jsonl when it is left out."`
	Bodies bool   `query:"include_bodies" doc:"Whether arguments and responses are in it, too."`
}

// Format is how an export is written.
type Format string

// The formats.
const (
	JSONL Format = "jsonl"
	CSV   Format = "csv"
)

// Words are all formats.
func (Format) Words() []string { return []string{string(JSONL), string(CSV)} }

// Export returns the records that are there by now, the newest first, as a file.
func (h *History) Export(_ context.Context, _ gateway.Caller, in ExportQuery) (gateway.File, error) {
	if in.Format == "" {
		in.Format = JSONL
	}
	kind := "application/x-ndjson"
	if in.Format == CSV {
		kind = "text/csv; charset=utf-8"
	}
	return gateway.File{
		Type: kind, Name: "mcpproxy-activity-" + h.now().UTC().Format("20060102T150405Z") + "." + string(in.Format),
		Stream: func(ctx context.Context, w io.Writer) error { return h.export(ctx, &in, w) },
	}, nil
}

// exportWrite is how many bytes are written at a time, about.
const exportWrite = 64 << 10

func (h *History) export(ctx context.Context, in *ExportQuery, w io.Writer) error {
	var buf bytes.Buffer
	table := csv.NewWriter(&buf)
	add := func(r *activity.Record) error {
		line, err := rawjson.Marshal(r)
		buf.Write(line)
		buf.WriteByte('\n')
		return err
	}
	if in.Format == CSV {
		if err := table.Write(columns(in.Bodies)); err != nil {
			return err
		}
		add = func(r *activity.Record) error {
			err := table.Write(cells(r, in.Bodies))
			table.Flush()
			return err
		}
	}
	err := h.log.Each(ctx, in.Filter, func(r *activity.Record) error {
		gateway.CompleteIntent(r)
		if !in.Bodies {
			r.Arguments, r.Response = nil, nil
		}
		if err := add(r); err != nil || buf.Len() < exportWrite {
			return err
		}
		_, err := buf.WriteTo(w)
		return err
	})
	if err != nil {
		return err
	}
	table.Flush()
	_, err = buf.WriteTo(w)
	return err
}

func columns(bodies bool) []string {
	all := []string{"id", "time", "type", "status", "server", "tool", "operation_type", "duration_ms", "own_us", "session", "actor", "client", "error_code", "reason"}
	if bodies {
		all = append(all, "arguments", "response")
	}
	return all
}

// cells is a record as columns says.
func cells(r *activity.Record, bodies bool) []string {
	intent := activity.Intent{}
	if r.Metadata.Intent != nil {
		intent = *r.Metadata.Intent
	}
	all := []string{
		r.ID, r.Timestamp.UTC().Format(time.RFC3339Nano), string(r.Type), string(r.Status), r.ServerName, r.ToolName, intent.OperationType,
		strconv.FormatInt(r.DurationMS, 10), strconv.FormatInt(r.OwnUS, 10), r.SessionID, r.Actor, r.ClientName, r.Metadata.ErrorCode, intent.Reason,
	}
	if bodies {
		all = append(all, string(r.Arguments), string(r.Response))
	}
	for i, cell := range all {
		all[i] = plain(cell)
	}
	return all
}

// plain makes sure that a program for tables shows a cell and does not run it as a
// formula (OWASP, "CSV Injection").
func plain(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) || strings.HasPrefix(cell, "＝") || strings.HasPrefix(cell, "＋") || strings.HasPrefix(cell, "－") || strings.HasPrefix(cell, "＠") {
		return "'" + cell
	}
	return cell
}
