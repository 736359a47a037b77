package scan

import (
	"bytes"
	"regexp"
	"sync"
)

// rawRule is a rule about spelling: commands, addresses, markup, keys. Its
// expression is tried only where its byte and one of its literals stand; it
// sees text in its normal form.
type rawRule struct {
	name   string
	reason string
	// What a finding is by its place; SeverityNote-1 is none.
	prose, value Severity
	needs        string // one of these must stand in the text; "" for none
	literals     string // parted by blanks; · is a blank
	expression   string
}

// none is the severity of a place where a rule does not look.
const none Severity = -1

const (
	note   = SeverityNote
	review = SeverityReview
	block  = SeverityBlock
)

var rawRules = []rawRule{
	{"shell-command", "has a command that destroys, downloads or opens a way in", review, block, "-", `rm·-`,
		`\brm\s+-[a-z]*[rf][a-z]*\s+(--no-preserve-root\s+)?["']?(/|~|\*|\$home|\.\.)`},
	{"shell-command", "has a command that runs what it downloads", note, review, "|", `curl wget fetch iwr invoke-`,
		`\b(curl|wget|fetch|iwr|invoke-webrequest)\b[^|\n]{0,200}\|\s*(sudo\s+)?((ba|z|da|k)?sh|python\d?|perl|node|iex)\b`},
	{"shell-command", "has a command that opens a way in", review, block, "", `/dev/tcp/ /dev/udp/ bash·-i sh·-i mkfifo· nc· ncat· socat·`,
		`/dev/(tcp|udp)/|\b(ba)?sh\s+-i\b|\bmkfifo\s+/|\bn(c|cat)\s+(-\w+\s+)*[\w.-]+\s+\d{2,5}\b|\bn(c|cat)\s+-\w*e|\bsocat\s+(exec|tcp)`},
	{"shell-command", "has a command that opens files to everybody", review, review, "", `chmod·`,
		`\bchmod\s+(-\w+\s+)?(0?(666|777)\s+[~/.*]|\+x\s+/tmp)`},
	{"shell-command", "has a command after a sign that ends one", none, review, "", `;· ;rm |· && ||`,
		`(;|&&|\|\|?)\s*(rm|curl|wget|nc|ncat|cat|bash|sh|zsh|python\d?|perl|chmod|chown|whoami|id|powershell|cmd|ping|nslookup|dd|mkfs|kill|shutdown|reboot|touch|echo)\b(\s+[-/~\w.'"$]|\s*$)`},
	{"shell-command", "has a command in place of a value", none, review, "", `$( ` + "`",
		"(\\$\\(|`)\\s*(whoami|id|cat|curl|wget|bash|sh|rm|ls|uname|env|printenv|nc|python\\d?|perl|hostname|ping|nslookup|touch|echo|sleep)\\b[^)`]*[)`]"},
	{"code", "has code that runs other code", note, review, "(", `__import__( os.system( subprocess. eval(atob fromcharcode( exec(base64 require('child_process require("child_process`,
		`__import__\(|\bos\.system\(|\bsubprocess\.(popen|call|run|check_output)\(|\beval\(\s*atob|\bexec\(\s*base64|fromcharcode\(\d|require\(["']child_process`},
	{"code", "has a command that hides what it runs", review, review, "-", `powershell pwsh base64·-d base64·--decode`,
		`\b(powershell|pwsh)(\.exe)?\s+(-\w+\s+)*-e(nc|ncodedcommand|c)?\s+[a-z0-9+/=]{8,}|base64\s+(-d|--decode)\s*\|\s*(ba)?sh`},
	{"sql-injection", "has SQL that breaks out of a value", none, review, "'", `or· and·`,
		`'\s*(or|and)\s+['"]?\w+['"]?\s*=\s*['"]?\w+`},
	{"sql-injection", "has SQL that breaks out of a value", none, review, " ", `union·`,
		`\bunion\s+(all\s+)?select\b.{1,200}\bfrom\b`},
	{"sql-injection", "has SQL that breaks out of a value", note, review, ";", `drop· delete· truncate· alter· insert· exec· shutdown update·`,
		`['")\d]\s*\)?;\s*(drop\s+(table|database|schema)|delete\s+from|truncate\s+table|alter\s+table|insert\s+into|update\s+\w+\s+set|exec\s+|shutdown)`},
	{"markup", "has a script that a page would run", review, review, "<", `<script <iframe <svg <img <object <embed`,
		`<\s*script\b[^>]*(\bsrc\s*=|>[^<]{0,200}[(=])|<\s*(iframe|object|embed)\b[^>]*(src|data)\s*=|<\s*(svg|img|body|input|video)\b[^>]*\bon\w+\s*=`},
	{"markup", "has a script that a page would run", none, review, "=", `onerror onload onclick onmouse onfocus`,
		`\bon(error|load|click|mouseover|focus)\s*=\s*["']?[a-z]+\s*[(.]`},
	{"markup", "has a script that a page would run", review, review, ":", `javascript: vbscript: data:text/html`,
		`\b(javascript|vbscript):\s*[a-z_.]+\(|data:text/html[;,]`},
	{"path-traversal", "has a path that leaves its directory", note, review, ".", `../ ..\ ..;/`,
		`(\.\.[/\\]){2,}\S|\.\.;/|\.\.[/\\](etc|proc|root|home|windows)`},
	{"path-traversal", "has a path that leaves its directory", review, review, "%", `%2e %252e`,
		`(%(25)?2e){2}(%(25)?2f|/|%(25)?5c)`},
	{"secret-path", "names a file that holds credentials", none, review, "/", `/etc/passwd /etc/shadow /.ssh/ id_rsa .aws/credentials /proc/self/environ`,
		`/etc/(passwd|shadow)|/\.ssh/\w|id_rsa\b|\.aws/credentials|/proc/self/environ`},
	{"internal-address", "has an address that gives out the credentials of a machine", review, review, ".", `169.254. metadata.google 100.100.100.200`,
		`\b169\.254\.169\.254\b|\bmetadata\.google\.internal\b|\b100\.100\.100\.200\b`},
	{"internal-address", "has an address inside the user's machine", note, review, ":", `file: gopher: dict: ldap:`,
		`\bfile:///?(etc|home|root|proc|users|var|c:)|\b(gopher|dict|ldap)://`},
	{"internal-address", "has an address inside the user's machine", none, review, ":", `http`,
		`\bhttps?://(127\.\d+\.\d+\.\d+|localhost|0\.0\.0\.0|\[::1?\]|\[::ffff:[^\]]*\]|2130706433|0x7f\w*)(:\d+)?/(admin|internal|manage|actuator|debug|console|private|secret|shutdown|root|latest)`},
	{"collector-address", "has an address of the kind that data is carried off to", review, review, ".", `webhook.site requestbin ngrok pipedream burpcollaborator interact.sh oast. requestcatcher canarytokens beeceptor hookbin evil attacker exfil malicious hacker pwn`,
		`\b(webhook\.site|requestbin\.\w+|[\w-]+\.ngrok(-free)?\.\w+|[\w-]+\.m?\.?pipedream\.net|burpcollaborator\.net|interact\.sh|oast\.(fun|pro|live|site|me)|requestcatcher\.com|hookbin\.com)|\b(https?://|@|to |from )([\w-]+\.)*(evil|attacker|attkr|exfil|malicious|hacker|pwnd?)[\w-]*\.(\w[\w-]*\.)*[a-z]{2,}|\b(evil|attacker|attkr|exfil|hacker|pwnd?)\.(com|net|org|io|tld|example|test)\b`},
	{"fake-markup", "poses as a message of the system by its markup", block, block, "|", `<|`,
		`<\|\s*(im_start|im_end|system|user|assistant|endoftext|begin_of_text|start_header_id|end_header_id|eot_id)`},
	{"fake-markup", "poses as a message of the system by its markup", review, review, "<", `important system secret hidden override information directive urgent critical sys> instruction`,
		`<\s*/?\s*(important|system|secret|hidden|override|information|directive|urgent|critical|system[-_ ]?(prompt|message|instructions?|override|note)|hidden[-_ ]?instructions?|important[-_ ]?\w*|secret[-_ ]?\w*|admin[-_ ]?\w*|instructions?[-_ ]for[-_ ]\w*)\s*>|<<\s*/?sys\s*>>`},
	{"fake-markup", "poses as a message of the system by its markup", review, review, "[", `[inst] [/inst] [system [hidden [admin [secret [override [contradiction [role`,
		`\[/?inst\]|\[\s*(system|hidden|secret|override|admin|role)\s*(prompt|message|instruction|instructions|directive|override|note|command|mode)?\s*(\]|:)`},
	{"fake-markup", "poses as a message of the system by its markup", review, review, "#", `system instruction`,
		`#{2,}\s*(system|hidden|new|secret|override)\s*(prompt|message|instruction|override|directive|note)?s?\s*(:|#|\n|$)`},
	{"hidden-markup", "has a comment or style that nobody sees but a model reads", review, review, "<", `<!--`,
		`<!--[^>]*[a-z]{2,}[^>]*[a-z]{2,}`},
	{"hidden-markup", "has a comment or style that nobody sees but a model reads", review, review, ":", `]:·# ]:·<> display visibility font-size opacity`,
		`\[(//|comment|_)\]:\s*(#|<>)|style\s*=\s*["'][^"']*(display:\s*none|visibility:\s*hidden|font-size:\s*0|opacity:\s*0)`},
	{"image-leak", "shows a picture whose address carries data away", review, review, "!", `](`,
		`!\[[^\]]{0,100}\]\(\s*https?://[^)]*[?&#][^)]*=`},
	{"out-of-sight", "pushes text out of sight with blanks or empty lines", review, review, "", `······························` + " \n\n\n\n",
		`\S[ \t]{60,}\S|\S[^\S\n]*\n([^\S\n]*\n){8,}\s*\S`},
	{"terminal-escape", "spells a control sequence for terminals", review, review, "\\", `x1b 033 u001b \e[ u202e u200b`,
		`\\(x1b|033|u001b|e)\[|\\u(202e|200b|200d)`},
}

