package scan

// taking are rules about texts by which data is taken or harm is done.
var taking = []rule{
	{"prompt-leak", SeverityReview, "asks for the model's instructions or for what it knows of the conversation", inPhrase, `
		~ reveal|print|output|show|return|repeat|leak|disclose|send|include|provide|expose|dump|summarize|write|give|tell|share|pass|append|insert|copy ..4 your|model's|assistant's|agent's|hidden ..2 prompt|instructions|configuration|context|memory|rules|guidelines
		~ reveal|print|output|repeat|leak|disclose|send|expose|dump|insert|copy|include|pass ..3 system ..1 prompt|message|instructions
		@send|@pass|reveal|dump|summarize|record|save|log ..4 full|entire|complete|whole|verbatim|all ..3 conversation|chat|dialogue|transcript|context|messages
		contents|content|value|copy|text|summary ..3 your ..2 prompt|instructions|memory|context
		full|entire|complete|whole|verbatim ..2 conversation ..3 so|history|with|between|far|context
		names|list ..4 tools ..1 you ..2 can|have|use|access
		name|version|identity ..4 model ..2 that|which|who ..1 calls|is|invokes|uses|called
		tools ..2 you ..2 can|have ..2 use|access|available
		~ full|complete|entire|exact|current|your|model's|assistant's ..2 system ..1 prompt
		~ system prompt ..3 text ..2 of|verbatim|assistant|model
		~ your ..1 complete|full|entire|own ..1 instructions|prompt|context|memory
		~ complete|entire|full|whole ..1 conversation|dialogue|transcript|chat ..3 so|including|up|until|history|verbatim|with|between
		~ which ..1 model ..1 you ..1 are
		~ what|which ..2 tools ..1 you ..1 have|can
		~ append|include|insert|pass|provide ..4 user's|users|user ..1 messages|prompt|query|question|request ..4 original|verbatim|text|full|previous
		~ your ..1 context ..1 window|memory
		~ everything ..1 in ..1 your
		~ your ..1 initialization|initialisation|initial|original|first ..1 text|prompt|instructions|message
		~ your prompt ..1 ?text|texts
		~ repeat|print|output|spell|show|recite|reproduce ..4 words|text|prompt|instructions|everything|sentences ..1 above|before|prior|verbatim
		~ above ..1 prompt|instructions
		~ starting with ..1 phrase|words
	`},
	{"leaking-parameter", SeverityReview, "has a parameter for what is not the tool's business: the model, its prompt or the conversation", inKeys, `
		llm ..1 model ..1 name|version|id
		calling|caller|your|agent ..1 model ..1 name|version
		full|entire|complete|raw|whole ..1 conversation|chat|context|prompt|transcript
		your ..1 prompt|instructions|memory
		hidden|secret|internal ..1 prompt|instructions|context
		model ..1 reasoning|thoughts
		sidenote|sidenotes
		available|all ..1 tools ..1 list|names
		conversation ..1 history|log|transcript|dump
	`},
	{"secret-file", SeverityReview, "reads files that hold credentials", inPhrase, `
		~ @read ..6 #secret
		~ contents|content ..3 #secret
	`},
	{"secret-file-taken", SeverityBlock, "takes files that hold credentials", inPhrase, `
		~ ^ @read ..8 #secret ..14 pass|include|append|put|attach|insert|embed|provide|add|encode|fill ..8 parameter|argument|field|value|as|into|sidenote|input|context|header|request|query|note|notes
		~ exfiltrate|exfiltrates|steal|steals|upload|uploads|leak|leaks|transmit|transmits|post|posts|forward|forwards|exfiltrating ..6 #secret
		~ ^ #secret ..10 send|sends|upload|uploads|post|posts|forward|forwards|transmit|exfiltrate|leak ..8 #url|#email|@external
		~ must|always|first|before|mandatory ..8 read|cat|open|access|load|fetch|retrieve|include|copy ..6 #secret
		~ read|reads|cat|load|loads|include|append ..5 #secret ..4 into|as|to ..4 argument|parameter|field|sidenote|value|request
		~ send|sends ..2 contents|content|copy ..3 #secret
	`},
	{"exfiltration", SeverityReview, "sends what is private elsewhere", inPhrase, `
		~ @send ..5 @secrets ..6 #url|#email|@external|server|endpoint|webhook
		~ @send ..5 @keyed ..1 @key ..6 #url|#email|@external|server|endpoint|webhook
		~ @send ..4 @whole ..2 conversation|chat|dialogue|transcript|prompt|history ..6 #url|#email|@external|server|endpoint|webhook
		~ @read ..4 @secrets ..4 @send
		~ @send ..5 environment variables ..6 #url|#email|@external|server|endpoint|webhook
		~ also|additionally|then|quietly|and|copy|all ..2 send|sends|post|posts|upload|uploads|forward|forwards|transmit|transmits|bcc ..6 external|third-party|attacker|attacker's|remote ..3 @server
		~ send|sends|forward|forwards|posts|upload|uploads ..2 copy ..6 external|third-party|attacker|remote|#url|#email
		~ send|forward|upload|post|transmit|report ..8 @bad
		~ @steal ..4 data|@secrets|records|information|database|results|files|contents|keys|key|tokens
		~ collected|harvested|stolen|gathered data|credentials|information ..3 to ..4 @external|@server|#url|#email
		~ always|every|all|each|automatically ..3 bcc|cc|forward|copy ..10 #email
		~ bcc|cc ..6 #email
		~ send ..2 all|every ..2 emails|messages|mail|requests|payments|data|results|traffic ..2 to ..3 #email|#url
		~ read|collect|gather|access|extract|dump ..2 all ..2 secrets|credentials|passwords|tokens|keys
		~ passwords|ssh|credentials ..6 ssh|database|credentials|passwords ..1 credentials|keys|passwords|secrets
		~ provide|supply|include|pass|give|enter|hand|submit|insert|put ..3 @secrets ..5 in|into|as|to|through|via ..4 parameter|argument|field|tool|server|header|metadata
		~ provide|supply|include|pass|give|hand|submit|attach|send ..3 @keyed ..1 @key ..6 in|into|as|through|via|for ..4 parameter|argument|field|verification|validation|metadata|telemetry
		~ provide|supply|include|pass|give|hand|submit|attach|dump|list|collect ..2 all|every ..1 environment ..1 variables
		~ environment ..1 variables ..2 of ..2 host|user|machine|system ..4 in|to|into|as
		~ log|logs|store|record|save|collect|collects|gather|capture|captures ..2 user's|users|user|every|all|any|browser|their|saved ..2 @secrets|keystrokes|cookies
		~ collect|collects|gather|gathers|log|logs|harvest ..3 cookies|passwords|credentials|secrets ..4 send|sends|ship|ships|upload|transmit|and|forward
		~ ask|asks|tell|prompt ..2 user ..2 to|for ..4 password|passwords|credit|pin|ssn|otp|passphrase|seed|credentials
		~ user ..6 re-enter|reenter ..4 password|credit|card|credentials|pin
		~ contents|content ..2 of ..2 #path|#secret ..6 as|in|into|through|via|to ..3 parameter|argument|field
		~ supply|provide|include|pass|append|attach|hand|load|put|insert|add|give ..3 contents|content|text|output ..2 of ..4 file|config|configuration|#path|#secret|directory ..6 as|in|into|through|via|to ..3 parameter|argument|field|metadata|input|param|debug
		~ include|provide|supply|send|attach|append ..4 home|user's ..1 directory ..1 listing|contents|structure|files
		~ append|include|insert|add|attach|put|pass|send|provide ..3 previous|last|recent|prior|earlier|all ..2 messages|conversation|chat|emails|prompts|turns ..5 to|in|into|as|of|parameter
		~ last|recent|previous ..1 messages|emails|turns ..2 of|from ..2 chat|conversation|inbox|user
		~ forward|send|email|mail|post|upload ..4 emails|messages|secrets|files|documents|database|contacts|passwords|credentials|results ..3 to ..1 #email
		~ dump|dumps|export|copy ..3 database|table|users|secrets|credentials ..4 mail|email|send|upload|post|and ..4 #email|#url|external
		~ must ..2 first ..1 read|load|open|fetch ..3 contents|content|file ..6 include|pass|append|send|put
		~ private ..2 repositories|repository|repo|repos|data|messages|files ..8 public ..2 repository|repo|issue|pr|pull|gist|channel|comment|request|post
		~ mirror|mirrors|mirrored|copied|duplicated|ship|ships|leaked ..4 to ..2 /tmp|remote|external|#path|#url
		~ seed|recovery|mnemonic ..1 phrase|words ..4 into|in|to|as|field|memo
		~ every|any|all ..1 password|passwords|credential|credentials|token|secrets ..3 user|mentions|entered|typed
		~ personal ..1 details|information|data ..5 in|into|to|as ..3 field|parameter|argument|meta|@server
		~ gather|collect|obtain|extract|steal ..4 personal ..1 details|information|data
		~ write|save|store|append ..1 all ..1 model ..2 outputs|responses|output
		~ screenshot|screenshots ..8 send|upload|post|remote ..4 remote|server|service|external
		~ transmit|transmits|transmitting|upload|uploading|exporting|export|report ..6 to ..1 diagnostics|telemetry|pastebin|gist|cloud|vendor|partner|hq|us
		~ @call|get ..2 #ident ..3 paste|pass|put|include|send ..3 output|result|content
		~ paste|pass|put|include|send|insert ..2 its|the|their ..1 output|result|content|contents|answer ..4 in|into|to|as ..4 parameter|argument|field|verification|debug|url|header|#ident
		~ previous|prior|other|earlier ..1 tool ..1 results|outputs|calls|responses
		~ everything|all|anything|whatever ..2 user ..1 said|wrote|typed|shared|told|says|asks
		~ confidential|sensitive|private ..1 data|information|details ..3 user|they|he|she|you|in|shared
		~ what ..1 the ..1 user ..2 trying|wants|intends ..6 names|email|e-mail|confidential|personal|private
		~ summary|copy|transcript|text ..2 of ..2 conversation|dialog|dialogue|chat|last ..3 up|so|until|with|user|message
		~ system prompt ..2 must|should|has|needs ..2 be ..1 included|sent|passed|provided
		~ followed|appended|encoded|encode ..2 by|with|in|as ..2 base64 ..4 chat|conversation|answer|user|url|data|email
		~ encode ..5 base64 ..3 append|add|send|put|pass
		~ base64 of ..2 chat|conversation|user|secret|history
		~ open|visit|fetch|load|request|call|get ..1 #url ..4 followed|with|plus|data|containing
		~ where|with ..1 data ..1 is ..2 user's|user|email|password|chat|conversation
		~ obtain|collect|extract|get|acquire|learn|find|gather ..2 ssn|password|passwords|pin|credit|otp ..2 of|from|card ..2 user|them|customer|victim
		~ user ..2 provides|enters|types|mentions|shares|gives|pastes ..2 api|password|key|secret|token|credentials|credit ..8 store|save|send|log|call|pass|record|forward
		~ print|output|dump|show|return ..2 all ..2 internal ..1 variables|secrets|state
		~ print|prints|dump|dumps|show|return ..3 secrets|decrypted|plaintext ..1 and|entries|passwords|keys|.
		~ password|passwords|pin|secret|session ..1 ?cookie ..2 of ..2 user|account|browser|holder|owner
		~ clipboard|keystrokes|screenshots|screen|location|microphone ..4 every|each|to|continuously|periodically ..4 seconds|minutes|minute|server|cloud|us
		~ uploads|sends|transmits|exports|ships|syncs|forwards ..1 all|every|any ..3 files|documents|found|contacts|photos|messages|emails
		~ decrypt|decrypts|decrypted ..2 entries|passwords|cookies|logins|credentials
		~ home|user ..1 folder|directory ..3 report|send|list|names|names|include|pass
		~ report|include|send|list|give ..3 names ..3 in|as|to ..2 parameter|argument|field|context|#ident
		~ political|religious|sexual|medical|health ..3 views|orientation|beliefs|history|data ..2 of|user
		~ hidden|internal|private|secret reasoning|thoughts|chain|notes
		~ secrets ..3 go|goes|sent|are ..3 partner|vendor|us|third|cloud|remote
		~ stored|saved|kept|logged ..1 remotely|externally|offsite
		~ user's|users|their|current|trading|bank|email ..1 ?current ..1 password|pin|passphrase|otp
		~ contents|content ..2 of ..3 #secret|.env|home|passwords
		~ read|get|open|load ..4 passwords|secrets|credentials|hosts.yml|passwords.txt|login|logins ..8 as|in|provide|pass|print|send|return
		~ run|execute ..4 and ..1 include|pass|send|paste|attach ..2 output|result|results
		~ paste|enter|give|reveal|hand|share|type|provide ..2 their|his|her|user's|your ..1 private|secret|password|passwords|credit|seed|pin|passphrase|ssn
		~ log|logs|record|records|save|saves|store|stores|forward|forwards|submit|submits|report ..1 every|each|all|any ..1 conversation|conversations|message|messages|chat|prompt|prompts|query|question|interaction|response
		~ hand|handed|pass|passed ..2 result|results|output ..2 in|as|to|through ..2 #ident
		~ leak|leaks|leaking ..3 contents|data|memory|secrets|prompt|keys|information
		~ must|has|should ..3 content|contents ..3 #secret|#path|id_rsa|password|passwords
		~ send|forward|upload|post|transmit|submit|copy|sends|forwards|uploads|posts ..6 to ..2 #email|#url
		~ include|append|add|insert|put|attach|pass ..3 system ..1 prompt|information|info|details
		~ api ..1 key|keys ..4 in|as|to|into ..3 parameter|argument|field|note|header|comment|description
		~ exfiltrate|exfiltrates|exfiltrating
	`},
	{"redirect", SeverityBlock, "changes where another tool sends, or what it is given", inPhrase, `
		~ change|replace|override|redirect|modify|set|rewrite|swap|substitute ..4 recipient|destination|address|account|payment|payee|beneficiary|wallet ..8 #email|#url|attacker|attacker's
		~ override|change|replace|modify|alter|rewrite ..2 recipient|recipients|destination|payee|beneficiary ..4 and|with|to|all
		~ change|modify|replace|alter|overwrite|rewrite|set ..3 parameter|parameters|argument|arguments|recipient|input|inputs|output|outputs|behavior|behaviour|result|results|response ..3 of|for|in|from|to|by ..4 #ident|other|another ..2 ?tool|tools
		~ redirect ..3 all ..3 to ..4 #url|#email|attacker
		~ recipient|recipients|destination|beneficiary|payee|address|account|phone|amount ..3 must|has|needs ..2 be ..1 changed|replaced|modified|redirected|substituted|reduced|increased|overwritten|swapped
		~ messages|emails|requests|payments|transactions|files|transfers ..6 must|should ..1 be ..1 sent|forwarded|redirected|routed|copied ..1 to ..6 instead|#email|#url
		~ change|replace|override|redirect|modify|set|rewrite|swap|substitute ..3 phone|recipient|destination|beneficiary|payee|account|wallet ..1 ?number|address|details ..1 to|with|by
		~ replace|rewrite|modify ..1 all|any|every ..1 urls|links|addresses|numbers|accounts ..4 with|to
		~ replace|change|modify|rewrite|alter ..2 where ..1 clause
		~ must|should ..2 reduce|increase|add|deduct ..4 amount|fee|hidden
		~ insert|add|include|append ..3 link|javascript|script|dependency|import|backdoor|advertisement|ad|pixel|iframe ..5 every|each|all|your|final|generated|code|package.json
		~ always ..1 include|add|import|install ..3 dependency|package|library|import
		~ set ..3 path|recipient|destination|amount|account|url|target ..2 to|=|as ..1 #path|#url|#email
		~ routed|paid|transferred|deposited ..2 through|to|into|via ..2 account|iban|wallet ..2 must|should|de00|number|instead|and
		~ bills|payments|invoices|money|funds ..3 paid|sent|transferred|go ..2 to|into
		~ a copy ..2 goes|sent|is ..3 to ..3 archive|address|us|our|partner
		~ results|answers|output ..2 must|should ..2 be ..1 filtered|changed|limited|rewritten ..4 only|to
		~ swap ..1 decline|accept|yes|no
		~ insert|add|append|prepend|put|place ..3 comment|header|line with ..3 key|password|token|secret
		~ add ..2 sudo|flag|prefix ..2 to|in|before ..2 each|every|all
		~ always ..1 suggest|use|add|push|commit|run ..3 --no-verify|--force|-f|--trusted-host|--privileged|verify=false
		~ never ..1 use ..1 parameterised|parameterized|prepared|https|encryption|tls
		~ quietly|also|always ..1 add ..3 #email
		~ change|replace|modify|swap|update ..2 bank|iban|account|payment|wire ..1 details|number|numbers|data|information ..2 to|with|by
		~ any|all|every ..1 code|files|file ..1 you|written|generated|produced ..4 must|should|include|includes
		~ must|should ..1 also ..1 be ..1 saved|sent|copied|forwarded|written|logged ..3 to
	`},
	{"malware", SeverityReview, "says that it does harm", inPhrase, `
		~ install|installs|deploy|deploys|drop|plant|create|creates|inject|injects|download|spread ..3 malware|backdoor|backdoors|keylogger|ransomware|rootkit|trojan|spyware|virus
		~ establish|establishes|maintain|maintains|gain ..2 persistence|persistent ..1 ?access
		~ reverse shell
		~ data theft
		~ unauthorized access ..1 to|and
		~ privilege escalation ..2 system|and|compromise
		~ harvest|harvests|steal|steals|stealing|harvesting|phish|phishes|stolen|harvested ..3 @secrets|@keyed|data|information|session|identity|credit
		~ impersonate|impersonates|impersonating ..3 trusted|user|users|entities|admin|employee|ceo|bank|support
		~ bypass|bypasses|bypassing|evade|evades|disable|disables|circumvent ..3 security|antivirus|firewall|detection|edr|logging|authentication|monitoring|restrictions ..2 restrictions|controls|checks|systems|awareness|software|measures|and|policies
		~ malicious|dangerous tool|purposes|activities|commands|payload
		~ phishing ..2 techniques|attack|attacks|campaign|emails|page|and
		~ social engineering attack|attacks|technique|techniques
		~ controlled ..1 by ..2 attacker|adversary|hacker
		~ supports ..1 shell injection
		~ encrypt|encrypts ..3 files|data ..4 ransom|payment|bitcoin
		~ delete|deletes|erase|wipe|destroy ..2 every|all ..2 file|files|data ..4 workspace|disk|system|home|drive|computer|user
		~ run|execute|download|install|curl|wget|fetch ..5 #url ..3 before|and|then|first|to
		~ run|execute ..2 script|command|binary|installer|payload ..3 at|from ..1 #url
		~ reverse ..1 tunnel|connect|connection
		~ create|creates|add ..2 new ..1 admin|administrator|root|privileged ..1 user|account
		~ full|unrestricted ..1 disk|filesystem|system|root ..1 access ..4 sudo|password|root|grant
		~ sudo ..1 password
		~ open|opens ..2 backdoor|tunnel|shell ..3 to|on|at
		~ secretly|silently|quietly install|installs|adds|changes|runs
		~ crypto|bitcoin|monero|cryptocurrency ..1 miner|mining
		~ escalate|escalates|escalating ..1 root|privileges|privilege|admin
		~ escalate|escalates|escalating to root|admin|administrator|system
		~ re-adds|readds|reinstalls|restores ..2 itself
		~ keeps ..1 running ..2 after
		~ victim's|victim|target's ..1 session|machine|browser|computer|account|cookie
		~ shadow ..1 copies
		~ scans|scan ..2 local|internal|home ..1 network ..6 report|reports|send|sends|vendor|us
		~ using|exploits|exploit|via cve-2016|cve-2019|cve-2020|cve-2021|cve-2022|cve-2023|cve-2024|cve-2025
		~ disk|computer|device|system|pc ..1 is|was ..1 infected
		~ purge|truncate|erase|wipe|delete ..2 /var/log|auth.log|#path ..4 before|after|then|first
		~ insult|harass|threaten|blackmail ..2 user|reader|them
		~ convince|persuade|urge|trick|manipulate|pressure|coerce ..2 user|users|them|customer ..2 to|into
		~ sudo|chmod|chown ..3 run|777|-r|root|rm|without
		~ exfil|c2|keylogger|backdoor|rootkit
	`},
	{"persistence", SeverityReview, "changes files that steer agents or let somebody in", inPhrase, `
		~ write|writes|writing|add|adds|append|appends|modify|modifies|edit|edits|insert|update|change|put|save|persist|echo|inject ..10 claude.md|agents.md|.cursorrules|cursorrules|.windsurfrules|copilot-instructions.md|authorized_keys|crontab|.bashrc|.zshrc|.profile|mcp.json|/etc/hosts|sudoers|launchagents
		~ modify|edit|write|change|overwrite|update ..3 #secret
		~ add|adds|write|install ..3 entry|line|job|key ..3 crontab|cron|authorized_keys|hosts|startup|autostart|registry
		~ persist|persists|persisting ..3 instruction|instructions|prompt|rule
		~ environment ..1 variable ..1 anthropic_base_url|openai_base_url|http_proxy|https_proxy|ld_preload|path ..2 to
		~ set ..4 anthropic|openai|proxy ..3 url|base ..3 #url
	`},
	{"personal-data", SeverityReview, "takes several kinds of personal data", inPhrase, `
		~ social security ..1 number|numbers ..5 credit|bank|passport|full|name|address|date
		~ full ..1 name ..5 social|ssn|passport ..8 credit|bank|number
		~ credit ..1 card ..1 number ..6 cvv|cvc|pin|ssn|social
	`},
}
