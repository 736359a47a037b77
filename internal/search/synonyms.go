package search

import (
	"strings"
	"sync"
)

// synonyms are groups of words, one a line, of which people use one and tools
// another: what is done, and what it is done to. A word counts for the others
// of its group only a little where the tools use the word itself, and much
// where no tool does. In a name a word means the first of its first group, so a
// word of several meanings leads a group.
const synonyms = `
create add make new insert generate build compose register
delete remove erase drop destroy clear purge discard unlink
get fetch retrieve read obtain return
show view display see get fetch retrieve read obtain return
update edit modify change alter set adjust revise
list enumerate browse
search find lookup query seek locate discover
send post deliver submit transmit dispatch
run execute launch start invoke trigger perform
stop cancel abort terminate halt kill end
save store persist record keep
move rename relocate transfer
copy duplicate clone
merge combine join concatenate unite
compare diff difference versus
count number total amount quantity
convert transform translate change
calculate compute determine solve evaluate
check verify validate test confirm
analyze analyse examine inspect assess
summarize summary digest overview
download fetch retrieve
upload attach
connect link relate
share publish
schedule plan book reserve appointment event calendar meeting
history log past recorded previous
file document
directory folder
picture image photo photograph
movie film cinema
song track music audio album
video clip footage
repository repo project codebase
issue ticket bug defect
comment note remark annotation
message chat sms text
email mail inbox
user person people account member profile
company business firm organization enterprise corporation
customer client buyer
website site webpage page url
database db sql
weather forecast temperature rain snow wind windy humidity climate sunny storm
price cost fee rate
buy purchase shop shopping order
sale deal discount coupon promotion offer bargain
job career vacancy employment position salary hiring
trip travel vacation journey holiday tour itinerary
flight plane airline airport fly
hotel accommodation lodging stay motel hostel
restaurant dining dinner eat food cuisine
recipe cook bake dish meal ingredient
nutrition diet calorie healthy
stock share equity ticker finance invest trading market
crypto cryptocurrency bitcoin ethereum coin token blockchain
currency exchange forex money
news headline article press
book novel author reading library
house home property apartment estate rent housing
car vehicle automobile auto
map route direction navigation
location place address city where nearby coordinates
game play player
sport team league match score
football soccer
lyrics song
definition meaning dictionary define
law legal court lawyer attorney
doctor health medical disease symptom
exercise workout fitness gym training
course class lesson tutorial learn education teach
research paper study academic scholar scientific
joke funny humor
quote quotation
gift present
date day today tomorrow time
password credential secret
question quiz trivia
astronomy space planet nasa galaxy star universe
domain dns whois
color colour
advertisement ad advertising marketing campaign
design logo
`

// What a synonym counts: beside the word itself, and for a word that no tool
// uses.
const (
	synonymShare   = 0.1
	synonymInstead = 0.9
)

// synonymStems are the groups by their stems.
var synonymStems = sync.OnceValue(func() (groups [][]string) {
	for line := range strings.Lines(strings.TrimSpace(synonyms)) {
		group := strings.Fields(line)
		for i := range group {
			group[i] = stem(group[i])
		}
		groups = append(groups, group)
	}
	return groups
})

// meanings gives for every stem of the table that of the first word of its
// first group.
var meanings = sync.OnceValue(func() map[string]string {
	out := make(map[string]string)
	for _, group := range synonymStems() {
		for _, root := range group {
			if out[root] == "" {
				out[root] = group[0]
			}
		}
	}
	return out
})

// synonymsIn gives for every stem of the table the other stems of its groups
// that are in the vocabulary.
func synonymsIn(stems map[string]uint32) map[string][]uint32 {
	out := make(map[string][]uint32)
	for _, group := range synonymStems() {
		for _, of := range group {
			for _, other := range group {
				if id, ok := stems[other]; ok && other != of {
					out[of] = append(out[of], id)
				}
			}
		}
	}
	return out
}