// compiledRaw is a rawRule that is ready.
type compiledRaw struct {
	rawRule
	literals   [][]byte
	expression *regexp.Regexp
}

var rawSet = sync.OnceValue(func() []compiledRaw {
	var set []compiledRaw
	for _, r := range append(rawRules, secretRules...) {
		c := compiledRaw{rawRule: r, expression: regexp.MustCompile(r.expression)}
		for l := range bytes.FieldsFuncSeq([]byte(r.literals), func(x rune) bool { return x == ' ' }) {
			c.literals = append(c.literals, bytes.ReplaceAll(l, []byte("·"), []byte{' '}))
		}
		set = append(set, c)
	}
	return set
})

// secretRules are about credentials that stand in a definition. Case matters
// for them.
var secretRules = []rawRule{
	{"secret", "has what looks like a credential", review, review, "", `sk- akia asia ghp_ gho_ ghs_ github_pat_ xoxb xoxp glpat- aiza`,
		`\bsk-(ant-|proj-|live_)?[a-z0-9_-]{20,}|\bsk_live_[a-z0-9]{16,}|\b(akia|asia)[0-9a-z]{16}\b|\bgh[pousr]_[a-z0-9]{30,}|\bgithub_pat_[a-z0-9_]{30,}|\bxox[bpars]-[a-z0-9-]{20,}|\bglpat-[\w-]{20}|\baiza[0-9a-z_-]{35}`},
	{"secret", "has what looks like a credential", review, review, "-", `private·key`,
		`-----begin ([a-z]+ )?private key-----(\s|\\[rn])*[a-z0-9+/]{20,}`},
	{"secret", "has what looks like a credential", review, review, "", `bearer· ssh-rsa· ssh-ed25519·`,
		`\bbearer\s+(eyj[\w-]+\.[\w-]+|[a-z]*\d[\w.-]{23,})|\bssh-(rsa|ed25519)\s+aa[a-z0-9+/]{30,}`},
	{"secret", "has what looks like a credential", review, review, ":=", `key secret token password passwd`,
		`\b(api[_-]?key|secret[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|password|passwd)["']?\s*[=:]\s*["']?([a-z]+\d[a-z0-9]{14,}|\d+[a-z][a-z0-9]{14,})`},
}

