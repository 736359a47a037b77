package redact

// strength says how much a name alone tells.
type strength uint8

const (
	harmless strength = iota
	weak              // a secret if the value looks random
	strong            // a secret
)

// A nameRule is for names that end in a word or words, written together:
// "apikey" is for api_key, API-Key, apiKey and x.api.key.
type nameRule struct {
	end      string
	kind     string
	strength strength
	// word says that end must be a word of its own: "pass" is not for bypass.
	word bool
}

// nameRules are tried from the top. The first that fits decides, so what is
// harmless stands before the general word it ends in.
var nameRules = []nameRule{
	{"password", "password", strong, false},
	{"passwords", "password", strong, false},
	{"passwd", "password", strong, false},
	{"passphrase", "password", strong, false},
	{"passcode", "password", strong, false},
	{"pwd", "password", strong, true},
	{"dbpwd", "password", strong, false},
	{"pass", "password", weak, true},
	{"dbpass", "password", strong, false},
	{"userpass", "password", strong, false},
	{"pw", "password", weak, true},
	{"secret", "secret", strong, false},
	{"secrets", "secret", strong, false},
	{"mnemonic", "secret", strong, true},
	{"seedphrase", "secret", strong, false},
	{"recoverycode", "secret", strong, false},
	{"recoverycodes", "secret", strong, false},
	{"backupcodes", "secret", strong, false},
	{"connectionstring", "secret", weak, false},
	{"token", "token", strong, false},
	{"tokens", "token", weak, true},
	{"jwt", "token", strong, true},
	{"bearer", "token", strong, true},
	{"authorization", "authorization", strong, false},
	{"auth", "authorization", weak, true},
	{"cookie", "cookie", strong, false},
	{"cookies", "cookie", strong, true},
	{"credential", "credential", strong, false},
	{"credentials", "credential", strong, false},
	{"creds", "credential", weak, true},
	{"publickey", "", harmless, false},
	{"pubkey", "", harmless, false},
	{"privatekey", "private-key", strong, false},
	{"apikey", "api-key", strong, false},
	{"apikeys", "api-key", strong, false},
	{"appkey", "api-key", weak, false},
	{"authkey", "api-key", strong, false},
	{"accesskey", "api-key", strong, false},
	{"secretkey", "api-key", strong, false},
	{"accountkey", "api-key", strong, false},
	{"storagekey", "api-key", weak, false},
	{"sharedkey", "api-key", strong, false},
	{"signingkey", "api-key", strong, false},
	{"encryptionkey", "api-key", strong, false},
	{"masterkey", "api-key", strong, false},
	{"licensekey", "api-key", strong, false},
	{"subscriptionkey", "api-key", strong, false},
	{"hmackey", "api-key", strong, false},
	{"key", "api-key", weak, true},
	{"sig", "signature", weak, true},
	{"signature", "signature", weak, true},
}

// Words that, before "token", make it something else: a place in a list, a
// piece of text, a number.
var harmlessTokens = map[string]bool{
	"page": true, "next": true, "nextpage": true, "prev": true, "previous": true, "continuation": true, "continue": true,
	"cursor": true, "pagination": true, "sync": true, "nextsync": true, "delta": true, "resume": true, "progress": true,
	"pad": true, "eos": true, "bos": true, "unk": true, "sep": true, "cls": true, "mask": true, "stop": true, "special": true,
	"max": true, "min": true, "start": true, "end": true, "first": true, "last": true, "design": true, "change": true,
	"idempotency": true, "clientrequest": true, "scroll": true, "seek": true, "iterator": true,
}

// maxName is how much of a name is looked at, from its end.
const maxName = 64

// A spelledName is a name in lower case without its separators.
type spelledName struct {
	buf  [maxName]byte
	n    int
	last int // where its last word begins
}

func (s *spelledName) all() []byte { return s.buf[:s.n] }

// spell splits a name at separators and at changes of case, as in api_key,
// X-API-Key, apiKey and APIKey.
func (s *spelledName) spell(name []byte) {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	for i, c := range name {
		switch {
		case !has(c, alnum):
			s.last = s.n
			continue
		case has(c, upper):
			afterSmall := i > 0 && has(name[i-1], lower|digit)
			beforeSmall := i > 0 && i+1 < len(name) && has(name[i-1], upper) && has(name[i+1], lower)
			if afterSmall || beforeSmall {
				s.last = s.n
			}
			c |= 0x20
		}
		s.buf[s.n] = c
		s.n++
	}
}

// classify says what the value of something with this name is: the kind of
// credential and how sure that is. The kind is empty for a harmless name.
func classify(name []byte) (string, strength) {
	if !mayBeCredential(name, len(name)) {
		return "", harmless
	}
	var s spelledName
	s.spell(name)
	spelled := s.all()
	for i := range nameRules {
		r := &nameRules[i]
		begin := len(spelled) - len(r.end)
		if begin < 0 || string(spelled[begin:]) != r.end || r.word && begin != s.last {
			continue
		}
		if r.end == "token" && harmlessToken(spelled[:begin]) {
			return "", harmless
		}
		return r.kind, r.strength
	}
	return "", harmless
}

// harmlessToken says whether what stands before "token" makes it no credential.
func harmlessToken(before []byte) bool {
	for length := 3; length <= 13 && length <= len(before); length++ {
		if !harmlessTokens[string(before[len(before)-length:])] {
			continue
		}
		// "end" is for end_token, not for backend_token.
		if length == len(before) || length >= 4 {
			return true
		}
	}
	return false
}

// nameEnds are the last three letters of every name that may be a credential's:
// the quick test that spares nearly all names the slow one.
var nameEnds = func() (ends [1 << 15 / 64]uint64) {
	set := func(end string) {
		c := [3]byte{0, 0, 0}
		copy(c[max(0, 3-len(end)):], end[max(0, len(end)-3):])
		if len(end) >= 3 {
			h := endHash(c[0], c[1], c[2])
			ends[h/64] |= 1 << (h % 64)
			return
		}
		for first := range 32 { // two letters: whatever stands before them
			h := endHash(byte(first), c[1], c[2])
			ends[h/64] |= 1 << (h % 64)
		}
	}
	for _, r := range nameRules {
		if r.kind != "" {
			set(r.end)
		}
	}
	for _, other := range append(typeNames, "value") { // these stand before or instead of one
		set(other)
	}
	return ends
}()

// endHash packs three letters, of either case.
func endHash(a, b, c byte) uint { return uint(a&31)<<10 | uint(b&31)<<5 | uint(c&31) }

// mayBeCredential is the quick test for the name that ends before end.
func mayBeCredential(text []byte, end int) bool {
	if end == 0 || !has(text[end-1], lower|upper) {
		return false
	}
	if end < 3 {
		return end == 2 && text[0]|0x20 == 'p' && text[1]|0x20 == 'w'
	}
	h := endHash(text[end-3], text[end-2], text[end-1])
	if nameEnds[h/64]>>(h%64)&1 == 0 {
		return false
	}
	// Names in -ation are common, and only one of them is meant.
	if text[end-1]|0x20 == 'n' && text[end-2]|0x20 == 'o' && (end < 6 || text[end-6]|0x20 != 'z') {
		return false
	}
	return true
}
