package schema

// reading is the reading of one schema's keywords into its node.
type reading struct {
	*compiler
	node    *node
	draft07 bool

	contains, minContains, maxContains int32 // where they stand; they belong together
	items, additionalItems             int32
}

// keyword reads one keyword, whose value is at i.
func (r *reading) keyword(name string, i int32) error {
	n := r.node
	switch name {
	case "$ref":
		return r.reference(i)
	case "type":
		return r.types(i)
	case "const":
		n.constant = i
	case "enum":
		return r.enum(i)
	case "allOf":
		return r.list(&n.allOf, i)
	case "anyOf":
		return r.list(&n.anyOf, i)
	case "oneOf":
		return r.list(&n.oneOf, i)
	case "not":
		return r.schema(&n.not, i)
	case "if":
		return r.schema(&n.cond, i)
	case "then":
		return r.schema(&n.then, i)
	case "else":
		return r.schema(&n.els, i)
	case "minimum":
		return r.bound(&r.numbers().minimum, i)
	case "maximum":
		return r.bound(&r.numbers().maximum, i)
	case "exclusiveMinimum":
		return r.bound(&r.numbers().above, i)
	case "exclusiveMaximum":
		return r.bound(&r.numbers().below, i)
	case "multipleOf":
		return r.multipleOf(i)
	case "minLength":
		return r.count(&r.strings().length.least, i)
	case "maxLength":
		return r.count(&r.strings().length.most, i)
	case "pattern":
		return r.pattern(&r.strings().pattern, i)
	}
	if known, err := r.objectKeyword(name, i); known {
		return err
	}
	return r.arrayKeyword(name, i)
}

func (r *reading) objectKeyword(name string, i int32) (known bool, err error) {
	switch name {
	case "properties":
		return true, r.properties(i)
	case "patternProperties":
		return true, r.patternProperties(i)
	case "additionalProperties":
		return true, r.schema(&r.object().additional, i)
	case "propertyNames":
		return true, r.schema(&r.object().names, i)
	case "required":
		return true, r.names(&r.object().required, i)
	case "minProperties":
		return true, r.count(&r.object().size.least, i)
	case "maxProperties":
		return true, r.count(&r.object().size.most, i)
	case "dependencies":
		if r.draft07 {
			return true, r.dependencies(i)
		}
	case "dependentRequired", "dependentSchemas":
		if !r.draft07 {
			return true, r.dependencies(i)
		}
	case "unevaluatedProperties":
		if !r.draft07 {
			r.node.tracks = true
			return true, r.schema(&r.object().unevaluated, i)
		}
	case "$dynamicRef":
		if !r.draft07 {
			return true, r.dynamicReference(i)
		}
	}
	return false, nil
}

func (r *reading) arrayKeyword(name string, i int32) error {
	switch name {
	case "items":
		r.items = i
	case "additionalItems":
		r.additionalItems = i
	case "minItems":
		return r.count(&r.array().size.least, i)
	case "maxItems":
		return r.count(&r.array().size.most, i)
	case "uniqueItems":
		return r.flag(&r.array().unique, i)
	case "contains":
		r.contains = i
	case "minContains":
		r.minContains = i
	case "maxContains":
		r.maxContains = i
	case "prefixItems":
		if !r.draft07 {
			return r.list(&r.array().prefix, i)
		}
	case "unevaluatedItems":
		if !r.draft07 {
			r.node.tracks = true
			return r.schema(&r.array().unevaluated, i)
		}
	}
	return nil
}

// done reads the keywords that depend on others.
func (r *reading) done(i int32) error {
	n := r.node
	if n.cond == nil {
		n.then, n.els = nil, nil
	}
	if err := r.itemKeywords(); err != nil {
		return err
	}
	if r.contains == 0 {
		return nil
	}
	a := r.array()
	a.matches = counts{1, -1}
	if err := r.schema(&a.contains, r.contains); err != nil || r.draft07 {
		return err
	}
	if r.minContains > 0 {
		if err := r.count(&a.matches.least, r.minContains); err != nil {
			return err
		}
	}
	if r.maxContains > 0 {
		return r.count(&a.matches.most, r.maxContains)
	}
	return nil
}

// itemKeywords reads items, which in draft 07 may be a list.
func (r *reading) itemKeywords() error {
	if r.items == 0 {
		return nil
	}
	a := r.array()
	if !r.draft07 || r.doc.values[r.items].kind != '[' {
		return r.schema(&a.items, r.items)
	}
	m := r.doc.first(r.items)
	for range r.doc.values[r.items].count {
		a.prefix = append(a.prefix, r.compiler.node(m))
		m = r.doc.next(m)
	}
	if r.additionalItems > 0 {
		return r.schema(&a.items, r.additionalItems)
	}
	return nil
}

func (r *reading) numbers() *numberRules {
	if r.node.number == nil {
		r.node.number = &numberRules{}
	}
	return r.node.number
}

func (r *reading) strings() *stringRules {
	if r.node.str == nil {
		r.node.str = &stringRules{length: counts{0, -1}}
	}
	return r.node.str
}

func (r *reading) object() *objectRules {
	if r.node.object == nil {
		r.node.object = &objectRules{size: counts{0, -1}}
	}
	return r.node.object
}

