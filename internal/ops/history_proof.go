package ops

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime"
	"strconv"
	"sync"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// An export in lines is
//
//	a record, with the member "proof": its line and its entries
//	…
//	{"gone":…}        entries in a row that are not in the log any more
//	{"checkpoint":…}  a place that was signed
//	…
//	{"end":…}         the end of the chain, the key, the SHA-256 of all lines before, a signature
//
// Every line is held against what it would be when it was written from what it says, so
// that no byte can differ.

// exportFormat is the number of this format.
const exportFormat = 1

// exportEnd is the last line of an export.
type exportEnd struct {
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

func (e *exportEnd) at(p activity.Position) {
	e.Chain, e.Seq, e.Hash = p.Chain, p.Seq, hex.EncodeToString(p.Hash[:])
}

func (e *exportEnd) position() (p activity.Position, ok bool) {
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

// line is {"end":{…},"signature":"…"}. What is signed is all before the signature's comma.
func (e *exportEnd) line(sign func([]byte) []byte) ([]byte, error) {
	text, err := wirejson.Marshal(e)
	line := append([]byte(endStart), text...)
	signature := sign(line)
	line = hex.AppendEncode(append(line, signatureStart...), signature)
	return append(line, `"}`...), err
}

// recordLine is a record with its proof.
func recordLine(s *activity.Stored, n int64, bodies bool) ([]byte, error) {
	r := activity.DecodeAny(s.Entry, s.Outcome)
	return lineOf(&r, n, s.Export(bodies), bodies)
}

func lineOf(r *activity.Record, n int64, entries []activity.Exported, bodies bool) ([]byte, error) {
	completeIntent(r)
	if !bodies {
		r.Arguments, r.Response = nil, nil
	}
	line, err := wirejson.Marshal(r)
	if err != nil {
		return nil, err
	}
	return appendProof(line[:len(line)-1], n, entries), nil
}

func appendProof(line []byte, n int64, entries []activity.Exported) []byte {
	line = append(strconv.AppendInt(append(line, proofMember...), n, 10), `,"entries":[`...)
	for i := range entries {
		if i > 0 {
			line = append(line, ',')
		}
		line = entries[i].Append(line)
	}
	return append(line, "]}}"...)
}

// mark is a line that is neither a record nor the end.
type mark struct {
	Gone       *gone       `json:"gone,omitempty"`
	Checkpoint *checkpoint `json:"checkpoint,omitempty"`
}

type gone struct {
	First  int64  `json:"first"`
	Seq    int64  `json:"seq"`
	Hash   string `json:"hash"`
	Pruned bool   `json:"pruned,omitempty"`
}

type checkpoint struct {
	Chain     string    `json:"chain"`
	Seq       int64     `json:"seq"`
	Hash      string    `json:"hash"`
	Time      time.Time `json:"time"`
	Pruned    bool      `json:"pruned,omitempty"`
	Key       string    `json:"key"`
	Signature string    `json:"signature"`
}

func markLine(p *activity.ChainPart) []byte {
	m := mark{}
	if c := p.Checkpoint; c != nil {
		m.Checkpoint = &checkpoint{c.Chain, c.Seq, hex.EncodeToString(c.Hash[:]), c.Time, c.Pruned, hex.EncodeToString(c.Key), hex.EncodeToString(c.Signature)}
	} else {
		m.Gone = &gone{p.First, p.Seq, hex.EncodeToString(p.Hash[:]), p.Pruned}
	}
	line, _ := wirejson.Marshal(m) // texts, numbers and a time: it never fails
	return line
}

// readMark reads what markLine has written.
func readMark(line []byte) (p activity.ChainPart, ok bool) {
	var m mark
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
		p.Checkpoint = &activity.Checkpoint{Chain: c.Chain, Seq: c.Seq, Time: c.Time, Pruned: c.Pruned, Key: text(c.Key), Signature: text(c.Signature)}
		copy(p.Checkpoint.Hash[:], text(c.Hash))
	case m.Gone != nil:
		p = activity.ChainPart{First: m.Gone.First, Seq: m.Gone.Seq, Gone: true, Pruned: m.Gone.Pruned}
		copy(p.Hash[:], text(m.Gone.Hash))
	default:
		return p, false
	}
	return p, errors.Join(errs...) == nil && bytes.Equal(markLine(&p), line)
}

// FileVerification is what was found in an export.
type FileVerification struct {
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

// maxLine is how long a line of an export may be.
const maxLine = 256 << 20

// VerifyFile checks an export in lines, with nothing but itself. What it says of who has
// signed it is true of whom has that key: key, when it is not empty, must be it.
func VerifyFile(f io.ReadSeeker, key string) (FileVerification, error) {
	v := fileVerifier{key: key, sum: sha256.New()}
	for _, read := range []func(io.Reader) (*activity.Break, error){v.readTail, v.readLines} {
		v.n = 0
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return v.found, problem.Newf(problem.Internal, "The export cannot be read: %v.", err)
		}
		b, err := read(f)
		if err != nil {
			return v.found, problem.Newf(problem.Internal, "The export cannot be read: %v.", err)
		}
		if b == nil {
			b = v.ended()
		}
		if b != nil {
			v.found.FirstBreak, v.found.Line = b, v.n
			return v.found, nil
		}
	}
	v.found.OK = true
	return v.found, nil
}

// fileVerifier reads a file twice: first what stands behind the records.
type fileVerifier struct {
	key      string
	n        int64 // the line
	end      *exportEnd
	endLine  []byte
	closed   bool // the last line was read
	audit    *activity.Audit
	sum      hash.Hash
	marks    []activity.ChainPart
	last     string // the id of the record before
	lastSeq  int64
	proofs   int64
	checking bool
	found    FileVerification
}

// readTail reads what stands behind the records.
func (v *fileVerifier) readTail(f io.Reader) (*activity.Break, error) {
	return v.cutOff(eachLine(f, func(line []byte) bool {
		v.n++
		v.tail(line)
		return true
	}))
}

// readLines checks the lines, each by itself on all processors, and then in their order.
func (v *fileVerifier) readLines(f io.Reader) (first *activity.Break, err error) {
	processors := runtime.GOMAXPROCS(0)
	work, inOrder, stop := make(chan *batch, 2*processors), make(chan *batch, 2*processors), make(chan struct{})
	var running sync.WaitGroup
	for range processors {
		running.Go(func() {
			for b := range work {
				b.look(v.end != nil, v.found.Bodies)
			}
		})
	}
	cut := false
	running.Go(func() {
		defer close(inOrder)
		defer close(work)
		cut, err = eachBatch(f, func(b *batch) bool {
			select {
			case <-stop:
				return false
			case inOrder <- b:
			}
			work <- b
			return true
		})
	})
	for b := range inOrder {
		<-b.looked
		for i := 0; i < len(b.lines) && first == nil; i++ {
			v.n++
			if first = v.line(b.lines[i], &b.said[i]); first != nil {
				close(stop)
			}
		}
	}
	running.Wait()
	if first != nil {
		return first, nil
	}
	return v.cutOff(cut, err)
}

// cutOff is what comes of it that the last line has no end.
func (v *fileVerifier) cutOff(cut bool, err error) (*activity.Break, error) {
	if err != nil || !cut {
		return nil, err
	}
	v.n++
	return v.broken("The last line is cut off."), nil
}

// eachLine calls fn for the lines, until it returns false. cut reports whether the last one has
// no end.
func eachLine(f io.Reader, fn func(line []byte) bool) (cut bool, err error) {
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

// batch is some lines, with what each says by itself.
type batch struct {
	lines  [][]byte
	said   []said
	looked chan struct{} // closed when said is known
}

// said is what a line with a record says.
type said struct {
	n        int64  // the number of the line
	id       string // of the record
	firstSeq int64  // of its entries
	entries  []activity.Exported
	ok       bool // it is what is written
	same     bool // as its entries, where it is known what is left out
}

// batchBytes is how much is looked at at a time, about.
const batchBytes = 256 << 10

// eachBatch is eachLine for some at a time, which stay valid.
func eachBatch(f io.Reader, fn func(*batch) bool) (cut bool, err error) {
	b, size, goesOn := &batch{looked: make(chan struct{})}, 0, true
	cut, err = eachLine(f, func(line []byte) bool {
		b.lines = append(b.lines, bytes.Clone(line))
		if size += len(line); size >= batchBytes {
			goesOn = fn(b)
			b, size = &batch{looked: make(chan struct{})}, 0
		}
		return goesOn
	})
	if goesOn {
		fn(b)
	}
	return cut, err
}

// look reads the records among the lines.
func (b *batch) look(known, bodies bool) {
	defer close(b.looked)
	b.said = make([]said, len(b.lines))
	for i, line := range b.lines {
		if s := &b.said[i]; bytes.HasPrefix(line, []byte(recordStart)) {
			s.read(line)
			s.same = !s.ok || !known || s.is(line, bodies)
		}
	}
}

// is reports whether the line is what is written of a record with these entries.
func (s *said) is(line []byte, bodies bool) bool {
	again, err := []byte(nil), error(nil)
	if r, proven := activity.RecordOf(s.entries); proven {
		again, err = lineOf(&r, s.n, s.entries, bodies)
	} else {
		at := bytes.LastIndex(line, []byte(proofMember))
		again = appendProof(bytes.Clone(line[:max(at, 0)]), s.n, s.entries)
	}
	return err == nil && bytes.Equal(again, line)
}

// broken is a break at the line.
func (v *fileVerifier) broken(reason string, args ...any) *activity.Break {
	return &activity.Break{ID: v.last, Seq: v.lastSeq, Reason: fmt.Sprintf("Line %d: ", v.n) + fmt.Sprintf(reason, args...)}
}

// tail reads a line that stands behind the records. Records it leaves for later.
func (v *fileVerifier) tail(line []byte) {
	switch {
	case v.end != nil:
		v.end = nil // it was not the last line; the second time finds out what it is
	case bytes.HasPrefix(line, []byte(endStart)):
		v.readEnd(line)
	case !bytes.HasPrefix(line, []byte(recordStart)):
		if p, ok := readMark(line); ok {
			v.marks = append(v.marks, p)
		}
	}
}

func (v *fileVerifier) readEnd(line []byte) {
	text, _, ok := bytes.Cut(line[len(endStart):], []byte(signatureStart))
	var e exportEnd
	if ok && json.Unmarshal(text, &e) == nil && e.Format == exportFormat {
		v.end, v.endLine = &e, bytes.Clone(line)
	}
}

// ended is called after each reading.
func (v *fileVerifier) ended() *activity.Break {
	if v.checking {
		if !v.closed {
			return v.broken("The export ends without its last line: it was cut off.")
		}
		return v.audit.Finish()
	}
	v.checking = true
	e := exportEnd{}
	if v.end != nil {
		e = *v.end
	}
	at, ok := e.position()
	signer, err := hex.DecodeString(e.Signer)
	if v.end != nil && (!ok || err != nil || len(signer) != ed25519.PublicKeySize) {
		return v.broken("The end of the export was changed, or is not signed.")
	}
	v.found.Filtered, v.found.Bodies, v.found.Written, v.found.Signer = e.Filtered, e.Bodies, e.Time, e.Signer
	if v.key != "" && v.key != e.Signer {
		return &activity.Break{Seq: e.Seq, Reason: fmt.Sprintf("The export is signed with the key %s, and not with %s.", orNone(e.Signer), v.key)}
	}
	v.audit = activity.NewAudit(e.Filtered, signer, at)
	for _, p := range v.marks {
		if b := v.audit.Mark(p); b != nil {
			return b
		}
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// line checks a line.
func (v *fileVerifier) line(line []byte, s *said) *activity.Break {
	if v.closed {
		return v.broken("It stands behind the last line.")
	}
	var b *activity.Break
	switch {
	case bytes.HasPrefix(line, []byte(endStart)):
		return v.checkEnd(line)
	case bytes.HasPrefix(line, []byte(recordStart)):
		b = v.record(s)
	default:
		if _, ok := readMark(line); !ok {
			b = v.broken("It is none of an export, or was changed.")
		}
	}
	v.sum.Write(line)
	v.sum.Write([]byte{'\n'})
	return b
}

func (v *fileVerifier) record(s *said) *activity.Break {
	v.last, v.lastSeq = s.id, s.firstSeq
	if !s.ok {
		return v.broken("The record was changed.")
	}
	v.found.Records++
	v.proofs++
	if s.n != v.proofs {
		return v.broken("It was written as line %d: what was before it is missing, or it was moved or inserted.", s.n)
	}
	for i := range s.entries {
		if b := v.audit.Add(v.last, &s.entries[i]); b != nil {
			return b
		}
	}
	v.found.Entries, v.found.Linked, v.found.Withheld, v.found.Erased = v.audit.Entries, v.audit.Linked, v.audit.Withheld, v.audit.Erased
	if !s.same {
		return v.broken("The record is not what its entries say.")
	}
	return nil
}

// read reads the proof of a record. What it names is the place of what is wrong.
func (s *said) read(line []byte) {
	var proof []byte
	err := wirejson.Members(line, func(name, value []byte) error {
		switch string(name) {
		case "id":
			s.id, _ = wirejson.String(value)
		case "proof":
			proof = value
		}
		return nil
	})
	if err != nil || proof == nil {
		return
	}
	s.ok = true
	err = wirejson.Members(proof, func(name, value []byte) error {
		if string(name) == "line" {
			s.n, s.ok = wirejson.Int(value)
			return nil
		}
		return wirejson.Elements(value, func(value []byte) error {
			e, good := activity.ReadExported(value)
			if s.firstSeq == 0 {
				s.firstSeq = e.Seq
			}
			s.entries = append(s.entries, e)
			s.ok = s.ok && good
			return nil
		})
	})
	s.ok = s.ok && err == nil
}

// checkEnd checks the last line.
func (v *fileVerifier) checkEnd(line []byte) *activity.Break {
	v.closed = true
	if v.end == nil || !bytes.Equal(line, v.endLine) {
		return v.broken("The end of the export was changed, or something stands behind it.")
	}
	var signature []byte
	signed, _ := v.end.line(func(text []byte) []byte {
		signature, _ = hex.DecodeString(v.signature())
		if v.audit.Key != nil && !ed25519.Verify(v.audit.Key, text, signature) {
			return nil
		}
		return signature
	})
	switch {
	case !bytes.Equal(signed, line):
		return v.broken("The signature of the export does not fit.")
	case v.end.Records != v.found.Records:
		return v.broken("The export was written with %d records, and has %d.", v.end.Records, v.found.Records)
	case v.end.SHA256 != hex.EncodeToString(v.sum.Sum(nil)):
		return v.broken("The lines before are not those that were signed.")
	}
	return nil
}

func (v *fileVerifier) signature() string {
	_, rest, _ := bytes.Cut(v.endLine, []byte(signatureStart))
	return string(bytes.TrimSuffix(rest, []byte(`"}`)))
}
