package effect

import (
	"strings"
	"sync"
)

// role is what a word says about a tool.
type role uint8

// The roles. A word has one, in one form.
const (
	noRole   role = iota
	reads         // get, list: it only looks
	writes        // create, send: it changes something
	mayWrite      // post, update, order: as a verb it does, as a noun it does not
	destroys      // delete, purge: it takes away or cannot be undone
	runs          // execute, eval: it does what it is told
)

// form is the form of a verb. A participle says what was done to a thing,
// rather than what the tool does.
type form uint8

const (
	base       form = iota // delete
	third                  // deletes
	gerund                 // deleting
	participle             // deleted
)

// word is what the lexicon knows of a word.
type word struct {
	role role
	form form
}

// The verbs by their role, in their base form.
var verbs = map[role]string{
	reads: `get list read search find fetch retrieve lookup show describe view browse query inspect explain count
		check verify validate preview compare diff analyze analyse summarize summarise calculate compute estimate
		explore discover monitor ping peek poll detect identify enumerate scan observe examine audit diagnose
		determine measure predict forecast recommend suggest rank translate extract parse watch wait look
		locate aggregate glob grep stat head tail cat scrape crawl
		provide return give display see tell know answer learn understand print obtain report`,
	writes: `create add insert upsert edit modify write append save send publish upload rename duplicate replace assign
		unassign enable disable restart resume approve grant register subscribe unsubscribe configure apply make put
		increment decrement provision unmount reschedule reassign enqueue navigate accept decline reject suspend
		disconnect activate deactivate initialize initialise initiate bootstrap scaffold unstake unmark unpin unmute unlock
		unfollow unstar unlike unarchive unblock unban upvote downvote notify broadcast rebase amend promote demote
		ingest reindex finetune rewrite refactor encrypt decrypt authorize authenticate toggle compress
		generate compose unassign detach reconnect`,
	mayWrite: `update post order comment message change request call release tag label branch commit fork star
		bookmark note log task issue ticket event book plan share export import backup archive build test trigger
		launch queue link pull clone download stash checkout track transform process manage handle control sort group
		filter match map split optimize use complete finish end begin assert expect emulate simulate render
		capture screenshot snapshot respond interact lead form block reference default focus hold stream sample plot
		draw chart store move copy start stop submit install deploy connect patch upgrade downgrade migrate restore
		attach mount click fill type press hover drag scroll tap swipe confirm cancel pause invite join set init
		transfer mint swap stake bridge trade buy sell pay refund charge withdraw deposit mark pin mute lock like follow
		vote react reply forward push cherry squash merge sync synchronize schedule embed train record fix repair format
		sign login logout leave resolve review select load access open close switch turn play skip rewind adjust resize rotate crop convert draft paste keep take`,
	destroys: `delete del remove rm rmdir drop purge destroy wipe truncate erase kill terminate revoke uninstall unlink
		prune evict clear empty flush trash discard reset revert rollback undo overwrite shred nuke obliterate expunge
		clean cleanup deprovision decommission deregister unregister ban kick expel forget shutdown reboot poweroff
		annul abort unpublish invalidate expire dispose drain strip unset delist eradicate annihilate
		liquidate deallocate teardown eliminate dismantle`,
	runs: `execute exec run eval evaluate invoke spawn shell bash sh powershell cmd sudo ssh`,
}

// deletions are stems which mark a word as one about taking away, wherever in
// it they stand: bulkdelete, undeletable, removeall. Some are from other
// languages.
var deletions = strings.Fields(`delet remov purg destroy truncat erase erasi uninstall revok revoc unlink terminat destruct obliterat expung
	deprovision decommission eradicat annihilat dismantl discard overwrit evict deallocat eliminat liquidat teardown unpublish
	eliminar borrar supprim loschen loeschen entfern cancellare rimuov apagar excluir удал stereть usun wymaz sletten verwijder radera
	删除 刪除 移除 清空 清除 销毁 銷毀 卸载 删掉 撤销 削除 消去 삭제 제거`)

