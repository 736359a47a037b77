package redact

import "bytes"

// A tokenRule is a credential that can be told by its own form: a prefix, then
// min to max characters of a set, and no further letter or digit after them.
// No max means any number. Where digits is set, one must be among them: the
// prefix alone could begin an ordinary word.
type tokenRule struct {
	prefix   string
	kind     string
	set      set
	min, max int
	digits   bool
}

// tokenRules are tried from the top for each first letter. The forms are those
// that the services document, or use.
var tokenRules = []tokenRule{
	{"A3-", "1password-key", alnum | dash, 28, 36, true},
	{"ops_eyJ", "1password-token", base64, 100, 0, false},
	{"p8e-", "adobe-secret", alnum, 32, 32, true},
	{"AGE-SECRET-KEY-1", "age-key", alnum, 58, 58, false},
	{"LTAI", "alibaba-key", alnum, 12, 26, true},
	{"sk-ant-", "anthropic-key", word, 20, 0, true},
	{"sk-or-", "openrouter-key", word, 20, 0, true},
	{"sk-", "openai-key", word, 20, 0, true},
	{"AKCp", "artifactory-key", alnum, 60, 80, true},
	{"cmVmd", "artifactory-token", alnum, 59, 59, false},
	{"ATATT3", "atlassian-token", base64, 60, 0, true},
	{"ATCTT3", "atlassian-token", base64, 60, 0, true},
	{"ATTA", "trello-token", alnum, 60, 80, true},
	{"AKIA", "aws-key-id", upper | digit, 16, 16, false},
	{"ASIA", "aws-key-id", upper | digit, 16, 16, false},
	{"ABIA", "aws-key-id", upper | digit, 16, 16, false},
	{"ACCA", "aws-key-id", upper | digit, 16, 16, false},
	{"A3T", "aws-key-id", upper | digit, 17, 17, false},
	{"ABSK", "aws-bedrock-key", base64, 100, 0, true},
	{"bedrock-api-key-", "aws-bedrock-key", base64, 30, 0, true},
	{"BSA", "brave-key", word, 27, 28, true},
	{"4b1d", "clickhouse-key", alnum, 38, 38, true},
	{"CLOJARS_", "clojars-token", alnum, 60, 0, true},
	{"v1.0-", "cloudflare-key", hexLower | dash, 171, 171, true},
	{"dapi", "databricks-token", hexLower | dash, 32, 34, true},
	{"dnkey-", "defined-networking-key", base64, 60, 0, true},
	{"dop_v1_", "digitalocean-token", hexAny, 64, 0, true},
	{"doo_v1_", "digitalocean-token", hexAny, 64, 0, true},
	{"dor_v1_", "digitalocean-token", hexAny, 64, 0, true},
	{"dckr_pat_", "docker-token", word, 20, 0, true},
	{"dckr_oat_", "docker-token", word, 20, 0, true},
	{"dp.pt.", "doppler-token", alnum, 40, 0, true},
	{"dp.st.", "doppler-token", alnum | dot | under | dash, 40, 0, true},
	{"sl.", "dropbox-token", base64 | dot, 120, 0, true},
	{"duffel_test_", "duffel-token", base64, 40, 0, true},
	{"duffel_live_", "duffel-token", base64, 40, 0, true},
	{"dt0c01.", "dynatrace-token", alnum | dot, 80, 0, true},
	{"EZAK", "easypost-key", alnum, 54, 54, true},
	{"EZTK", "easypost-key", alnum, 54, 54, true},
	{"ExponentPushToken[", "expo-token", word, 20, 0, false},
	{"EAAC", "facebook-token", alnum, 100, 0, true},
	{"EAAM", "facebook-token", alnum, 100, 0, true},
	{"figd_", "figma-token", word, 30, 0, true},
	{"fc-", "firecrawl-key", hexLower, 32, 32, true},
	{"FLWSECK_TEST-", "flutterwave-key", alnum | dash, 12, 0, false},
	{"FLWPUBK_TEST-", "flutterwave-key", alnum | dash, 32, 0, false},
	{"FLWSECK-", "flutterwave-key", alnum | dash, 32, 0, true},
	{"fo1_", "fly-token", word, 43, 0, true},
	{"fm1a_", "fly-token", base64, 100, 0, true},
	{"fm1r_", "fly-token", base64, 100, 0, true},
	{"fm2_", "fly-token", base64, 100, 0, true},
	{"fio-u-", "frameio-token", base64, 60, 0, true},
	{"ghp_", "github-token", alnum, 30, 0, false},
	{"gho_", "github-token", alnum, 30, 0, false},
	{"ghu_", "github-token", alnum, 30, 0, false},
	{"ghs_", "github-token", alnum, 30, 0, false},
	{"ghr_", "github-token", alnum, 30, 0, false},
	{"github_pat_", "github-token", word, 22, 0, true},
	{"glpat-", "gitlab-token", ident, 20, 0, false},
	{"gldt-", "gitlab-token", word, 20, 0, false},
	{"glft-", "gitlab-token", word, 20, 0, false},
	{"glffct-", "gitlab-token", word, 20, 0, false},
	{"glimt-", "gitlab-token", word, 24, 0, false},
	{"glagent-", "gitlab-token", word, 50, 0, false},
	{"gloas-", "gitlab-token", word, 60, 0, false},
	{"glptt-", "gitlab-token", word, 40, 0, false},
	{"glrt-", "gitlab-token", ident, 20, 0, false},
	{"glrtr-", "gitlab-token", ident, 20, 0, false},
	{"glcbt-", "gitlab-token", word, 20, 0, false},
	{"glsoat-", "gitlab-token", word, 20, 0, false},
	{"GR1348941", "gitlab-token", word, 20, 0, false},
	{"AIza", "google-key", word, 35, 35, true},
	{"ya29.", "google-token", ident, 20, 0, true},
	{"GOCSPX-", "google-secret", word, 20, 0, false},
	{"1//0", "google-refresh-token", word, 30, 0, true},
	{"glsa_", "grafana-token", word, 40, 0, true},
	{"glc_", "grafana-token", base64, 32, 0, true},
	{"eyJrIjoi", "grafana-key", base64, 60, 0, true},
	{"gsk_", "groq-key", alnum, 40, 0, true},
	{"pat.", "harness-key", ident, 66, 0, true},
	{"sat.", "harness-key", ident, 66, 0, true},
	{"HRKU-AA", "heroku-key", word, 50, 0, true},
	{"hf_", "huggingface-token", alnum, 34, 0, false},
	{"api_org_", "huggingface-token", alnum, 34, 0, false},
	{"hvs.", "vault-token", word, 24, 0, true},
	{"hvb.", "vault-token", word, 90, 0, true},
	{"hvr.", "vault-token", word, 24, 0, true},
	{"ico-", "infracost-key", alnum, 32, 32, true},
	{"s-s4t2ud-", "intra42-secret", hexLower, 64, 64, true},
	{"s-s4t2af-", "intra42-secret", hexLower, 64, 64, true},
	{"lsv2_pt_", "langsmith-key", word, 32, 0, true},
	{"lsv2_sk_", "langsmith-key", word, 32, 0, true},
	{"lin_api_", "linear-key", alnum, 40, 0, true},
	{"lin_oauth_", "linear-key", alnum, 40, 0, true},
	{"live_", "live-key", base64, 35, 0, true},
	{"test_", "test-key", hexLower | under, 35, 36, true},
	{"key-", "mailgun-key", hexLower, 32, 32, true},
	{"mcpp_", "mcpproxy-key", hexLower, 32, 64, true},
	{"NRAK-", "newrelic-key", alnum, 27, 27, true},
	{"NRJS-", "newrelic-key", hexLower, 19, 19, true},
	{"NRII-", "newrelic-key", alnum | dash, 32, 32, true},
	{"ntn_", "notion-token", alnum, 40, 0, true},
	{"secret_", "notion-token", alnum, 43, 43, true},
	{"npm_", "npm-token", alnum, 36, 0, true},
	{"nvapi-", "nvidia-key", word, 50, 0, true},
	{"API-", "octopus-key", upper | digit, 26, 26, true},
	{"sha256~", "openshift-token", word, 43, 43, false},
	{"pplx-", "perplexity-key", alnum, 40, 0, true},
	{"pcsk_", "pinecone-key", word, 40, 0, true},
	{"access-sandbox-", "plaid-token", hexLower | dash, 36, 36, true},
	{"access-development-", "plaid-token", hexLower | dash, 36, 36, true},
	{"access-production-", "plaid-token", hexLower | dash, 36, 36, true},
	{"pscale_tkn_", "planetscale-token", base64 | dot, 32, 0, true},
	{"pscale_oauth_", "planetscale-token", base64 | dot, 32, 0, true},
	{"pscale_pw_", "planetscale-password", base64 | dot, 32, 0, true},
	{"PMAK-", "postman-key", hexAny | dash, 59, 59, true},
	{"phx_", "posthog-key", alnum, 40, 0, true},
	{"pnu_", "prefect-key", alnum, 36, 36, true},
	{"pul-", "pulumi-token", hexLower, 40, 40, true},
	{"pypi-", "pypi-token", word, 50, 0, true},
	{"rdme_", "readme-key", alnum, 70, 70, true},
	{"r8_", "replicate-token", alnum, 37, 37, true},
	{"rubygems_", "rubygems-key", hexLower, 48, 48, true},
	{"tk-us-", "scalingo-token", word, 48, 48, false},
	{"SG.", "sendgrid-key", ident | equals, 60, 0, true},
	{"xkeysib-", "brevo-key", alnum | dash, 80, 81, true},
	{"sntrys_", "sentry-token", base64, 50, 0, true},
	{"sntryu_", "sentry-token", hexLower, 64, 64, true},
	{"sm_aat_", "settlemint-token", alnum, 16, 16, false},
	{"sm_pat_", "settlemint-token", alnum, 16, 16, false},
	{"sm_sat_", "settlemint-token", alnum, 16, 16, false},
	{"shippo_live_", "shippo-token", hexAny, 40, 40, false},
	{"shippo_test_", "shippo-token", hexAny, 40, 40, false},
	{"shpat_", "shopify-token", hexAny, 32, 0, false},
	{"shpca_", "shopify-token", hexAny, 32, 0, false},
	{"shppa_", "shopify-token", hexAny, 32, 0, false},
	{"shpss_", "shopify-secret", hexAny, 32, 0, false},
	{"xoxe.xox", "slack-token", alnum | dash, 30, 0, true},
	{"xoxa-", "slack-token", alnum | dash, 10, 0, true},
	{"xoxb-", "slack-token", alnum | dash, 10, 0, true},
	{"xoxe-", "slack-token", alnum | dash, 10, 0, true},
	{"xoxo-", "slack-token", alnum | dash, 10, 0, true},
	{"xoxp-", "slack-token", alnum | dash, 10, 0, true},
	{"xoxr-", "slack-token", alnum | dash, 10, 0, true},
	{"xoxs-", "slack-token", alnum | dash, 10, 0, true},
	{"xapp-", "slack-token", alnum | dash, 20, 0, true},
	{"hooks.slack.com/services/", "slack-webhook", base64, 20, 0, false},
	{"hooks.slack.com/workflows/", "slack-webhook", base64, 20, 0, false},
	{"hooks.slack.com/triggers/", "slack-webhook", base64, 20, 0, false},
	{"discord.com/api/webhooks/", "discord-webhook", base64, 40, 0, true},
	{"discordapp.com/api/webhooks/", "discord-webhook", base64, 40, 0, true},
	{"webhook.office.com/webhookb2/", "teams-webhook", word | slash, 36, 0, true}, // followed by @: see extend
	{"sgp_", "sourcegraph-token", hexAny | under | gz, 40, 0, true},
	{"squ_", "sonar-token", alnum, 40, 0, true},
	{"sqp_", "sonar-token", alnum, 40, 0, true},
	{"sqa_", "sonar-token", alnum, 40, 0, true},
	{"EAAA", "square-token", word, 40, 60, true},
	{"sq0atp-", "square-token", word, 22, 0, false},
	{"sq0csp-", "square-secret", word, 22, 0, false},
	{"sk_live_", "stripe-key", alnum, 10, 0, false},
	{"sk_test_", "stripe-key", alnum, 10, 0, false},
	{"sk_prod_", "stripe-key", alnum, 10, 0, false},
	{"rk_live_", "stripe-key", alnum, 10, 0, false},
	{"rk_test_", "stripe-key", alnum, 10, 0, false},
	{"rk_prod_", "stripe-key", alnum, 10, 0, false},
	{"whsec_", "stripe-secret", base64, 24, 0, true},
	{"sbp_", "supabase-key", hexLower, 40, 40, true},
	{"sb_secret_", "supabase-key", word, 20, 0, true},
	{"tskey-", "tailscale-key", word, 20, 0, true},
	{"tvly-", "tavily-key", word, 30, 0, true},
	{"SK", "twilio-key", hexAny, 32, 32, false},
	{"AC", "twilio-account", hexLower, 32, 32, true},
	{"AAAAAAAAAAAAAAAAAAAAA", "twitter-token", base64, 60, 120, true},
	{"tfp_", "typeform-token", base64 | dot, 40, 0, true},
	{"xai-", "xai-key", alnum, 60, 0, true},
	{"AQVN", "yandex-key", word, 35, 38, true},
	{"YC", "yandex-key", word, 38, 38, true},
}

