package result

import "bytes"

// The functions here find their way in JSON text without checking it: they are
// made for speed, on results of many megabytes that nobody parsed before. What
// they take for a value may be none. Whoever writes what they found checks it.

// blank steps over white space.
func blank(s []byte, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

// skip gives the end of the value at i, or -1.
func skip(s []byte, i int) int {
	if i >= len(s) {
		return -1
	}
	switch s[i] {
	case '"':
		return skipString(s, i)
	case '{', '[':
		return skipContainer(s, i)
	}
	start := i
	for i < len(s) {
		switch s[i] {
		case ',', '}', ']', ':', '"', '{', '[', ' ', '\n', '\t', '\r':
			return endOf(start, i)
		}
		i++
	}
	return endOf(start, i)
}

func endOf(start, i int) int {
	if i == start {
		return -1
	}
	return i
}

// skipString gives the end of the string at i, or -1.
func skipString(s []byte, i int) int {
	i++
	quote := -1 // the next quote, known while it is not passed
	for {
		// Most strings are short, and escapes come in crowds: byte by byte for
		// a while, and then by leaps.
		for end := min(i+32, len(s)); i < end; i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		if i >= len(s) {
			return -1
		}
		if quote < i {
			n := bytes.IndexByte(s[i:], '"')
			if n < 0 {
				return -1
			}
			quote = i + n
		}
		slash := bytes.IndexByte(s[i:quote], '\\')
		if slash < 0 {
			return quote + 1
		}
		i += slash
	}
}

// structural marks the bytes that matter outside of strings.
var structural = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}

func skipContainer(s []byte, i int) int {
	depth := 0
	for i < len(s) {
		if !structural[s[i]] {
			i++
			continue
		}
		switch s[i] {
		case '"':
			if i = skipString(s, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		default:
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// walk goes through the container at i. For each member or element it calls fn
// with the name (as written, between the quotes; none in an array) and with
// where the value begins; fn gives where it ends, -1 to stop. walk gives the
// end of the container, -1 when it was stopped or found no such text.
func walk(s []byte, i int, fn func(name []byte, at int) int) int {
	object, closing := s[i] == '{', s[i]+2 // '}' and ']' follow so
	i = blank(s, i+1)
	if i < len(s) && s[i] == closing {
		return i + 1
	}
	for {
		var name []byte
		if object {
			if name, i = walkName(s, i); i < 0 {
				return -1
			}
		}
		if i >= len(s) {
			return -1
		}
		end := fn(name, i)
		if end < 0 {
			return -1
		}
		if i = blank(s, end); i >= len(s) {
			return -1
		}
		switch s[i] {
		case closing:
			return i + 1
		case ',':
			i = blank(s, i+1)
		default:
			return -1
		}
	}
}

// walkName reads a name and the colon after it, and gives where the value begins.
func walkName(s []byte, i int) (name []byte, at int) {
	if i >= len(s) || s[i] != '"' {
		return nil, -1
	}
	end := skipString(s, i)
	if end < 0 {
		return nil, -1
	}
	name = s[i+1 : end-1]
	if i = blank(s, end); i >= len(s) || s[i] != ':' {
		return nil, -1
	}
	return name, blank(s, i+1)
}

// member is a member of an object, or an element of an array, which has no
// name. Both alias the text.
type member struct{ name, value []byte }

// each calls fn for the members or elements of the container that v is, until
// fn says false. It is false when v is no such text.
func each(v []byte, fn func(m member) bool) bool {
	if len(v) < 2 || v[0] != '{' && v[0] != '[' {
		return false
	}
	stopped := false
	end := walk(v, 0, func(name []byte, at int) int {
		end := skip(v, at)
		if end > 0 && !fn(member{name, v[at:end]}) {
			stopped = true
			return -1
		}
		return end
	})
	return stopped || end == len(v)
}

// find gives the value of a member whose name is written plainly, nil when
// there is none.
func find(v []byte, name string) (found []byte) {
	if len(v) == 0 || v[0] != '{' {
		return nil
	}
	each(v, func(m member) bool {
		if string(m.name) == name {
			found = m.value
		}
		return true
	})
	return found
}

// trim gives text without the white space around it.
func trim(text []byte) []byte {
	return bytes.Trim(text, " \n\t\r")
}

// whole gives the value that the text consists of, without white space around
// it; nil when it is not one value.
func whole(text []byte) []byte {
	text = trim(text)
	if skip(text, 0) != len(text) || len(text) == 0 {
		return nil
	}
	return text
}
