package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
)

// accessIncreaseRule determines which changes of a key grant more access, or record less. With presence, those
// changes need a user's confirmation. Every change of a key without a rule does.
type accessIncreaseRule struct {
	when       string // condition in words, for the reference; "" means that no change grants more access
	grantsMore func(was, is any) bool
}

// changeIncreasesAccess reports whether the change of a value grants more access.
func (w accessIncreaseRule) changeIncreasesAccess(was, is any) bool {
	if w.grantsMore == nil {
		return !reflect.DeepEqual(was, is)
	}
	return w.grantsMore(was, is)
}

// The rules. Quantity, rate and duration limits grant nothing.
var (
	always = accessIncreaseRule{when: "changed"}
	never  = accessIncreaseRule{"", func(_, _ any) bool { return false }}
	on     = accessIncreaseRule{"turned on", func(was, is any) bool { return was != true && is == true }}
	off    = accessIncreaseRule{"turned off", func(was, is any) bool { return was == true && is != true }}
	less   = accessIncreaseRule{"lowered", func(was, is any) bool { return reflect.ValueOf(is).Int() < reflect.ValueOf(was).Int() }}
	// adds reports a new element of a list that allows. drops reports a removed element of a list that denies.
	adds  = accessIncreaseRule{"entries are added", func(was, is any) bool { return !arePatternsCovered(toStringList(was), toStringList(is)) }}
	drops = accessIncreaseRule{"entries are removed", func(was, is any) bool { return !arePatternsCovered(toStringList(is), toStringList(was)) }}
	// admits is like adds, but an empty list allows everything.
	admits = accessIncreaseRule{"it allows more", func(was, is any) bool {
		before, after := toStringList(was), toStringList(is)
		return len(before) > 0 && (len(after) == 0 || !arePatternsCovered(before, after))
	}}
	exposed = accessIncreaseRule{"other machines can connect", func(was, is any) bool { return was != is && !isLoopbackAddress(toString(is)) }}
	sent    = accessIncreaseRule{"set", func(was, is any) bool { return was != is && toString(is) != "" }}
	// notified is for webhooks: each is an address to which MCPProxy sends.
	notified = accessIncreaseRule{"an entry is added or changed", func(was, is any) bool {
		before, _ := was.([]Webhook)
		after, _ := is.([]Webhook)
		return slices.ContainsFunc(after, func(w Webhook) bool {
			return !slices.ContainsFunc(before, func(b Webhook) bool { return reflect.DeepEqual(b, w) })
		})
	}}
	// asksThere is for addresses by name.
	asksThere = accessIncreaseRule{"an entry is added or changed", func(was, is any) bool {
		before, _ := was.(map[string]string)
		after, _ := is.(map[string]string)
		for name, address := range after {
			if before[name] != address {
				return true
			}
		}
		return false
	}}
	// inside is for an object whose keys have their own rules. A new entry grants more access.
	inside = accessIncreaseRule{when: "an entry is added, or by its keys"}

	asked      = newStrictToLooseRule(string(policy.AskOn), string(policy.AskOff))
	askedTools = accessIncreaseRule{"changed towards `off`", changeMayAskUserLess}
	inferred   = newStrictToLooseRule(string(policy.InferEnforce), string(policy.InferAdvise), string(policy.InferOff))
	validated  = newStrictToLooseRule(string(ValidateReject), string(ValidateWarn), string(ValidateOff))
	// judged compares values of judge_arguments: `advise` may relax hints, and `off` neither asks nor warns.
	judged = accessIncreaseRule{"changed, except from `advise` to `enforce`", func(was, is any) bool {
		return was != is && (was != policy.ArgumentsAdvise || is != policy.ArgumentsEnforce)
	}}
	// proved reports a changed presence setting, unless presence was none.
	proved = accessIncreaseRule{"changed, except from `none`", func(was, is any) bool { return was != is && was != PresenceNone }}
)

// newStrictToLooseRule returns the rule of a key whose values are ordered from strict to loose: a change to a looser
// value grants more access. An unset value depends on other keys, so a change from or to it grants more access,
// unless the new value is the strictest or the previous one the loosest.
func newStrictToLooseRule(words ...string) accessIncreaseRule {
	strictest, loosest := words[0], words[len(words)-1]
	return accessIncreaseRule{"changed towards `" + loosest + "`", func(was, is any) bool {
		before, after := toString(was), toString(is)
		switch {
		case before == after, after == strictest, before == loosest:
			return false
		case before == "", after == "":
			return true
		}
		return slices.Index(words, before) < slices.Index(words, after)
	}}
}

// newHintLooseningRule returns the rule of a hint. most is the value of the hint for the least harmful tools: a
// change towards it grants more access.
func newHintLooseningRule(most tool.TriBool) accessIncreaseRule {
	return accessIncreaseRule{fmt.Sprintf("changed towards `%t`", most == tool.True), func(was, is any) bool {
		return was != is && was != most && is != tool.ToTriBool(most == tool.False)
	}}
}

// changeMayAskUserLess reports whether a change of ask modes, by name or pattern, may lead to fewer questions to the
// user. A name that is absent has no ask mode.
func changeMayAskUserLess(was, is any) bool {
	before, _ := was.(map[string]string)
	after, _ := is.(map[string]string)
	for pattern, mode := range before {
		if asked.changeIncreasesAccess(mode, after[pattern]) {
			return true
		}
	}
	for pattern, mode := range after {
		if asked.changeIncreasesAccess(before[pattern], mode) {
			return true
		}
	}
	return false
}

// toString returns a string value of any string type.
func toString(v any) string { return reflect.ValueOf(v).String() }

// toStringList returns a value that is a list of strings.
func toStringList(v any) []string { l, _ := v.([]string); return l }

// arePatternsCovered reports whether the wider patterns match every name that one of the patterns matches.
func arePatternsCovered(wider, patterns []string) bool {
	for _, p := range patterns {
		if !slices.ContainsFunc(wider, func(w string) bool {
			return w == p || w == "*" || !strings.ContainsAny(p, "*?") && policy.MatchesPattern(w, p)
		}) {
			return false
		}
	}
	return true
}