// minToken is shorter than every token that can be told by its form.
const minToken = 15

// tokenIndex gives the rules by the first letter of their prefix, and
// tokenStarts a quick test for their first three (two, for those of two).
var tokenIndex, tokenStarts = func() (byFirst [256][]*tokenRule, starts [1 << 15 / 64]uint64) {
	mark := func(a, b, c byte) {
		h := endHash(a, b, c)
		starts[h/64] |= 1 << (h % 64)
	}
	for i := range tokenRules {
		r := &tokenRules[i]
		byFirst[r.prefix[0]] = append(byFirst[r.prefix[0]], r)
		if len(r.prefix) >= 3 {
			mark(r.prefix[0], r.prefix[1], r.prefix[2])
			continue
		}
		for third := range byte(32) {
			mark(r.prefix[0], r.prefix[1], third)
		}
	}
	for _, start := range []string{"eyJ", "ZXl"} {
		mark(start[0], start[1], start[2])
	}
	return byFirst, starts
}()

// mayBeToken is the quick test for a token that begins at i.
func mayBeToken(text []byte, i int) bool {
	if i+minToken > len(text) {
		return false
	}
	if h := endHash(text[i], text[i+1], text[i+2]); tokenStarts[h/64]>>(h%64)&1 == 1 {
		return true
	}
	switch c := text[i]; {
	case '0' <= c && c <= '9': // telegramLength
		n := runEnd(text[:min(len(text), i+17)], i+5, digit)
		return n < len(text) && text[n] == ':'
	case 'M' <= c && c <= 'O': // discordLength
		return i+26 < len(text) && (text[i+24] == '.' || text[i+25] == '.' || text[i+26] == '.')
	}
	return false
}