// Short stems mark a word that begins or ends with them, but for some words
// that are known to mean something else.
var (
	shortDeletions = strings.Fields(`drop kill wipe nuke shred`)
	harmless       = set(`dropbox dropdown dropdowns droplet droplets dropoff dropshipping dropship dropper raindrop airdrop
		airdrops backdrop backdrops teardrop snowdrop eavesdrop skill skills overkill roadkill upskill reskill killer
		swipe swipes`)
)

// Words that join two verbs of one name: search_and_replace.
var joins = set(`and or then n`)

// codeWords are what can do anything when it is given as a parameter.
var codeWords = set(`sql command commands cmd code script scripts shell bash exec expression statement statements cypher gremlin
	javascript js python powershell program snippet lua ddl dml mutation macro eval argv cli function callback lambda`)

// identifying are words about a code that is no program: a country code.
var identifying = strings.Fields(`country countries currency airport stock ticker iso status zip postal icd station
	product verification error symbol barcode iata icao region province city`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// lexicon is every form of every verb. Where two say different things the more
// careful one counts.
var lexicon = sync.OnceValue(func() map[string]word {
	m := map[string]word{}
	// From the most harmless to the least: the last one stays.
	for _, r := range []role{reads, mayWrite, writes, runs, destroys} {
		for _, v := range strings.Fields(verbs[r]) {
			m[v] = word{r, base}
			m[thirdOf(v)] = word{r, third}
			m[gerundOf(v)] = word{r, gerund}
			if p := participleOf(v); p != v {
				m[p] = word{r, participle}
			}
		}
	}
	return m
})

func thirdOf(v string) string {
	switch {
	case strings.HasSuffix(v, "y") && !strings.ContainsAny(v[len(v)-2:len(v)-1], "aeiou"):
		return v[:len(v)-1] + "ies"
	case strings.HasSuffix(v, "s"), strings.HasSuffix(v, "sh"), strings.HasSuffix(v, "ch"), strings.HasSuffix(v, "x"), strings.HasSuffix(v, "z"):
		return v + "es"
	}
	return v + "s"
}

func gerundOf(v string) string {
	switch {
	case doubled(v):
		return v + v[len(v)-1:] + "ing"
	case strings.HasSuffix(v, "e") && !strings.HasSuffix(v, "ee"):
		return v[:len(v)-1] + "ing"
	}
	return v + "ing"
}

var irregular = map[string]string{
	"get": "gotten", "find": "found", "read": "read", "write": "written", "send": "sent", "put": "put", "set": "set", "make": "made",
	"show": "shown", "tell": "told", "give": "given", "build": "built", "undo": "undone", "reset": "reset", "overwrite": "overwritten", "buy": "bought",
	"sell": "sold", "pay": "paid", "forget": "forgotten", "rewrite": "rewritten", "run": "run", "teardown": "torn", "see": "seen",
}

func participleOf(v string) string {
	switch p, ok := irregular[v]; {
	case ok:
		return p
	case doubled(v):
		return v + v[len(v)-1:] + "ed"
	case strings.HasSuffix(v, "e"):
		return v + "d"
	case strings.HasSuffix(v, "y") && !strings.ContainsAny(v[len(v)-2:len(v)-1], "aeiou"):
		return v[:len(v)-1] + "ied"
	}
	return v + "ed"
}

// doubled says whether a verb doubles its last letter: drop, dropping.
func doubled(v string) bool {
	const vowels = "aeiou"
	n := len(v)
	if n < 3 || strings.ContainsAny(v[n-1:], "aeiouwxy") || !strings.ContainsAny(v[n-2:n-1], vowels) || strings.ContainsAny(v[n-3:n-2], vowels) {
		return false
	}
	short := n <= 4 && v != "open" && v != "edit" && v != "join"
	return short || strings.HasSuffix(v, "set") || strings.HasSuffix(v, "submit") || strings.HasSuffix(v, "get") && n > 3
}
