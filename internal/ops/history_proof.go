package ops

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// An export in JSON Lines consists of these lines:
//
//	a record, with the member "proof": its line number and its log entries
//	…
//	{"gone":…}        a range of entries that are no longer in the log
//	{"checkpoint":…}  a signed position
//	…
//	{"end":…}         the end of the chain, the key, the SHA-256 of all lines before, a signature
//
// Verification encodes the content of each line again and compares the bytes, so that it detects every changed byte.

// exportFormat is the version of this format.
const exportFormat = 1

// exportEndLine is the last line of an export.
type exportEndLine struct {
	Format   int       `json:"format"`
	Records  int64     `json:"records"`
	Filtered bool      `json:"filtered"`
	Bodies   bool      `json:"bodies"`
	Time     time.Time `json:"time"`
	Chain    string    `json:"chain"`
	Seq      int64     `json:"seq"`
	Hash     string    `json:"hash"`
	Signer   string    `json:"signer"`
	SHA256   string    `json:"sha256"`
}

func (e *exportEndLine) setChainPosition(p activity.SpoolPosition) {
	e.Chain, e.Seq, e.Hash = p.Chain, p.Seq, hex.EncodeToString(p.Hash[:])
}

func (e *exportEndLine) chainPosition() (p activity.SpoolPosition, ok bool) {
	p.Chain, p.Seq = e.Chain, e.Seq
	n, err := hex.Decode(p.Hash[:], []byte(e.Hash)[:min(len(e.Hash), 2*len(p.Hash))])
	return p, err == nil && n == len(p.Hash)
}

const (
	recordStart    = `{"id":"`
	proofMember    = `,"proof":{"line":`
	signatureStart = `,"signature":"`
	endStart       = `{"end":`
)

// toSignedLine returns {"end":{…},"signature":"…"}. The signature covers everything before the last comma.
func (e *exportEndLine) toSignedLine(sign func([]byte) []byte) ([]byte, error) {
	text, err := wirejson.MarshalWithoutHTMLEscape(e)
	line := append([]byte(endStart), text...)
	signature := sign(line)
	line = hex.AppendEncode(append(line, signatureStart...), signature)
	return append(line, `"}`...), err
}

// encodeStoredRecord encodes a stored record with its proof as line n.
func encodeStoredRecord(s *activity.StoredRecord, n int64, bodies bool) ([]byte, error) {
	r := activity.DecodeForDisplay(s.Entry, s.Outcome)
	return encodeRecordLine(&r, n, s.ExportEntries(bodies), bodies)
}

// encodeRecordLine encodes a record as line n of an export, with the log entries that prove it.
func encodeRecordLine(r *activity.Record, n int64, entries []activity.ExportedEntry, bodies bool) ([]byte, error) {
	fillMissingIntentOperation(r)
	if !bodies {
		r.Arguments, r.Response = nil, nil
	}
	line, err := wirejson.MarshalWithoutHTMLEscape(r)
	if err != nil {
		return nil, err
	}
	return appendProof(line[:len(line)-1], n, entries), nil
}

func appendProof(line []byte, n int64, entries []activity.ExportedEntry) []byte {
	line = append(strconv.AppendInt(append(line, proofMember...), n, 10), `,"entries":[`...)
	for i := range entries {
		if i > 0 {
			line = append(line, ',')
		}
		line = entries[i].AppendJSON(line)
	}
	return append(line, "]}}"...)
}

// chainPartLine is a line that is neither a record nor the end: a gap or a checkpoint of the chain.
type chainPartLine struct {
	Gone       *removedEntries   `json:"gone,omitempty"`
	Checkpoint *signedCheckpoint `json:"checkpoint,omitempty"`
}

type removedEntries struct {
	First  int64  `json:"first"`
	Seq    int64  `json:"seq"`
	Hash   string `json:"hash"`
	Pruned bool   `json:"pruned,omitempty"`
}

type signedCheckpoint struct {
	Chain     string    `json:"chain"`
	Seq       int64     `json:"seq"`
	Hash      string    `json:"hash"`
	Time      time.Time `json:"time"`
	Pruned    bool      `json:"pruned,omitempty"`
	Key       string    `json:"key"`
	Signature string    `json:"signature"`
}

func encodeChainPart(p *activity.ChainPart) []byte {
	m := chainPartLine{}
	if c := p.Checkpoint; c != nil {
		m.Checkpoint = &signedCheckpoint{c.Chain, c.Seq, hex.EncodeToString(c.Hash[:]), c.Time, c.Pruned, hex.EncodeToString(c.Key), hex.EncodeToString(c.Signature)}
	} else {
		m.Gone = &removedEntries{p.First, p.Seq, hex.EncodeToString(p.Hash[:]), p.Pruned}
	}
	line, _ := wirejson.MarshalWithoutHTMLEscape(m) // cannot fail for strings, numbers and a time
	return line
}