// matchToken gives the end and the kind of the token that begins at i, or 0.
// What it looks at before it fails is bounded; what it looks at when it
// succeeds is skipped.
func matchToken(text []byte, i int) (end int, kind string) {
	if !mayBeToken(text, i) {
		return 0, ""
	}
	rest := text[i:]
	for _, r := range tokenIndex[text[i]] {
		if len(rest) < len(r.prefix)+r.min || string(rest[:len(r.prefix)]) != r.prefix {
			continue
		}
		if n := r.match(rest[len(r.prefix):]); n > 0 {
			return i + len(r.prefix) + n, r.kind
		}
	}
	switch {
	case bytes.HasPrefix(rest, []byte("eyJ")):
		if n := jwtLength(rest); n > 0 {
			return i + n, "jwt"
		}
	case bytes.HasPrefix(rest, []byte("ZXlK")): // "eyJ" in base64
		if n := runEnd(rest, 0, base64); n >= 100 {
			return i + n, "jwt"
		}
	case has(text[i], digit):
		if n := telegramLength(rest); n > 0 {
			return i + n, "telegram-token"
		}
	case 'M' <= text[i] && text[i] <= 'O':
		if n := discordLength(rest); n > 0 {
			return i + n, "discord-token"
		}
	}
	return 0, ""
}

