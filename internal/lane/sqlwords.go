package lane

import (
	_ "embed"
	"sync"

	"mcpproxy/internal/wordlist"
)

//go:embed sql.txt
var sqlText string

// class is what is known of a word of SQL: a bit for each section of sql.txt that
// has it.
type class uint16

const (
	sqlReads class = 1 << iota
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
)

var sqlSections = map[class]string{
	sqlReads: "reads", sqlDestroys: "destroys", sqlDestroysFirst: "destroys first", sqlWrites: "writes", sqlObject: "objects",
	sqlWord: "words", sqlExplains: "explain", sqlPragma: "pragmas", sqlPlainPragma: "plain pragmas", sqlSchema: "schemas", sqlFunction: "functions", sqlPair: "pairs",
}

var sqlWords = sync.OnceValue(func() map[string]class {
	words, file := map[string]class{}, wordlist.Read(sqlText)
	for bit, head := range sqlSections {
		for _, w := range file.Of(head).Words() {
			words[w] |= bit
		}
	}
	return words
})

// maxWord is the longest word that is looked up.
const maxWord = 48

// classOf looks a word up, whatever its case.
func classOf(words map[string]class, word string) class {
	var lower [maxWord]byte
	if len(word) > maxWord {
		return 0
	}
	for i := range len(word) {
		c := word[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return words[string(lower[:len(word)])]
}
