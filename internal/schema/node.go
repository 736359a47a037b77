package schema

import "regexp"

// verdict is what a schema says of every value.
type verdict int8

const (
	depends verdict = iota
	valid
	invalid
)

// node is one compiled schema. What a keyword group needs lies in a struct of
// its own, nil when none of its keywords is there.
type node struct {
	verdict  verdict
	types    typeSet
	tracks   bool  // has unevaluatedProperties or unevaluatedItems
	at       int32 // where it stands in the schema's document
	resource *resource

	ref     *node
	dynamic string // $dynamicRef: the anchor that the dynamic scope may override

	constant int32 // in the schema's document; 0, the root, for none
	enum     *enum
	number   *numberRules
	str      *stringRules
	object   *objectRules
	array    *arrayRules

	allOf, anyOf, oneOf []*node
	not                 *node
	cond, then, els     *node
}

// typeSet is a set of JSON types.
type typeSet uint8

const (
	isNull typeSet = 1 << iota
	isBoolean
	isInteger
	isNumber // includes integers
	isString
	isArray
	isObject
)

var typeNames = [...]string{"null", "boolean", "integer", "number", "string", "array", "object"}

func typeNamed(name string) typeSet {
	for i, n := range typeNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// enum is the list of allowed values. Strings, which nearly all are, are
// looked up.
type enum struct {
	strings map[string]struct{}
	others  []int32 // in the schema's document
	all     []int32
}

type numberRules struct {
	minimum, maximum, above, below, multipleOf *number
}

// counts bounds a number of characters, elements or members. most is -1 for
// no bound.
type counts struct{ least, most int }

type stringRules struct {
	length  counts
	pattern *pattern
}

// pattern is a regular expression and what a match may cost.
type pattern struct {
	re   *regexp.Regexp
	text string
	size int // instructions
}

type objectRules struct {
	size       counts
	required   []string
	properties map[string]*node
	patterns   []patternRule
	additional *node
	names      *node

	dependentRequired []dependentNames
	dependentSchemas  []dependentSchema
	unevaluated       *node
}

type patternRule struct {
	pattern *pattern
	node    *node
}

type dependentNames struct {
	name  string
	needs []string
}

type dependentSchema struct {
	name string
	node *node
}

type arrayRules struct {
	size        counts
	unique      bool
	prefix      []*node
	items       *node // of what is after the prefix
	contains    *node
	matches     counts // of contains
	unevaluated *node
}

// resource is a part of the schema with an address of its own: the root, or
// what has an $id.
type resource struct {
	base    string
	root    int32
	dialect dialect
	anchors map[string]int32
	dynamic map[string]*node // the anchors that $dynamicRef may find
}

type dialect int8

const (
	draft2020 dialect = iota
	draft07
)