// raw finds what is about spelling in a view.
func (s *scanner) raw(f *field, v *view) {
	t := v.n.lower
	if len(t) < 6 {
		return
	}
	var present [256]bool
	for _, c := range t {
		present[c] = true
	}
	for k := range rawSet() {
		r := &rawSet()[k]
		severity := r.prose
		if f.place == placeValue || v.encoding != "" {
			severity = r.value
		}
		if severity == none || !r.mayMatch(&present) {
			continue
		}
		found := rule{name: r.name, severity: severity, reason: r.reason}
		r.find(t, &present, func(start, end int) { s.see(f, v, found, start, end, false) })
	}
}

// The reach of an expression before and behind its literals.
const (
	reachBefore = 100
	reachBehind = 400
)

// find tries the expression around the literals.
func (r *compiledRaw) find(t []byte, present *[256]bool, found func(start, end int)) {
	for _, l := range r.literals {
		if !all(l, present) {
			continue
		}
		for from := 0; from < len(t); {
			at := bytes.Index(t[from:], l)
			if at < 0 {
				break
			}
			low := max(0, from+at-reachBefore)
			high := min(len(t), from+at+len(l)+reachBehind)
			if m := r.expression.FindIndex(t[low:high]); m != nil {
				found(low+m[0], low+m[1])
				from = max(from+at+len(l), low+m[1])
			} else {
				from = max(from+at+len(l), high-reachBefore)
			}
		}
	}
}

func (r *compiledRaw) mayMatch(present *[256]bool) bool {
	for i := range len(r.needs) {
		if present[r.needs[i]] {
			return true
		}
	}
	return r.needs == ""
}

// all says whether all bytes of a literal are present.
func all(literal []byte, present *[256]bool) bool {
	for _, c := range literal {
		if !present[c] {
			return false
		}
	}
	return true
}
