package search

import (
	"strings"
	"sync"

	"github.com/kljensen/snowball/english"
)

// families gives the stem of the first word of a family for those of the
// others: forms of one word that no rule brings together, and the usual short
// forms of identifiers.
var families = sync.OnceValue(func() map[string]string { return familiesOf(familyTable) })

const familyTable = `
	information info
	statistics stats stat
	analyze analysis analyses analyse analytics
	image img
	message msg
	document doc
	repository repo
	configuration config conf
	database db
	application app
	description desc describe
	number num
	average avg
	calculate calc
	language lang
	address addr
	directory dir
	environment env
	parameter param
	organization org organisation
	text txt
	picture pic
	authentication auth authenticate
	temperature temp
	transaction txn tx
	reference ref
	maximum max
	minimum min
	advertisement ad advertise
	television tv
	telephone phone
	photograph photo
	synchronize sync
	specification spec
	administrator admin
	execute exec
	delete del
	convert conversion
	compare comparison
	subscribe subscription
	transcribe transcript transcription
	decide decision
	classify classification
	notify notification
	verify verification
	identify identification
	modify modification
	pay payment paid
	ship shipment
	register registration
	publish publication
	explain explanation
	pronounce pronunciation
	create creator
	find finder found
	track tracker
	check checker
	read reader
	scrape scraper
	plan planner
	parse parser
	view viewer
	edit editor
	write writer wrote written
	predict predictor
	shorten shortener
	translate translator
	person people
	child children
	man men
	woman women
	send sent
	buy bought
	sell sold
	make made
	run ran
	take took taken
	get got gotten
	build built
	index indices
	matrix matrices
	vertex vertices
	choose chose chosen choice
	optimize optimization optimise
`

func familiesOf(list string) map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(list) {
		var head string
		for i, word := range strings.Fields(line) {
			if i == 0 {
				head = english.Stem(word, true)
				continue
			}
			if root := english.Stem(word, true); root != head {
				out[root] = head
			}
		}
	}
	return out
}
