package search

import "strings"

// stopWords are words that stand in any request and any description. They are
// read only in names, where they may be all that there is.
var stopWords = words(`a about above after again all am an and any are as at be because been before being
	below between both but by can could did do does doing down during each few for from further had has have
	having he her here hers him his how i if in into is it its itself just let ll me more most my no nor not of off
	on once only or other our ours out over own please re same shall she should so some such than that the their
	them then there these they this those through to too under until up us ve very was we were what when where
	which while who whom whose why will with would you your yours`)

// fillers are words by which people ask. They are no more than that in a
// request, but may mean something in a definition.
var fillers = words(`also help interested know like looking need planning provide tell want wondering`)

func words(list string) map[string]bool {
	set := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}