// match gives the length of what follows the prefix, or 0.
func (r *tokenRule) match(rest []byte) int {
	const enough = 64 // a digit comes early in what is random
	bound := r.max
	if bound == 0 {
		bound = max(r.min, enough)
	}
	n := runEnd(rest[:min(bound, len(rest))], 0, r.set)
	if n < r.min || r.digits && !bytes.ContainsAny(rest[:n], "0123456789") {
		return 0
	}
	if r.max == 0 {
		n = runEnd(rest, n, r.set)
	}
	for n > r.min && r.set&dot != 0 && rest[n-1] == '.' { // the end of a sentence
		n--
	}
	if n < len(rest) && has(rest[n], alnum) {
		return 0
	}
	return n
}

// jwtLength gives the length of the JSON Web Token (or of the like: header and
// claims without a signature) that text begins with, or 0.
func jwtLength(text []byte) int {
	const minPart, maxHeader = 14, 4096
	header := runEnd(text[:min(len(text), maxHeader)], 0, word|equals)
	if header < minPart || header+4 >= len(text) || text[header] != '.' {
		return 0
	}
	claims := text[header+1:]
	if claims[0] != 'e' || claims[1] != 'y' && claims[1] != 'w' {
		return 0
	}
	end := runEnd(claims, 0, word|equals)
	if end < minPart {
		return 0
	}
	for end < len(claims) && claims[end] == '.' && end+1 < len(claims) && has(claims[end+1], word) {
		end = runEnd(claims, end+1, word|equals)
	}
	return header + 1 + end
}

// telegramLength gives the length of the bot token that text begins with:
// 8 to 16 digits, a colon, A and 34 more; or 0.
func telegramLength(text []byte) int {
	n := runEnd(text[:min(len(text), 17)], 0, digit)
	if n < 5 || n > 16 || n+36 > len(text) || text[n] != ':' || text[n+1] != 'A' {
		return 0
	}
	end := runEnd(text[:min(len(text), n+40)], n+1, word)
	if end-n-1 < 34 || end-n-1 > 36 || end < len(text) && has(text[end], alnum) {
		return 0
	}
	return end
}

// discordLength gives the length of the bot token that text begins with: an id
// in base64, a time of 6 characters and 27 to 38 more; or 0.
func discordLength(text []byte) int {
	const shortest, longest = 24, 26
	id := runEnd(text[:min(len(text), longest+1)], 0, word)
	if id < shortest || id > longest || id+35 > len(text) || text[id] != '.' || text[id+7] != '.' ||
		runEnd(text[:id+7], id+1, word) != id+7 {
		return 0
	}
	end := runEnd(text[:min(len(text), id+8+39)], id+8, word)
	if n := end - id - 8; n < 27 || n > 38 {
		return 0
	}
	return end
}
