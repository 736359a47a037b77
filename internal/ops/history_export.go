package ops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"

	"mcpproxy/internal/store/activity"
)

// ExportQuery selects records to export.
type ExportQuery struct {
	activity.Filter
	Format ExportFormat `query:"format" doc:"The format. jsonl (application/x-ndjson): one record per line, as GET /activity/{id} returns it, with its proof; the last lines have no id and prove the whole export. csv (text/csv): a table of the main fields. Default: jsonl."`
	Bodies bool         `query:"include_bodies" doc:"Whether the export contains arguments and responses."`
}

// ExportFormat is the format of an export.
type ExportFormat string

// The formats of an export.
const (
	JSONL ExportFormat = "jsonl"
	CSV   ExportFormat = "csv"
)

// Words returns all formats.
func (ExportFormat) Words() []string { return []string{string(JSONL), string(CSV)} }

// Export returns the selected records as a file to download. The newest records come first.
func (h *ActivityHistory) Export(_ context.Context, _ Caller, in ExportQuery) (Download, error) {
	if in.Format == "" {
		in.Format = JSONL
	}
	kind := "application/x-ndjson"
	if in.Format == CSV {
		kind = "text/csv; charset=utf-8"
	}
	return Download{
		Type: kind, Name: "mcpproxy-activity-" + h.now().UTC().Format("20060102T150405Z") + "." + string(in.Format),
		Stream: func(ctx context.Context, w io.Writer) error { return h.writeExport(ctx, &in, w) },
	}, nil
}

// exportWriteSize is the approximate size of one write.
const exportWriteSize = 64 << 10

func (h *ActivityHistory) writeExport(ctx context.Context, in *ExportQuery, w io.Writer) error {
	if in.Format == JSONL {
		return h.writeJSONLines(ctx, in, w)
	}
	var buf bytes.Buffer
	table := csv.NewWriter(&buf)
	if err := table.Write(csvColumns(in.Bodies)); err != nil {
		return err
	}
	err := h.log.EachRecord(ctx, in.Filter, func(r *activity.Record) error {
		fillMissingIntentOperation(r)
		if err := table.Write(csvRow(r, in.Bodies)); err != nil {
			return err
		}
		table.Flush()
		if buf.Len() < exportWriteSize {
			return nil
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

// writeJSONLines writes each record with its proof on one line, then the lines that prove the whole export.
func (h *ActivityHistory) writeJSONLines(ctx context.Context, in *ExportQuery, w io.Writer) error {
	out := hashingLineWriter{to: w, sum: sha256.New()}
	end := exportEndLine{Format: exportFormat, Filtered: !in.Filter.SelectsAll(), Bodies: in.Bodies, Time: h.now().UTC(), Signer: h.log.SigningKey().String()}
	at, err := h.log.EachStoredRecord(ctx, in.Filter, func(s *activity.StoredRecord) error {
		end.Records++
		line, err := encodeStoredRecord(s, end.Records, in.Bodies)
		if err != nil {
			return err
		}
		return out.writeLine(line)
	})
	if err != nil {
		return err
	}
	end.setChainPosition(at)
	if err := h.log.EachGapAndCheckpoint(ctx, func(p activity.ChainPart) error { return out.writeLine(encodeChainPart(&p)) }); err != nil {
		return err
	}
	end.SHA256 = hex.EncodeToString(out.sum.Sum(nil))
	line, err := end.toSignedLine(h.log.SigningKey().SignText)
	if err == nil {
		err = out.writeLine(line)
	}
	return errors.Join(err, out.flush())
}

// hashingLineWriter buffers and hashes lines.
type hashingLineWriter struct {
	to  io.Writer
	sum hash.Hash
	buf bytes.Buffer
}

func (w *hashingLineWriter) writeLine(line []byte) error {
	w.buf.Write(line)
	w.buf.WriteByte('\n')
	w.sum.Write(line)
	w.sum.Write([]byte{'\n'})
	if w.buf.Len() < exportWriteSize {
		return nil
	}
	return w.flush()
}

func (w *hashingLineWriter) flush() error {
	_, err := w.buf.WriteTo(w.to)
	return err
}

func csvColumns(bodies bool) []string {
	all := []string{"id", "time", "type", "status", "server", "tool", "operation_type", "duration_ms", "own_us", "session", "actor", "client", "error_code", "reason", "repeated"}
	if bodies {
		all = append(all, "arguments", "response")
	}
	return all
}

// csvRow returns the cells of a record, in the order of csvColumns.
func csvRow(r *activity.Record, bodies bool) []string {
	intent := activity.Intent{}
	if r.Metadata.Intent != nil {
		intent = *r.Metadata.Intent
	}
	all := []string{
		r.ID, r.Timestamp.UTC().Format(time.RFC3339Nano), string(r.Type), string(r.Status), r.ServerName, r.ToolName, intent.OperationType,
		strconv.FormatInt(r.DurationMS, 10), strconv.FormatInt(r.OwnUS, 10), r.SessionID, r.Actor, r.ClientName, r.Metadata.ErrorCode, intent.Reason,
		strconv.FormatInt(max(r.Repeated, 1), 10), // identical refusals are one record
	}
	if bodies {
		all = append(all, string(r.Arguments), string(r.Response))
	}
	for i, cell := range all {
		all[i] = escapeFormula(cell)
	}
	return all
}

// escapeFormula prevents spreadsheets from evaluating a cell as a formula (OWASP, "CSV Injection").
func escapeFormula(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) || strings.HasPrefix(cell, "＝") || strings.HasPrefix(cell, "＋") || strings.HasPrefix(cell, "－") || strings.HasPrefix(cell, "＠") {
		return "'" + cell
	}
	return cell
}
