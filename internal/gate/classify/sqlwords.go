package classify

import (
	_ "embed"
	"strings"
	"sync"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/sectionfile"
)

//go:embed sql.txt
var sqlText string

// wordClass is the bit set of the sections of sql.txt that contain a word.
type wordClass uint32

const (
	sqlReads wordClass = 1 << iota
	sqlDestroys
	sqlDestroysFirst
	sqlWrites
	sqlObject
	sqlWord
	sqlExplains
	sqlPragma
	sqlPlainPragma
	sqlSchema
	sqlFunction
	sqlPair
	sqlName
	sqlClause
	sqlGoesOn
	sqlSetting
	sqlFile
	sqlFormat
	sqlStarts
	sqlClient
	sqlContext
)

var sqlSections = map[wordClass]string{
	sqlReads: "reads", sqlDestroys: "destroys", sqlDestroysFirst: "destroys first", sqlWrites: "writes", sqlObject: "objects",
	sqlWord: "words", sqlExplains: "explain", sqlPragma: "pragmas", sqlPlainPragma: "plain pragmas", sqlSchema: "schemas", sqlFunction: "functions",
	sqlName: "names", sqlClause: "clauses", sqlGoesOn: "goes on", sqlSetting: "settings", sqlFile: "files",
	sqlFormat: "file formats", sqlStarts: "starts", sqlClient: "client commands", sqlContext: "keywords in some places",
}

// wordPairs are words that change something before or after other words.
type wordPairs map[string]wordPair

type wordPair struct {
	after bool // after the other word, not before it
	does  policy.Operation
	words []string
}

var sqlPairs = sync.OnceValue(func() wordPairs {
	all := wordPairs{}
	for _, line := range sectionfile.Parse(sqlText).SectionByHead("pairs").Lines {
		f := strings.Fields(line)
		p := wordPair{after: f[1] == "after", does: policy.Write, words: f[2:]}
		if p.words[0] == "destroys" {
			p.does, p.words = policy.Destructive, p.words[1:]
		}
		all[f[0]] = p
	}
	return all
})

var sqlSettingKinds = sync.OnceValue(func() []string { return sectionfile.Parse(sqlText).SectionByHead("settings that begin").Words() })

// wordTable is a case-insensitive hash table of words (open addressing).
type wordTable struct {
	slots [1 << slotBits]wordSlot
	words []string
}

const slotBits = 13

type wordSlot struct {
	hash  uint32
	word  uint16 // 0 means empty
	class wordClass
}

var sqlWords = sync.OnceValue(func() *wordTable {
	words, file := map[string]wordClass{}, sectionfile.Parse(sqlText)
	for bit, head := range sqlSections {
		for _, w := range file.SectionByHead(head).Words() {
			words[w] |= bit
		}
	}
	for word := range sqlPairs() {
		words[word] |= sqlPair
	}
	t := &wordTable{words: []string{""}}
	for word, class := range words {
		hash, _ := hashWord(word, 0)
		at := hash >> (32 - slotBits)
		for t.slots[at%(1<<slotBits)].word != 0 {
			at++
		}
		t.slots[at%(1<<slotBits)] = wordSlot{hash, uint16(len(t.words)), class}
		t.words = append(t.words, word)
	}
	return t
})

// letters maps the characters of words to lower case, and all others to 0.
var letters = func() (lower [256]byte) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyz0123456789_@$") {
		lower[c] = c
		if 'a' <= c {
			lower[c-'a'+'A'] = c
		}
	}
	return lower
}()

// hashWord returns the hash and the end of the word at i.
func hashWord(text string, i int) (hash uint32, end int) {
	hash = 2166136261
	for ; i < len(text); i++ {
		c := letters[text[i]]
		if c == 0 {
			break
		}
		hash = (hash ^ uint32(c)) * 16777619
	}
	return hash, i
}

// lookUp looks up a word, ignoring case.
func (t *wordTable) lookUp(word string, hash uint32) wordClass {
	for at := hash >> (32 - slotBits); ; at++ {
		switch p := &t.slots[at%(1<<slotBits)]; {
		case p.word == 0:
			return 0
		case p.hash == hash && equalsWord(word, t.words[p.word]):
			return p.class
		}
	}
}

// equalsWord compares a word with a lower-case one, ignoring case.
func equalsWord(word, known string) bool {
	if len(word) != len(known) {
		return false
	}
	for i := range len(word) {
		if letters[word[i]] != known[i] {
			return false
		}
	}
	return true
}

// lookUpQuoted looks up a quoted name, where case matters.
func (t *wordTable) lookUpQuoted(name string) wordClass {
	if hash, end := hashWord(name, 0); end == len(name) && strings.ToLower(name) == name {
		return t.lookUp(name, hash)
	}
	return 0
}