func (r *reading) array() *arrayRules {
	if r.node.array == nil {
		r.node.array = &arrayRules{size: counts{0, -1}}
	}
	return r.node.array
}

// schema reads a keyword whose value is a schema.
func (r *reading) schema(to **node, i int32) error {
	*to = r.compiler.node(i)
	return nil
}

// list reads a keyword whose value is a list of schemas.
func (r *reading) list(to *[]*node, i int32) error {
	v := r.doc.values[i]
	if v.kind != '[' || v.count == 0 {
		return r.wrong(i, "want a list of schemas")
	}
	m := r.doc.first(i)
	for range v.count {
		*to = append(*to, r.compiler.node(m))
		m = r.doc.next(m)
	}
	return nil
}

func (r *reading) types(i int32) error {
	add := func(i int32) bool {
		t := typeSet(0)
		if r.doc.values[i].kind == '"' {
			t = typeNamed(string(r.doc.text(i)))
		}
		if t == isNumber {
			t |= isInteger
		}
		r.node.types |= t
		return t != 0
	}
	v := r.doc.values[i]
	ok := v.kind == '[' && v.count > 0
	if v.kind == '"' {
		ok = add(i)
	} else if ok {
		m := r.doc.first(i)
		for range v.count {
			ok = ok && add(m)
			m = r.doc.next(m)
		}
	}
	if !ok {
		return r.wrong(i, "want the name of a type, or a list of them")
	}
	return nil
}

func (r *reading) enum(i int32) error {
	v := r.doc.values[i]
	if v.kind != '[' {
		return r.wrong(i, "want a list of values")
	}
	e := &enum{strings: make(map[string]struct{})}
	m := r.doc.first(i)
	for range v.count {
		e.all = append(e.all, m)
		if r.doc.values[m].kind == '"' {
			e.strings[string(r.doc.text(m))] = struct{}{}
		} else {
			e.others = append(e.others, m)
		}
		m = r.doc.next(m)
	}
	r.node.enum = e
	return nil
}

func (r *reading) bound(to **number, i int32) error {
	if r.doc.values[i].kind != 0 {
		return r.wrong(i, "want a number")
	}
	n := parseNumber(r.doc.raw(i))
	*to = &n
	return nil
}

func (r *reading) multipleOf(i int32) error {
	if err := r.bound(&r.numbers().multipleOf, i); err != nil {
		return err
	}
	if m := r.numbers().multipleOf; m.negative || m.mantissa == 0 {
		return r.wrong(i, "want a number above 0 of at most 19 digits")
	}
	return nil
}

func (r *reading) count(to *int, i int32) error {
	if r.doc.values[i].kind == 0 {
		n := parseNumber(r.doc.raw(i))
		if count, ok := n.count(); ok {
			*to = count
			return nil
		}
	}
	return r.wrong(i, "want a whole number, 0 or more")
}

func (r *reading) flag(to *bool, i int32) error {
	switch r.doc.values[i].kind {
	case 't', 'f':
		*to = r.doc.values[i].kind == 't'
		return nil
	}
	return r.wrong(i, "want true or false")
}

func (r *reading) pattern(to **pattern, i int32) error {
	if r.doc.values[i].kind != '"' {
		return r.wrong(i, "want a pattern")
	}
	p, err := r.patterns.compile(string(r.doc.text(i)))
	if err != nil {
		return r.wrong(i, "%v", err)
	}
	*to = p
	return nil
}

func (r *reading) names(to *[]string, i int32) error {
	v := r.doc.values[i]
	if v.kind != '[' {
		return r.wrong(i, "want a list of names")
	}
	m := r.doc.first(i)
	for range v.count {
		if r.doc.values[m].kind != '"' {
			return r.wrong(m, "want a name")
		}
		*to = append(*to, string(r.doc.text(m)))
		m = r.doc.next(m)
	}
	return nil
}

// each calls fn for every member of the object at i.
func (r *reading) each(i int32, fn func(name string, m int32) error) error {
	v := r.doc.values[i]
	if v.kind != '{' {
		return r.wrong(i, "want an object")
	}
	m := r.doc.first(i)
	for range v.count {
		if err := fn(string(r.doc.name(m)), m); err != nil {
			return err
		}
		m = r.doc.next(m)
	}
	return nil
}

func (r *reading) properties(i int32) error {
	o := r.object()
	o.properties = make(map[string]*node, r.doc.values[i].count)
	return r.each(i, func(name string, m int32) error {
		o.properties[name] = r.compiler.node(m)
		return nil
	})
}

func (r *reading) patternProperties(i int32) error {
	return r.each(i, func(name string, m int32) error {
		p, err := r.patterns.compile(name)
		if err != nil {
			return r.wrong(m, "%v", err)
		}
		r.object().patterns = append(r.object().patterns, patternRule{p, r.compiler.node(m)})
		return nil
	})
}

// dependencies reads what must be so when a member is there: a list of names
// that must be there too, or a schema.
func (r *reading) dependencies(i int32) error {
	o := r.object()
	return r.each(i, func(name string, m int32) error {
		if r.doc.values[m].kind != '[' {
			o.dependentSchemas = append(o.dependentSchemas, dependentSchema{name, r.compiler.node(m)})
			return nil
		}
		d := dependentNames{name: name}
		err := r.names(&d.needs, m)
		o.dependentRequired = append(o.dependentRequired, d)
		return err
	})
}