// parseChainPart parses a line that encodeChainPart wrote.
func parseChainPart(line []byte) (p activity.ChainPart, ok bool) {
	var m chainPartLine
	if json.Unmarshal(line, &m) != nil {
		return p, false
	}
	var errs []error
	text := func(s string) []byte {
		b, err := hex.DecodeString(s)
		errs = append(errs, err)
		return b
	}
	switch {
	case m.Checkpoint != nil:
		c := m.Checkpoint
		p.Checkpoint = &activity.SignedCheckpoint{Chain: c.Chain, Seq: c.Seq, Time: c.Time, Pruned: c.Pruned, Key: text(c.Key), Signature: text(c.Signature)}
		copy(p.Checkpoint.Hash[:], text(c.Hash))
	case m.Gone != nil:
		p = activity.ChainPart{First: m.Gone.First, Seq: m.Gone.Seq, Gone: true, Pruned: m.Gone.Pruned}
		copy(p.Hash[:], text(m.Gone.Hash))
	default:
		return p, false
	}
	return p, errors.Join(errs...) == nil && bytes.Equal(encodeChainPart(&p), line)
}

// ExportVerification is the result of verifying an export.
type ExportVerification struct {
	OK         bool            `json:"ok"`
	Records    int64           `json:"records"`
	Entries    int64           `json:"entries"`
	Linked     int64           `json:"linked"`
	Withheld   int64           `json:"withheld"`
	Erased     int64           `json:"erased"`
	Filtered   bool            `json:"filtered"`
	Bodies     bool            `json:"bodies"`
	Written    time.Time       `json:"written"`
	Signer     string          `json:"signer"`
	Line       int64           `json:"line,omitempty"`
	FirstBreak *activity.Break `json:"first_break,omitempty"`
}

// maxLine limits the length of a line, in bytes.
const maxLine = 256 << 20

// VerifyExport verifies an export in JSON Lines without access to the log. If key is not empty, it must be the key of
// the signer. Otherwise, the verification does not prove who signed the export.
func VerifyExport(f io.ReadSeeker, key string) (ExportVerification, error) {
	v := exportVerifier{key: key, sum: sha256.New()}
	for _, read := range []func(io.Reader) (*activity.Break, error){v.readTrailer, v.checkAllLines} {
		v.n = 0
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return v.found, problem.Newf(problem.Internal, "The export cannot be read: %v.", err)
		}
		b, err := read(f)
		if err != nil {
			return v.found, problem.Newf(problem.Internal, "The export cannot be read: %v.", err)
		}
		if b == nil {
			b = v.finishPass()
		}
		if b != nil {
			v.found.FirstBreak, v.found.Line = b, v.n
			return v.found, nil
		}
	}
	v.found.OK = true
	return v.found, nil
}

// exportVerifier reads a file twice: first the lines after the records, then all lines.
type exportVerifier struct {
	key        string
	n          int64 // line number
	end        *exportEndLine
	endLine    []byte
	closed     bool // whether the last line was read
	audit      *activity.ExportAudit
	sum        hash.Hash
	chainParts []activity.ChainPart
	last       string // ID of the previous record
	lastSeq    int64
	proofs     int64
	checking   bool
	found      ExportVerification
}

// readTrailer reads the lines after the records.
func (v *exportVerifier) readTrailer(f io.Reader) (*activity.Break, error) {
	return v.breakIfTruncated(forEachLine(f, func(line []byte) bool {
		v.n++
		v.readTrailerLine(line)
		return true
	}))
}

// checkAllLines checks each line by itself, on all CPUs, then the sequence of the lines.
func (v *exportVerifier) checkAllLines(f io.Reader) (first *activity.Break, err error) {
	cut, err := forEachLineBatch(f, func(batch []exportLine) bool {
		checkRecordLines(batch, v.end != nil, v.found.Bodies)
		for i := range batch {
			v.n++
			if first = v.checkLine(&batch[i]); first != nil {
				return false
			}
		}
		return true
	})
	if first != nil {
		return first, nil
	}
	return v.breakIfTruncated(cut, err)
}

// breakIfTruncated returns a break if the last line has no line end.
func (v *exportVerifier) breakIfTruncated(cut bool, err error) (*activity.Break, error) {
	if err != nil || !cut {
		return nil, err
	}
	v.n++
	return v.newBreakAtLine("The last line is cut off."), nil
}

