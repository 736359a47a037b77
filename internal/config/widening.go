package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// widening says which changes of a key let more be done, or leave less on record: under
// presence those need a person. Of a key without one, every change does.
type widening struct {
	when  string // in words, for the reference; "" is never
	wider func(was, is any) bool
}

// by reports whether the change of a value widens.
func (w widening) by(was, is any) bool {
	if w.wider == nil {
		return !reflect.DeepEqual(was, is)
	}
	return w.wider(was, is)
}

// The kinds of widening. How much at a time, how fast and for how long is no right: such
// bounds widen nothing.
var (
	always = widening{when: "changed"}
	never  = widening{"", func(_, _ any) bool { return false }}
	on     = widening{"turned on", func(was, is any) bool { return was != true && is == true }}
	off    = widening{"turned off", func(was, is any) bool { return was == true && is != true }}
	less   = widening{"lowered", func(was, is any) bool { return reflect.ValueOf(is).Int() < reflect.ValueOf(was).Int() }}
	// adds is for a list of which each element opens something, drops for one of which
	// each closes something.
	adds  = widening{"more is listed", func(was, is any) bool { return !covered(listOf(was), listOf(is)) }}
	drops = widening{"less is listed", func(was, is any) bool { return !covered(listOf(is), listOf(was)) }}
	// admits is adds, where no list lets everything through.
	admits = widening{"lets more through", func(was, is any) bool {
		before, after := listOf(was), listOf(is)
		return len(before) > 0 && (len(after) == 0 || !covered(before, after))
	}}
	exposed = widening{"others can reach it", func(was, is any) bool { return was != is && !loopback(wordOf(is)) }}
	sent    = widening{"set", func(was, is any) bool { return was != is && wordOf(is) != "" }}
	// inside is for what has keys of its own, which say it; one more entry widens.
	inside = widening{when: "by its keys"}

	asked      = towards(string(policy.AskOn), string(policy.AskOff))
	askedTools = widening{"towards `off`", asksLess}
	inferred   = towards(string(policy.InferEnforce), string(policy.InferAdvise), string(policy.InferOff))
	validated  = towards(string(ValidateReject), string(ValidateWarn), string(ValidateOff))
	// judged is for the arguments of calls: with advise they may loosen what hints say,
	// with off nobody is asked or warned because of them.
	judged = widening{"unless from `advise` to `enforce`", func(was, is any) bool {
		return was != is && (was != policy.JudgeAdvise || is != policy.JudgeEnforce)
	}}
	// proved is for what proves that a person decides.
	proved = widening{"unless from `none`", func(was, is any) bool { return was != is && was != PresenceNone }}
)

// towards is for words, the strictest first. What is not said follows from elsewhere: it
// is neither stricter nor wider than a word between the ends.
func towards(words ...string) widening {
	strictest, widest := words[0], words[len(words)-1]
	return widening{"towards `" + widest + "`", func(was, is any) bool {
		before, after := wordOf(was), wordOf(is)
		switch {
		case before == after, after == strictest, before == widest:
			return false
		case before == "", after == "":
			return true
		}
		return slices.Index(words, before) < slices.Index(words, after)
	}}
}

// harmless is towards for a hint: most is what it says of the most harmless tools.
func harmless(most tool.Tri) widening {
	return widening{fmt.Sprintf("towards `%t`", most == tool.True), func(was, is any) bool {
		return was != is && was != most && is != tool.TriOf(most == tool.False)
	}}
}

// asksLess is asked for names and patterns: one that is not there is not said.
func asksLess(was, is any) bool {
	before, _ := was.(map[string]string)
	after, _ := is.(map[string]string)
	for pattern, mode := range before {
		if asked.by(mode, after[pattern]) {
			return true
		}
	}
	for pattern, mode := range after {
		if asked.by(before[pattern], mode) {
			return true
		}
	}
	return false
}

// wordOf is a value that is a text, of whatever type.
func wordOf(v any) string { return reflect.ValueOf(v).String() }

// listOf is a value that is a list of texts.
func listOf(v any) []string { l, _ := v.([]string); return l }

// covered reports whether what one of the patterns fits, one of the wider ones fits, too.
func covered(wider, patterns []string) bool {
	for _, p := range patterns {
		if !slices.ContainsFunc(wider, func(w string) bool {
			return w == p || w == "*" || !strings.ContainsAny(p, "*?") && policy.Matches(w, p)
		}) {
			return false
		}
	}
	return true
}
