package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mcpproxy/internal/testutil/volume"
)

func wordsOf(text string, isJSON bool) []string {
	var out []string
	s := wordSplitter{emit: func(w []byte, _ bool) { out = append(out, string(w)) }}
	if isJSON {
		s.splitJSON([]byte(text))
	} else {
		s.splitText([]byte(text))
	}
	return out
}

func TestWords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	tests := []struct {
		text string
		want string
	}{
		{"", ""},
		{"Hello, World!", "hello world"},
		{"create_issue", "create issue create_issue"},
		{"a.b.c", "a b a.b c b.c"},
		{"-a--b-", "a b"},
		{"octo-org/repo:1", "octo org octo-org repo org/repo 1 repo:1"},
		{"ÜBER café", "über café"},
		{"日本x y", "日 本 日本 x 本x y"},
		{long + " y", long[:64] + " y"},
		{"\xff\xfea", "a"},
	}
	for _, tt := range tests {
		if got := strings.Join(wordsOf(tt.text, false), " "); got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestWordsOfJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want string
	}{
		{`{"a-b":[1,true,"x\ny"]}`, "a b a-b 1 true x y"},
		{`"\u00e9t\u00E9 \ud83d\ude00 a\/b \"q\""`, "été a b a/b q"},
		{`"{\"k\":\"one\\ntwo\"}"`, "k one ntwo two"},
		{`"C:\\new"`, "c new ew"},
		{`"\u12"`, ""},
		{`"\`, ""},
		{`"\uzzzz"`, "zzzz"},
	}
	for _, tt := range tests {
		got := wordsOf(tt.text, true)
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestSearchTerms(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"":                       "",
		"  ,. ":                  "",
		"Hello world":            "hello world",
		"create_issue":           "create_issue",
		"a.b.c":                  "a.b b.c",
		"needle-7*":              "needle-7*",
		"star*":                  "star*",
		"*":                      "",
		"日志文":                    "日志 志文",
		"x/日志":                   "x/日 日志",
		`"quoted phrase"`:        "quoted phrase",
		"a-b c* d":               "a-b c* d",
		strings.Repeat("w ", 50): strings.TrimSpace(strings.Repeat("w ", maxTerms)),
	}
	for search, want := range tests {
		var got []string
		for _, term := range parseSearchTerms(search) {
			s := term.word
			if term.prefix {
				s += "*"
			}
			got = append(got, s)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q gave %q, want %q", search, got, want)
		}
	}
}

// TestIndexAndReadingAgree compares the two ways in which a search finds a record, the index and a scan. Texts and
// searches consist of the same unusual pieces.
func TestIndexAndReadingAgree(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	piece := rapid.SampledFrom([]string{
		"a", "b", "ab", "X", "7", "70", "-", "_", ".", "/", ":", " ", "\n", `\`, `"`, "n", "é", "İ", "K", "日", "本", "😀", "\u2028", "ß",
	})
	rapid.Check(t, func(t *rapid.T) {
		index := segmentWords{words: map[string]postingList{}}
		var entries [][]byte
		for i := range rapid.IntRange(1, 6).Draw(t, "records") {
			text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
			args, err := json.Marshal(map[string]string{"t": text})
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "nested") {
				args, _ = json.Marshal(string(args))
			}
			e := encodeEntry(t, args, text)
			s := wordSplitter{emit: func(w []byte, _ bool) { index.addPosting(w, uint16(i)) }}
			s.splitRecord(e, nil)
			entries = append(entries, e)
		}
		search := strings.Join(rapid.SliceOfN(piece, 1, 5).Draw(t, "search"), "") + rapid.SampledFrom([]string{"", "*"}).Draw(t, "star")
		terms := parseSearchTerms(search)
		m := newRecordMatcher(terms)
		want := uint64(1)<<len(entries) - 1
		for _, term := range terms {
			have, _ := lookUpTerm(t, index.encodePages(), term)
			want &= have[0]
		}
		for i, e := range entries {
			if got := m.matches(e, nil); got != (want>>i&1 == 1) {
				t.Fatalf("%q in %s: the scan gave %v, the index gave %v", search, e, got, !got)
			}
		}
	})
}

// lookUpTerm searches for a term in pages as a query does.
func lookUpTerm(t interface{ Fatal(...any) }, pages []textIndexPage, want searchTerm) (words bitmap, read int) {
	at := -1
	for i, p := range pages {
		if string(p.first) <= want.word {
			at = i
		}
	}
	more := want.prefix
	look := func(p textIndexPage) bool {
		read++
		m, err := want.markRecordsOfPage(p.data, words[:])
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if at >= 0 {
		more = look(pages[at])
	}
	for _, p := range pages[at+1:] {
		if more && string(p.first) < string(want.prefixEnd()) {
			look(p)
		}
	}
	return words, read
}

// encodeEntry returns the payload of a record in the form in which package activity writes it.
func encodeEntry(t *rapid.T, args []byte, message string) []byte {
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, `{"id":"01JG2K4WZ3N8Q5R7T9V1X2Y3Z4","seq":1,"timestamp":"2026-01-15T10:30:00Z","kind":"record",`+
		`"raw":[%d,0],"type":"system","error_message":%s,"arguments":%s}`, len(args), text, args)
}

func TestPostingsRoundTrip(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var p postingList
		want := make([]uint64, chunkWords)
		step := rapid.SampledFrom([]int{1, 2, 7, 100}).Draw(t, "step")
		for at := rapid.IntRange(0, 300).Draw(t, "first"); at < chunkSize; at += rapid.IntRange(1, step).Draw(t, "gap") {
			p = append(p, uint16(at))
			want[at/64] |= 1 << (at % 64)
		}
		if len(p) == 0 {
			return
		}
		x := segmentWords{words: map[string]postingList{"a": {3}, "word": p, "z": {5}}}
		got := make([]uint64, chunkWords)
		var seen []string
		for _, pg := range x.encodePages() {
			err := eachPageEntry(pg.data, func(word, records []byte, bitmap bool) bool {
				if !isPrefixEntry(word) {
					seen = append(seen, string(word))
				}
				if string(word) == "word" {
					setRecordBits(records, bitmap, got)
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, want) || fmt.Sprint(seen) != "[a word z]" {
			t.Fatalf("%v was decoded as %x in %v", p, got, seen)
		}
	})
}

func FuzzPage(f *testing.F) {
	x := segmentWords{words: map[string]postingList{"a": {3}, "b": {1, 2, 900}}}
	f.Add(x.encodePages()[0].data)
	f.Add([]byte{1, 'a', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(_ *testing.T, data []byte) {
		words := make([]uint64, chunkWords)
		_ = eachPageEntry(data, func(_, records []byte, bitmap bool) bool {
			setRecordBits(records, bitmap, words)
			return true
		})
	})
}