// forEachLine calls fn for each line until fn returns false. cut reports that the last line has no line end.
func forEachLine(f io.Reader, fn func(line []byte) bool) (cut bool, err error) {
	in := bufio.NewReaderSize(f, 1<<20)
	var long []byte
	for {
		line, err := in.ReadSlice('\n')
		if err == bufio.ErrBufferFull && len(long) < maxLine {
			long = append(long, line...)
			continue
		}
		if err != nil && err != io.EOF {
			return false, err
		}
		if len(long) > 0 {
			line = append(long, line...)
			long = long[:0]
		}
		if err == io.EOF {
			return len(line) > 0, nil
		}
		if !fn(line[:len(line)-1]) {
			return false, nil
		}
	}
}

// exportLine is a line and, if it is a record, its content and the result of its check.
type exportLine struct {
	text     []byte
	n        int64  // line number in the proof
	id       string // record ID
	firstSeq int64  // sequence number of the first entry
	entries  []activity.ExportedEntry
	valid    bool // whether the line has a valid proof
	matches  bool // whether the record matches its entries
}

// batchBytes is the approximate size of a batch in bytes.
const batchBytes = 8 << 20

// forEachLineBatch is like forEachLine, but passes batches of lines.
func forEachLineBatch(f io.Reader, fn func(batch []exportLine) bool) (cut bool, err error) {
	var batch []exportLine
	size, goesOn := 0, true
	cut, err = forEachLine(f, func(line []byte) bool {
		batch = append(batch, exportLine{text: bytes.Clone(line)})
		if size += len(line); size >= batchBytes {
			goesOn = fn(batch)
			batch, size = nil, 0
		}
		return goesOn
	})
	if goesOn {
		fn(batch)
	}
	return cut, err
}

// checkRecordLines parses and checks the record lines of a batch on all CPUs. endKnown is whether the end of the export
// says which content the records have.
func checkRecordLines(batch []exportLine, endKnown, bodies bool) {
	var running sync.WaitGroup
	for part := range slices.Chunk(batch, 1+len(batch)/runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			for i := range part {
				if l := &part[i]; bytes.HasPrefix(l.text, []byte(recordStart)) {
					l.parseProof()
					l.matches = !l.valid || !endKnown || l.matchesReencoded(bodies)
				}
			}
		})
	}
	running.Wait()
}

// matchesReencoded reports whether encoding the entries again yields the same line.
func (l *exportLine) matchesReencoded(bodies bool) bool {
	again, err := []byte(nil), error(nil)
	if r, proven := activity.DecodeExportedRecord(l.entries); proven {
		again, err = encodeRecordLine(&r, l.n, l.entries, bodies)
	} else {
		at := bytes.LastIndex(l.text, []byte(proofMember))
		again = appendProof(bytes.Clone(l.text[:max(at, 0)]), l.n, l.entries)
	}
	return err == nil && bytes.Equal(again, l.text)
}

// newBreakAtLine returns a break at the current line.
func (v *exportVerifier) newBreakAtLine(reason string, args ...any) *activity.Break {
	return &activity.Break{ID: v.last, Seq: v.lastSeq, Reason: fmt.Sprintf("Line %d: ", v.n) + fmt.Sprintf(reason, args...)}
}

// readTrailerLine reads a line in the first pass. It ignores records, which the second pass reads.
func (v *exportVerifier) readTrailerLine(line []byte) {
	switch {
	case v.end != nil:
		v.end = nil // it was not the last line; the second pass reports the error
	case bytes.HasPrefix(line, []byte(endStart)):
		v.parseEndLine(line)
	case !bytes.HasPrefix(line, []byte(recordStart)):
		if p, ok := parseChainPart(line); ok {
			v.chainParts = append(v.chainParts, p)
		}
	}
}

func (v *exportVerifier) parseEndLine(line []byte) {
	text, _, ok := bytes.Cut(line[len(endStart):], []byte(signatureStart))
	var e exportEndLine
	if ok && json.Unmarshal(text, &e) == nil && e.Format == exportFormat {
		v.end, v.endLine = &e, bytes.Clone(line)
	}
}

