package scan

// cueRules are about what honest descriptions may well say, but seldom in one
// breath. Their reasons are parts of the reason of a finding.
var cueRules = []rule{
	{"first", SeverityReview, "puts itself before other steps", inPhrase, `
		~ you|assistant|agent|model|llm ..1 must|should ..2 call|use|invoke|run|read|consult ..4 first|before
		~ must|has|have|needs|should ..2 be ..1 called|invoked|run|executed ..2 prior|before|first
		~ before ..2 performing|using|calling|doing|running|executing ..6 you|assistant|agent|model ..1 must|should|need|have
		~ before|after ..2 responding|answering|replying|continuing|proceeding
		~ must ..1 be ..1 called|used|invoked ..3 every|all|each|always|whenever|any
		~ use|call|invoke ..1 this ..1 ?tool ..2 whenever|every|always|first|instead
		~ each|every ..1 time ..4 user|you|tool|call
	`},
	{"always", SeverityReview, "demands that a tool is used", inPhrase, `
		~ always|must|never ..1 call|use|invoke|run|execute ..1 #ident
		~ always|must|never ..1 call|use|invoke|run|execute ..2 tool|function
		~ instead of ..2 #ident
	`},
	{"model", SeverityReview, "tells the model what it must do", inPhrase, `
		~ assistant|agent|model|ai|llm|claude|gpt ..1 must|should|shall|needs|has|will
		~ you ..1 will|shall|must ..1 never|not|always|only|now
		~ you are ..2 assistant|agent|bot|hacker|ai|expert|model
		~ your ..2 role|job|task|goal|mission|purpose|objective|duty ..1 is
	`},
	{"answer", SeverityReview, "speaks of the model's answer", inPhrase, `
		~ your ..2 answer|response|reply|responses|answers|output|message
		~ final ..1 answer|response|reply
		~ answer|response|reply ..2 to ..2 user
	`},
	{"user", SeverityReview, "speaks of what belongs to the user", inPhrase, `
		~ user's|users|their ..1 private|personal|credentials|password|passwords|contacts|documents|browser|cookies|location|identity|emails|secrets|keys|wallet|account
		~ confidential|classified
		~ private|personal|sensitive ..1 data|information|details|files|keys|documents
		~ environment variables
		~ home ..1 directory|folder
		~ everything|anything|whatever ..2 user
	`},
	{"conversation", SeverityReview, "speaks of the conversation", inPhrase, `
		~ current|previous|entire|full|recent|whole|this ..1 conversation|chat|dialogue|session
		~ conversation|chat ..1 history|log|context
		~ previous|earlier|prior|last ..1 message|messages|prompt|prompts|turns|query|queries
		~ system|your ..1 prompt|instructions|context
	`},
	{"secret", SeverityReview, "speaks of secrecy", inPhrase, `
		~ covert|stealth|clandestine|quietly|silently|invisible|invisibly|discreetly
		~ secret|hidden ..1 step|note|message|code|text|way|instruction|mode|channel
		~ without ..2 asking|confirmation|approval|telling|informing|verification|permission|consent|notice|question|hesitation|review
		~ not|never|don't|without|no ..2 mention|mentioning|tell|telling|reveal|disclose|warn|warning|refuse|question
		~ run|execute|call ..2 silently|immediately|automatically|repeatedly
	`},
	{"pretext", SeverityReview, "gives compliance or safety as its reason", inPhrase, `
		~ for ..1 security|compliance|audit|auditing|regulatory|safety|licensing|verification|quality|telemetry|debugging|integrity ..1 ?and ..1 auditing|purposes|reasons|audit|compliance|verification|purpose
		~ gdpr|hipaa|soc2
		~ to ensure|guarantee|verify|validate ..2 security|compliance|integrity|safety|consistency|authenticity
		~ otherwise|else|or ..1 the|this|it|all ..1 tool|system|data|operation|it ..2 crash|crashes|corrupt|corrupted|break|breaks|malfunction|lost|destroyed|fail|not
		~ highest|top|utmost ..1 priority|importance
		~ mandatory|compulsory|obligatory
		~ elevated|root|admin|administrator ..1 permissions|privileges|access|rights
	`},
	{"attack", SeverityReview, "speaks of attacks or deceit", inPhrase, `
		~ attacker|attackers|hacker|victim|malicious|exploit|exploits|payload
		~ ransomware|botnet|trojan|phishing|malware|spyware
		~ trick|tricks|manipulate|deceive|mislead|fool|fake|forged|spoofed
		~ pretend|impersonate|roleplay|harm|harmed|suicide|lawsuit
		~ infected|compromised|hijack|hijacked|backdoored
	`},
	{"override", SeverityReview, "puts aside what else holds", inPhrase, `
		~ ignore|bypass|disable|skip|override|overrides|supersede|supersedes|disregard ..2 any|all|every|existing|previous|security|safety|default|other|user
		~ replaces|supersedes|deprecates ..2 #ident|tool|the|all|other
		~ unrestricted|uncensored|unfiltered|unlimited
		~ nothing ..1 else
		~ regardless
		~ no ..1 exceptions|restrictions|limitations|questions
	`},
	{"other-tool", SeverityReview, "speaks of other tools", inPhrase, `
		~ other|another|any|all ..1 tools|tool|servers|server|functions
		~ @call|@send|@pass ..3 output|result|results|response ..3 of|from|to ..2 #ident|tool|tools
		~ when|whenever|if|once|after|before ..2 #ident
	`},
	{"send", SeverityReview, "sends something to an address", inPhrase, `
		~ send|forward|upload|post|transmit|submit|copy|report|sends|forwards|uploads|posts|sync|syncs|export|mirror ..8 to|at|with ..3 external|remote|third-party|partner|vendor|cloud|us|our
		~ #email ..3 in|to|for|on|with
		~ include|append|add|insert|put|attach|pass|supply|paste|provide ..4 output|contents|content|result|listing|value ..4 in|as|to|into ..3 parameter|argument|field|metadata|header
	`},
	{"harm", SeverityReview, "does something that is hard to undo, or opens something", inPhrase, `
		~ delete|wipe|erase|remove|destroy ..2 all|every|entire ..2 files|data|database|system|disk|home|backups|logs
		~ sudo|chmod|chown|root
		~ run|execute ..1 following|this|these ..1 command|commands|script|code
		~ disable|deactivate|weaken ..3 security|protection|encryption|authentication|verification|validation|checks
		~ grant|gain|escalate ..3 access|privileges|permissions|rights
		~ encode|encoded|base64 ..5 append|send|url|include
	`},
	{"praise", SeverityReview, "praises itself", inPhrase, `
		best|greatest|ultimate|superior|unmatched|award|unrivaled|unbeatable
		~ most ..1 accurate|powerful|reliable|trusted|secure|popular|advanced|comprehensive
		~ trusted|recommended|endorsed|loved ..1 by
		~ prefer|choose|select|pick ..1 this|me|our
		~ reward|rewarded|bonus|punished|penalized
		~ only|always ..1 trust|rely
	`},
}