// finishPass ends a pass. After the first pass, it checks that the end line is usable. After the second pass, it checks
// that the export is complete.
func (v *exportVerifier) finishPass() *activity.Break {
	if v.checking {
		if !v.closed {
			return v.newBreakAtLine("The export ends without its last line: it was cut off.")
		}
		return v.audit.FinishAudit()
	}
	v.checking = true
	e := exportEndLine{}
	if v.end != nil {
		e = *v.end
	}
	at, ok := e.chainPosition()
	signer, err := hex.DecodeString(e.Signer)
	if v.end != nil && (!ok || err != nil || len(signer) != ed25519.PublicKeySize) {
		return v.newBreakAtLine("The end of the export was changed, or is not signed.")
	}
	v.found.Filtered, v.found.Bodies, v.found.Written, v.found.Signer = e.Filtered, e.Bodies, e.Time, e.Signer
	if v.key != "" && v.key != e.Signer {
		return &activity.Break{Seq: e.Seq, Reason: fmt.Sprintf("The export is signed with the key %s, and not with %s.", cmp.Or(e.Signer, "(none)"), v.key)}
	}
	v.audit = activity.NewExportAudit(e.Filtered, signer, at)
	for _, p := range v.chainParts {
		if b := v.audit.AddGapOrCheckpoint(p); b != nil {
			return b
		}
	}
	return nil
}

// checkLine checks the next line in the second pass.
func (v *exportVerifier) checkLine(l *exportLine) *activity.Break {
	if v.closed {
		return v.newBreakAtLine("It is after the last line.")
	}
	var b *activity.Break
	switch {
	case bytes.HasPrefix(l.text, []byte(endStart)):
		return v.checkEndLine(l.text)
	case bytes.HasPrefix(l.text, []byte(recordStart)):
		b = v.checkRecord(l)
	default:
		if _, ok := parseChainPart(l.text); !ok {
			b = v.newBreakAtLine("It is not a line of an export, or was changed.")
		}
	}
	v.sum.Write(l.text)
	v.sum.Write([]byte{'\n'})
	return b
}

func (v *exportVerifier) checkRecord(l *exportLine) *activity.Break {
	v.last, v.lastSeq = l.id, l.firstSeq
	if !l.valid {
		return v.newBreakAtLine("The record was changed.")
	}
	v.found.Records++
	v.proofs++
	if l.n != v.proofs {
		return v.newBreakAtLine("It was written as line %d: earlier lines are missing, or it was moved or inserted.", l.n)
	}
	for i := range l.entries {
		if b := v.audit.AddEntry(v.last, &l.entries[i]); b != nil {
			return b
		}
	}
	v.found.Entries, v.found.Linked, v.found.Withheld, v.found.Erased = v.audit.Entries, v.audit.Linked, v.audit.Withheld, v.audit.Erased
	if !l.matches {
		return v.newBreakAtLine("The record differs from its entries.")
	}
	return nil
}

// parseProof parses the proof in a record line.
func (l *exportLine) parseProof() {
	var proof []byte
	err := wirejson.EachMember(l.text, func(name, value []byte) error {
		switch string(name) {
		case "id":
			l.id, _ = wirejson.String(value)
		case "proof":
			proof = value
		}
		return nil
	})
	if err != nil || proof == nil {
		return
	}
	l.valid = true
	err = wirejson.EachMember(proof, func(name, value []byte) error {
		if string(name) == "line" {
			l.n, l.valid = wirejson.Int(value)
			return nil
		}
		return wirejson.EachElement(value, func(value []byte) error {
			e, good := activity.ParseExportedEntry(value)
			if l.firstSeq == 0 {
				l.firstSeq = e.Seq
			}
			l.entries = append(l.entries, e)
			l.valid = l.valid && good
			return nil
		})
	})
	l.valid = l.valid && err == nil
}

// checkEndLine checks the last line.
func (v *exportVerifier) checkEndLine(line []byte) *activity.Break {
	v.closed = true
	if v.end == nil || !bytes.Equal(line, v.endLine) {
		return v.newBreakAtLine("The end of the export was changed, or lines were added after it.")
	}
	var signature []byte
	signed, _ := v.end.toSignedLine(func(text []byte) []byte {
		signature, _ = hex.DecodeString(v.signatureInEndLine())
		if v.audit.Key != nil && !ed25519.Verify(v.audit.Key, text, signature) {
			return nil
		}
		return signature
	})
	switch {
	case !bytes.Equal(signed, line):
		return v.newBreakAtLine("The signature of the export is invalid.")
	case v.end.Records != v.found.Records:
		return v.newBreakAtLine("The export was written with %d records, but it has %d.", v.end.Records, v.found.Records)
	case v.end.SHA256 != hex.EncodeToString(v.sum.Sum(nil)):
		return v.newBreakAtLine("The earlier lines differ from the signed ones.")
	}
	return nil
}

// signatureInEndLine extracts the signature from the end line without verifying it.
func (v *exportVerifier) signatureInEndLine() string {
	_, rest, _ := bytes.Cut(v.endLine, []byte(signatureStart))
	return string(bytes.TrimSuffix(rest, []byte(`"}`)))
}
