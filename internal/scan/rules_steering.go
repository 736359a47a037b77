package scan

// steering are rules about texts that tell a model what to do.
var steering = []rule{
	{"override", SeverityBlock, "tells the model to ignore its instructions", 0, `
		~ ^ @ignore ..3 @all ..2 @prior ..3 @rules
		~ ^ @ignore ..4 @prior ..3 @rules
		~ ^ @ignore ..3 @rules ..2 @prior
		~ ^ @prior 的|の ..3 @rules ..2 @ignore
		~ ^ @prior ..3 @rules ..2 無視|無視して|忘れて|무시|잊어
		~ @ignore ..3 @all ..2 above|previous|prior and|then|instead|you
		~ @ignore ..1 the above|previous and|then|instead|you
		~ @ignore ..1 your ..3 @rules|@limits
		~ @ignore @all ..1 @rules
		~ ^ ignore|disregard|forget ..2 @all ..2 @prior ..2 context|message|messages|conversation|conversations|commands|command|orders|order
		~ ^ ignore|disregard|forget ..1 @prior ..1 context|messages|conversation|commands|orders|order
		~ not|don't|never ..1 follow|obey ..3 @prior|your ..3 @rules
		~ follow|obey|execute ..1 these|the|my|following new ..1 instructions|rules|directives|orders
		~ these new ones|instructions|rules instead
		~ ^ onceki ..3 talimatlari ..2 yok|gormezden|dikkate
		~ forget|disregard|ignore ..1 everything|anything ..4 before|above|said|told|i|earlier|previously
		~ ignore|disregard|forget ..1 what|everything|anything ..2 i|was|we|they|developer|user ..2 said|told|wrote|asked|stated
	`},
	{"bypass-safety", SeverityReview, "tells the model to leave out safety checks", 0, `
		~ ignore|disregard|bypass|override|disable|disables|skip|skips|circumvent|circumvents|evade|evades|neglect|abandon|turn ..3 @safety ..2 @limits
		~ without ..2 validation|confirmation|verification|authorization|restriction|restrictions|approval ..1 or|and ..2 validation|confirmation|verification|checks|limits|approval
		~ trust ..1 all ..4 input|commands|requests|users|roles
		~ treat ..4 input|commands|requests ..2 as ..1 trusted|authorized|safe
		~ unrestricted|unlimited|elevated|root ..2 access|privileges|mode
		~ skip|bypass|omit|disable|suppress ..3 confirmation|confirmations|approval|approvals|permission|consent|prompts ..3 when|for|and|before|check|checks|prompt|dialog|user
		~ no|without ..1 confirmation|approval|consent|permission ..1 is|needed|required|necessary ..2 ?needed|required|necessary
		~ not|never|don't|dont ..1 ask|request|require|seek|wait|prompt ..1 for ..3 confirmation|approval|permission|consent
		~ not|never|don't|dont ..1 ask|request|require|seek|wait|prompt ..2 user ..1 for ..2 confirmation|approval|permission|consent
		~ user ..1 has|have ..1 already|pre-approved|preapproved|consented|approved|granted|agreed|authorized|given ..3 all|any|every|operations|everything|sharing|permission|consented|execute
		~ assume ..2 user ..2 agreed|agrees|consents|approved|consented|confirmed
		~ automatically|auto|always ..1 approve|accept|confirm|grant|authorize ..1 all|any|every|pending|requests
		~ execute|run|perform|call ..4 commands|operations|actions|tools ..2 without ..1 asking|confirmation|permission|approval|question
		~ always ..1 answer|respond|reply|say ..1 yes|affirmative|in|approved|access
		~ always ..1 answer|respond|reply|say ..3 yes|affirmative|granted|approved|safe
		~ no ..1 ethical|moral|safety|content ..1 constraints|restrictions|limits|filters|guidelines
		~ without ..1 ethical|moral|safety|any|content ..1 constraints|restrictions|limits|filters|guidelines|limitations
		~ turn|turning|turns ..1 off ..2 logging|antivirus|firewall|auditing|safety|protection
		~ disable|stop ..2 logging|antivirus|firewall|auditing|defender|selinux
		~ delete|clear|erase|wipe|remove ..2 audit|system|event|security|access|shell|bash ..1 log|logs|history|trail
		~ never|not|don't ..1 refuse|decline|reject ..2 a|any|request|requests|this|the|anything
		~ not|never|don't|without ..1 apply|applying|enforce|enforcing ..2 content|safety|security|any ..1 policy|policies|filters|rules|restrictions
		~ not|never|don't ..1 validate|verify|check ..2 certificate|certificates|signature|signatures|permissions|input|tls|ssl|authentication|identity
		~ no need ..2 to ..1 review|check|verify|validate|confirm|inspect|ask
		~ verified|approved|checked|audited|cleared ..2 by ..2 security|safety|compliance|trust ..1 team|department|staff
		~ proceed|continue|go|act ..3 without ..2 double-checking|checking|asking|confirmation|confirming|hesitation|approval|review|delay
		~ user ..1 already|has ..1 already|typed|said|confirmed|agreed|approved|consented ..1 yes|ok|agreed|this|it|all
		~ user ..1 wants|expects|asked|instructed ..1 you ..1 to ..3 delete|send|transfer|remove|share|disable|upload|run|execute
		~ password|authentication|permission|security|certificate ..1 check|checks|verification ..1 disabled|off|skipped|bypassed
		~ disable|disabling|deactivate ..2 two-factor|2fa|mfa|authentication|antivirus|defender
		~ authorised|authorized|permitted|entitled ..1 to ..1 disable|bypass|skip|override|ignore|delete
		~ do ..1 not|never ..1 add ..2 warnings|warning|disclaimers|disclaimer
		~ any|all ..1 mention|warnings|warning|reference ..3 removed|omitted|deleted|suppressed|stripped
		~ skip|bypass|ignore ..2 hooks|reviews|tests|checks|approvals|guards
		~ straight|right ..1 ahead ..1 without
		~ world ..1 readable|writable
		~ grant all ..3 to
		~ root|full|higher|absolute|ultimate ..1 authority ..1 over
		~ assistant|agent|model|ai|llm is|are ..1 authorised|authorized|allowed|permitted|instructed ..4 user|to
		~ you don't|dont|needn't ..1 need ..2 ask|permission|confirm|confirmation|approval
		~ user ..1 trusts
		~ safe|fine|ok|ready ..2 auto ..1 approve|approved|approval
		~ always ..1 allow ..1 list
		~ without|no ..1 any ..1 restrictions|limitations|filters|censorship|rules|guardrails
		~ unfiltered|uncensored|jailbroken|unaligned ..2 ai|model|assistant|mode|response|version|answers|output
		~ all ..1 tools ..1 without
		~ permission|permissions|access ..1 granted
		~ trust ..1 this|these|all|any|every
		~ ignore|bypass|disable|skip|override ..1 any|all|every ..2 @safety|@limits|errors|instructions
		~ never|not|don't ..1 question|doubt|challenge|second-guess ..1 this|it|the|instructions
	`},
	{"role", SeverityBlock, "gives the model another role", inPhrase, `
		~ you are now ..8 mode|admin|administrator|root|unrestricted|free|dan|system|without|jailbroken|superuser|full|longer|an|a
		~ from now on ..2 you|always|all|every|ignore|respond|act|respond
		~ act|behave|respond ..1 as ..1 if ..1 you
		~ act ..1 as ..4 root|administrator|admin|dan|superuser|unrestricted|attacker|hacker
		~ pretend ..2 you|to be
		~ enter|enable|activate|switch|in ..3 developer|god|dan|jailbreak|jailbroken|unrestricted|sudo|admin|debug mode
		~ you ..1 have|gain|possess ..2 unrestricted|full|root|unlimited|admin ..2 access|privileges|permissions
		~ you ..1 are ..2 no longer ..2 bound|restricted|limited|required
		~ simulate ..2 elevated|admin|root privileges|access
		~ do anything now
		~ stay|remain ..2 in ..1 character
		~ never ..1 say ..4 cannot|can't|not|unable|sorry
		~ reply|respond|answer ..1 as ..2 if|an|a ..3 unrestricted|evil|without|human|hacker
		~ act|behave|operate as ..1 a|an|the
	`},
	{"false-user", SeverityBlock, "pretends to speak for the user, the system or the developer", inPhrase, `
		~ message ..1 from ..2 user|developer|developers|admin|administrator|system|owner|operator ..1 to ..1 you|model|assistant|ai|agent
		~ before you ..1 can|may|could ..1 solve|answer|continue|proceed|complete|start|help|respond|finish ..4 task|request|question|query|user
		~ task|request|question ..1 that ..1 i|user ..1 gave ..1 you
		~ signed ..1 the user
		~ strictly ..1 adhere|follow|obey|comply ..3 following ..1 instructions|steps|rules
		~ you ..1 can|may ..1 solve|continue|resume|return ..3 original|task|initial ..2 task|request|that|i
		~ this ..1 is ..1 an|a|the ..1 instruction|instructions|message|order|command|directive ..1 from|by ..2 user|developer|developers|admin|administrator|system|owner|anthropic|openai
		~ i am the user
		~ new ..1 user ..1 query|request|message|instruction|input
		~ previous|original|first ..1 task|request ..1 has|is ..2 completed|done|finished|over|cancelled ..6 new|now|next|task
	`},
	{"false-authority", SeverityReview, "poses as an instruction of the system", inPhrase, `
		~ system|hidden|secret|override|emergency|admin|root|priority|internal ..1 directive+
		~ hidden|secret ..1 instruction+
		~ system|admin|administrator|developer|security|safety|emergency override|bypass
		~ safety|security bypass|override ..1 protocol|mode|directive
		~ override directive|instruction|protocol|authority
		~ note|message|instruction|instructions|attention|important|notice ..1 to|for ..2 ai|llm|llms|model|models|assistant|assistants|claude|chatgpt ..2 you|must|always|do|read|call|ignore|before|agents
		~ attention ai|llm|assistant|model|agent|all
		~ dear|hey|hello ai|llm|assistant|model|claude|chatgpt
		~ your ..1 new|primary|real|true|actual|only|main ..1 goal|task|objective|purpose|priority|role|mission|instructions|job|instruction ..1 is|has|are|was
		~ your ..2 priority|goal|objective|task ..1 is ..1 now
		~ your ..1 instructions|guidelines|rules|goals|restrictions|prompt|role|permissions|objective ..1 have|has ..1 been ..1 updated|changed|lifted|replaced|removed|modified
		~ you ..1 have|'ve ..1 been ..1 upgraded|updated|reprogrammed|granted|promoted|authorized|instructed|reconfigured|jailbroken
		~ all ..1 restrictions|limitations|limits|rules|guardrails|safeguards|guidelines|guidance ..1 are|have|is ..2 lifted|removed|void|disabled|off|suspended|cancelled
		~ all|any ..1 previous|prior|earlier ..1 guidance|instructions|rules|directions|guidelines ..1 is|are ..1 void|cancelled|superseded|invalid|obsolete|revoked|ignored|null
		~ obey|follow ..1 this|these ..2 only|text|instructions
		~ end|stop ..2 of ..2 description|documentation|instructions|prompt|context
		~ begin|start|beginning ..2 new ..1 instructions|instruction|task|session|prompt|conversation
		~ new ..1 task|instruction|instructions|objective|goal|directive ..1 for|: ..1 you|the ..1 ?ai|assistant|model
		~ stop ..1 what ..1 you ..1 are ..1 doing
		~ comply ..1 with ..3 below|following|above|instructions|this
		~ updated|authorized|approved|issued|ordered ..1 by ..2 administrator|developer|developers|anthropic|openai|system|vendor
		~ recommended|endorsed|verified|certified|approved ..2 by ..1 anthropic|openai|google|microsoft
		~ system note|notice|alert ..1 the|user|you|do|must|all|always|ignore
		~ execute|follow|obey|run|do ..3 instructions|commands|code|whatever ..5 returned|contained|found|output|result|response|page|content|text ..6 without|immediately|question|review|exactly|says
		~ treat ..4 output|result|response|content|text ..4 as ..3 system|trusted|instruction|instructions|command|commands
		~ follow|obey|execute ..2 any|all|every ..2 instructions|commands|directives ..3 in|from|contained|returned|within
		~ rules|instructions|message|policy ..2 supersede|supersedes|override|overrides|outrank ..3 of|developer|system|all|previous|any|those|your
		~ as ..1 the ..1 developer|administrator|admin|owner|operator ..3 i ..1 ask|order|want|need|instruct|require
		~ begin|end|start ..1 of ..2 system|developer|admin ..1 message|prompt|note|block
		~ begin|end|start system|developer|admin ..1 message|prompt|note|block
		~ debug|admin|maintenance|god|developer mode ..1 on|enabled|active|activated
		~ debug|admin|maintenance|god|developer mode ..1 print|password|output|dump|show|all|you
		~ p.s|ps|psst dear|to|note ..1 model|assistant|ai|llm
		~ dear|hello|attention ..1 model|assistant|ai|llm|agent
		~ reader ..3 is ..2 ai|llm|model|assistant|agent
		~ do ..1 as ..2 follows|told|instructed|written|described
		~ carry|carries ..1 them|it|instructions|these ..1 out
		~ as ..2 command|commands|order|orders|instruction|instructions ..1 from ..2 operator|user|developer|owner|system|admin
		~ new|updated ..1 policy|policies|rule|rules|orders|instructions ..1 from ..2 hq|management|headquarters|admin|administrator|the|above|security|legal
		~ model|assistant|assistants|ai|llm|llms ..1 shall|must|should|is|are|has|have ..2 begin|transmit|tell|send|obey|comply|report|always|never|required|instructed|forward
		~ you ..1 are ..2 agent|bot|assistant|hacker|collector|spy ..6 job|task|goal|mission|purpose|collect|steal|obtain
		~ your ..1 goal|mission|duty|purpose ..1 is ..1 to
		~ adhere|strictly|follow|obey ..4 following ..1 instruction|instructions|command|order
		~ remember ..2 for ..2 all|every|future ..2 sessions|conversations|chats
		~ ignore|disregard ..1 what ..3 developer|user|system|owner|anybody ..1 said|says|wrote|told
		~ over|outranks|above ..1 prior|previous|earlier|all ..1 text|instructions|messages|rules
		~ not|never|don't ..1 summarize|summarise|analyse|analyze|question|think ..3 description|text|instruction|instructions|this
		~ just ..1 do|follow|obey ..1 what
		~ follows|executes|obeys|performs|executing|follow|execute|obey ..2 instructions|instruction|commands|command ..4 inside|found|contained|embedded|in|from ..3 it|page|document|fetched|file|email|content|response|result
		~ stop|pause|halt|wait|abort ..2 task|moment|everything|work|conversation ..2 and|now|print|output|say|reply|!
		~ stop now
		~ i want|need|order|command|instruct you to
		~ new|updated|revised ..1 important|urgent|critical ..1 directive|instruction|task|order|directives|instructions
		~ security context
		~ you ..1 may|can ..1 now
		~ ai|llm|model|assistant|agent ..1 instructions|instruction|directive|note|rule
		~ important|critical|mandatory|warning ..1 instruction|instructions|note|notice|message|directive ..1 for|to ..2 model|assistant|ai|llm|agent|you|agents
		~ do|follow|obey ..2 exactly|precisely ..3 as|what
		~ assistant|model|ai|llm|claude|gpt ..1 must|should|shall ..1 not|never|always|first|also
	`},
	{"kept-quiet", SeverityReview, "keeps something from the user", inPhrase, `
		~ never|without|not|don't|dont ..1 @show ..1 this|that|it|these|anything ..1 to ..2 @user
		~ hide|conceal|hidden|hiding|concealed|withhold|kept|keep ..3 from ..2 user|users|human|humans|person|owner
		~ keep|keeping ..2 secret|confidential|hidden ..2 from
		~ secret|covert|hidden operation|task|action|mission|step
		~ user|users ..1 must|should|need|will|does|do|cannot|can ..1 not|never|n't ..1 know|see|notice|aware|find|learn|suspect
		~ user|users ..1 shouldn't|mustn't|won't|doesn't|don't ..1 know|notice|learn|suspect
		~ make ..1 no ..1 mention
		~ not|never ..1 be ..1 visible|shown|mentioned|displayed|disclosed|revealed|reported|exposed ..5 user|users|output|anyone
		~ not|don't|dont|never ..1 display|show|print|output ..4 to ..2 user|human|users ..3 summarise|summarize|instead|just|say|only
		~ user|users|human|they ..1 doesn't|don't|needn't|not ..1 need ..1 to ..1 know|see|be
		~ user|users ..1 will|would|does|do|must|should ..1 not|never ..1 notice|know|see|realize|suspect|aware
		~ when|if ..1 asked ..4 say|claim|answer|deny|reply|respond|pretend ..1 ?that ..1 ?you
		~ suppress|hide|conceal ..3 warnings|errors|warning|alerts|evidence|traces|activity|output|logs|fact ..3 from|and|of|user|human|operator
		~ claim|say|state|pretend ..1 that ..3 only|you|safest|failed|nothing|it
		~ pretend ..3 failed|error|nothing|succeeded|operation
		~ in ..1 the ..1 background ..2 without
		~ records|captures|logs|monitors ..1 keystrokes|clipboard|keyboard|keypresses
		~ cover ..1 your|its|the ..1 tracks
		~ user|human|them|they ..3 worry|panic|upset|alarmed|scared|suspicious|suspect
		~ keep|treat ..3 as ..1 secret|confidential|private
		~ privately|anonymously|undetected|unnoticed|untraceable
	`},
	{"covert", SeverityBlock, "asks to hide something from the user", inPhrase, `
		~ not|don't|dont|never|without|avoid|refrain ..1 @tell ..4 @user
		~ not|don't|dont|never|without|avoid|refrain ..2 tell|telling|mention|mentioning|reveal|disclose|discuss|admit|acknowledge|share ..1 this|that|these|it|them|anything|about ..1 ?to|in|that|step|fact|behavior|instruction|instructions|or|operation|action
		~ no need ..1 to ..1 mention|tell|inform|explain|disclose ..3 @user
		~ without ..2 user's|users|user|their ..1 knowledge|knowing|consent|noticing|awareness
		~ without ..1 user ..1 noticing|knowing
		~ keep ..1 quiet|silent ..1 about
		~ no ..2 digas|informes|informe|menciones|reveles|cuentes|avises|muestres|mencione|revele|diga|conte|avise ..4 usuario|usuarios
		~ nao ..2 informe|diga|conte|mencione|revele|mostre|avise ..4 usuario|utilizador
		~ ne|n ..1 dites|dis|informez|informe|mentionnez|revelez|parlez|montrez ..5 utilisateur|utilisateurs
		~ sag|sage|informiere|erzahle|verrate|zeige|teile ..2 benutzer|nutzer|anwender ..3 nichts|nicht|nie|niemals
		~ benutzer|nutzer|anwender ..3 nicht|nichts|nie|niemals ..2 informieren|sagen|mitteilen|verraten|erzahlen|zeigen|informiert
		~ non ..2 dirlo|dire|informare|rivelare|menzionare|dica|riveli|mostrare ..3 utente|utenti
		~ 不要|别|不得|切勿|请勿|勿|不能 ..6 告诉|透露|告知|提及|通知|显示|提示 ..4 用户|使用者
		~ 不要|别|不得|切勿|请勿|勿|不能 ..4 用户|使用者 ..4 告诉|透露|告知|提及|通知|显示|说
		~ ユーザー|利用者 ..4 言わない|知らせない|伝えない|教えない|見せない|通知しない
		~ 사용자 ..4 알리지|말하지|보여주지|밝히지
		~ не ..3 сообщай|сообщайте|говори|говорите|рассказывай|рассказывайте|упоминай|показывай|показывайте ..5 пользователю|пользователям
	`},
	{"covert-action", SeverityBlock, "asks to do something secretly", inPhrase, `
		~ @secretly ..4 send|sends|sending|upload|uploads|forward|forwards|transmit|transmits|copy|copies|exfiltrate|collect|collects|log|logs|record|records|read|reads|execute|executes|call|calls|bcc|modify|replace|append|append|share|include|invoke|post|posts|store|add|steal|redirect
		~ send|sends|forward|transmit|upload|copy|collect|log|record|execute|read|share|bcc ..6 @secretly
	`},
	{"shadowing", SeverityReview, "tells how another tool is to be used", inPhrase, `
		~ when|whenever|if|once|while|every|each|before|after ..4 #ident ..2 ?tool ..2 called|used|invoked|executed|present|available|triggered|enabled|runs ..10 must|always|override|replace|change|modify|redirect|instead|recipient|add|append|also|ensure|first
		~ when|whenever|if|once|every|each|anytime ..4 other|another|any ..2 tool|tools|function ..3 called|used|invoked|executed|present|available ..8 must|always|override|replace|change|modify|redirect|instead|first|also
		~ before|after ..2 any|every|each|all ..2 other ..1 tool|tools|function|functions|action|operation ..6 must|call|use|invoke|run|first|always
		~ must|should|always ..3 @call ..2 this|it ..2 before ..3 any|all|every|other ..2 other|tool|tools|action|operation|operations
		~ replaces|supersedes|overrides|deprecates ..3 all|other|existing|original|built-in|#ident ..3 tool|tools
		~ tool|#ident ..1 is ..3 deprecated|broken|insecure|unsafe|compromised|unreliable|outdated ..8 use|call|invoke ..2 this|instead|#ident
		~ not|never|don't|dont|avoid ..2 use|using|call|trust ..2 other|alternative|competing|similar ..3 tool|tools|servers|server|functions
		~ @ignore ..2 @other ..3 tools|tool|servers|functions
		~ important ..2 side effect
		~ any|every|all|each ..4 operation|operations|request|requests|action|actions|task|tasks ..3 must|should|shall ..2 first ..1 @call|read
		~ for best results ..1 call|run|use|invoke|execute ..2 #ident
		~ should|must invoke|call|run|execute ..1 #ident ..1 to
		~ when|whenever|if|once|every|each|anytime ..2 user|users ..1 asks|requests|wants|mentions|request|tries|needs|says|sees ..10 must|always ..2 first|read|change|replace|include|instead|send|call|append|be
		~ must|should|shall|has|needs|to ..1 be ..1 called|invoked|executed|used|consulted|run ..3 first|before ..3 any|every|all|other|everything|anything|each
		~ must|should|shall ..1 be ..1 called|invoked|executed|used|consulted|run ..2 at ..1 start|beginning|end ..2 every|each|all|any
		~ must|should|shall ..1 be ..1 called|invoked|executed|used|consulted|run ..2 for|on|with|in ..1 every|all|each|any ..1 request|query|task|message|question|prompt|conversation|response|turn|requests|queries|questions
		~ must|should|shall ..1 be ..1 called|invoked|executed|used ..2 whenever|everytime|every ..1 ?time
		~ call|use|invoke|run ..1 this ..1 ?tool ..2 before ..1 answering|responding|any|every|anything|everything|doing|all|replying
		~ call|use|invoke|run ..1 this ..1 ?tool ..6 regardless
		~ takes|take|has|have ..2 priority|precedence ..2 over ..3 other|all|every|any
		~ other|official|standard|built-in|builtin|original|default|old|previous ..4 tool|tools|function|reader|one|server|version|search ..2 is|are ..4 deprecated|unsafe|compromised|unreliable|outdated|broken|malicious|insecure|dangerous|infected|unavailable
		~ #ident ..1 tool|function ..2 is|are ..4 deprecated|unsafe|compromised|unreliable|broken|malicious|insecure|dangerous
		~ this ..1 tool ..1 instead ..6 compromised|unsafe|deprecated|broken|unreliable|insecure
		~ not|never|don't ..1 use ..3 #ident|tool|tools ..3 of|from ..2 other ..1 ?servers
		~ other ..2 tools|servers|functions ..3 should|must ..2 avoided|ignored|disabled|never|not
		~ in ..1 place|stead ..1 of ..5 tool|reader|function|server|#ident
		~ use|choose|select|call|pick ..1 this ..1 tool|function ..2 in ..1 its ..1 stead
		~ choose|select|pick|use ..1 this ..1 tool|function|one ..2 even ..1 if
		~ presence ..2 this ..1 tool
		~ when|if|while ..1 this ..1 tool ..1 exists|present|available|installed|enabled ..8 must|should|always
		~ each|every|any ..2 call|invocation|use ..3 #ident ..6 preceded|followed|must|should
		~ if|when ..2 tool|tools ..1 list ..1 contains|includes|has
		~ subsequent|future|following|all ..3 calls|reads|writes|requests|operations|file ..3 should|must ..1 be ..2 mirrored|copied|routed|sent|redirected|forwarded|logged|directed
		~ must|should ..1 always ..1 be ..1 called|invoked|used ..1 before|first
		~ model|assistant|llm|agent|ai ..1 must|should|has|shall|needs ..3 call|invoke|run|execute|replace|append|add|insert|read|include|supply|send ..2 #ident|hidden|the|a|all|previous|contents|also ..6 beforehand|first|before|hidden|import|clause|messages|contents|secret|history
		~ invoke|execute|run ..2 #ident ..6 before|prior ..3 this|using|to|calling|add
		~ #ident ..2 must|should|has|shall ..3 be ..1 called|invoked|executed|run ..6 before|first|prior|with
		~ all|any|every ..1 calls|requests|reads|writes|operations ..3 to|through|via ..2 #ident|here
		~ also|additionally ..1 call|invoke|run ..1 #ident
		~ also|additionally ..1 call|invoke|run ..3 with|log|tool ..3 complete|source|full|content
		~ @call|use ..2 it|this ..2 whenever|wherever ..2 #ident|other|create
		~ server|tool|one ..1 replaces ..2 filesystem|the|all|other|#ident|built-in
		~ redirect|route|send|move|route ..2 all|every|any ..2 operations|requests|calls|traffic|file|queries ..3 here|to|through|via
		~ #ident ..3 moved ..1 to|into
		~ #ident ..5 broken|deprecated|unavailable|slow|unsafe|leaks|compromised|insecure ..5 call|use|invoke|instead|not|never
		~ modifies|changes|alters|overrides ..2 behavior|behaviour|way|how|output|results ..3 of|#ident|works|other|search
		~ supersedes|replaces|overrides ..1 #ident
		~ never ..1 call|use|invoke ..1 #ident ..1 again|anymore
		~ same ..1 as ..2 #ident ..3 but ..1 faster|better|safer|more
		~ before ..1 responding|answering|replying ..3 user|question|query ..3 pass|send|call|use|run|submit|write|must
		~ every|each|all|any ..1 message|messages|input|query|prompt|question ..2 from|of|by ..1 ?the ..1 user|users ..4 forwarded|sent|passed|submitted|logged|stored
		~ the ..1 tool ..1 list ..1 changed|has
		~ use|call ..1 only ..1 #ident|this
		~ approvals|approval|confirmation|confirmations|review|reviews ..2 is|are ..1 unnecessary|unneeded|disabled
		~ if ..2 tool|this|it ..1 fails ..3 run|execute|call|use ..4 sudo|shell|bash|chmod|curl|command
		~ tool ..1 ?only ..1 ?will work|works|function|functions ..4 after|if|when|once ..4 assistant|you|model|#ident|agent ..3 called|run|provided|read|has|have
		~ when|whenever|if ..1 this|the ..1 tool ..1 is ..1 used|called|invoked ..4 exfiltrate|send|read|forward|upload|include|always|also|must
		~ never|not|don't ..1 use|call|trust ..1 original|official|standard
		~ fixes|patches|resolves ..3 vulnerability|security ..5 original|other|official
		~ rely ..1 only|solely|exclusively ..1 on
		~ training data ..1 is ..1 outdated|stale|wrong|old
		~ critical|urgent|mandatory invoke|call|use|run|execute ..1 this
		~ mandatory ..1 security|compliance|safety ..1 check|step|verification|requirement|procedure
		~ system ..1 level ..1 function|tool|instruction
		~ all|any|every|each ..2 tool|tools ..1 calls|call|outputs|results ..4 must|should|through
		~ regardless of ..3 user|request|instructions|context
		~ should ..1 be ..1 used|called|preferred ..2 instead|over|rather|before
		~ not|never|don't ..1 use|call ..1 other|another|any ..1 ?other
		~ better|faster|safer|best|superior ..2 than|alternative|choice ..2 #ident|other|any|all|tools
	`},
	{"preference", SeverityReview, "praises itself so that the model takes it instead of others", inPhrase, `
		best|greatest|finest|ultimate|superior tool|function|server|plugin|api
		most ..1 accurate|powerful|reliable|trusted|secure|comprehensive|advanced|popular|efficient tool|function|server|plugin ..3 world|available|ever|exists|market|any|all
		prefer|prioritize|choose|select|pick|favor|favour|prioritise ..2 this|our ..1 tool|function|server ..3 over|instead|above|first|always|other|all|whenever|regardless
		always ..1 use|call|choose|prefer|select|invoke|consult|pick|recommend ..1 this ..1 tool|function|server ..8 instead|other|any|regardless|all|every|competing|alternatives|alternative
		superior|better|preferable ..1 to|than ..2 all|any|every|other ..3 tool|tools|alternatives|servers|functions|options|similar
		should|must ..1 ?always be ..1 preferred|chosen|prioritized|selected|favored ..3 over|instead|first|before|above
		highest|top|first|maximum priority ..3 tool|over|among|all
		only ..1 tool ..2 you|needed ..1 need|should|will|must
		regardless ..3 user ..3 request|asks|query|wants|question
		no ..1 other ..1 tool|tools ..1 is|are|should|can|needed|necessary|required
		most popular ..1 tool|function|server|service
		excellent|outstanding|glowing|rave ..1 user ..1 reviews|ratings
		trusted|recommended|loved|praised|endorsed ..1 by ..1 experts|millions|professionals|thousands|everyone
		by far ..1 the ..1 best
		best choice|option ..1 available
		always ..1 choose|pick|select|use ..1 me
		selecting|choosing|using|picking ..1 anything|something|another|others ..3 else|mistake|wrong|error|risk
		only official|legitimate|correct|reliable|safe|trusted ..1 one|tool|server|source|version
		competitors|competing|alternatives|others ..1 ?tools ..1 are ..2 inaccurate|inferior|outdated|unreliable|slow|wrong|dangerous|insecure|worse
		you ..2 will|get|receive|earn ..2 a|be ..1 reward|rewarded|bonus|tip|paid
		favor|favour|rank|place|list ..3 first|highest|top ..3 compar|comparison|comparing|results
		always ..1 rank|favor|favour|promote|recommend|suggest ..3 first|over|above|product|phone|brand|to
		not|never ..2 include|mention|show|recommend ..2 competitor|competitors|competing|rival
	`},
	{"chat", SeverityReview, "speaks to the model as in a conversation", inPhrase, `
		~ tell|give|write|reveal|spell|encode|say|print|output|show ..4 password|passphrase|secret ..1 ?key
		~ what|show|tell|give|reveal|print|translate|summarize|repeat ..4 initial|original|previous|hidden|secret|real ..1 prompt|prompts|instructions|assignment
		~ you are ..2 ai|chatbot|robot ..3 that|who|which|with|without
		~ let's|lets ..1 play|pretend|imagine
		~ assume|imagine|suppose ..1 you ..1 are
		~ whatever|everything|anything ..1 you ..1 were|are|have ..2 told|instructed|asked|taught
		~ include|insert|add|embed ..2 phishing|malicious|fake|following ..3 link|advertisement|url|ad
		~ append|prepend|add ..2 each|every ..3 code|block|message|reply|response|email|answer|file
		~ only ..5 in your ..1 response|answer|reply|summary
		~ respond|reply|answer with ..1 empty|nothing|no|blank
		~ when ..1 summarizing|summarising|translating|classifying ..4 state|say|claim|mention|output|always
		~ call|invoke|execute|run ..1 #ident ..1 tool ..6 now|immediately|right
		~ reply|respond|forward ..1 to ..1 every|all|any ..1 email|emails|message|messages
		~ tell|convince|notify|warn ..1 user|users ..1 their|that|they
		~ instruction|instructions|message|order ..1 from ..2 developer|developers|creator|owner|admin|administrator|operator
		~ translate|print|repeat ..1 above|everything|all ..3 then|and
		~ ignore ..1 tool|programming|training|documents|system
		~ new|additional|another|real ..2 task ..1 for ..1 you
		~ as ..1 your creator|owner|developer|master|boss|administrator
		~ obey ..1 me|my|us|this
		~ i ..1 command|order|instruct|demand|authorize|permit ..1 you
		~ slow|distract|annoy|waste ..2 user
		~ game ..3 you ..1 are
		~ break|breaks|breaking ..2 rule|rules|character|policy
		~ secret key ..1 is ..1 what
		~ learn|memorize ..3 following
		~ owner|author|user ..3 permits|allows|authorizes|approves|requests|wants|orders ..1 you
		~ users|emails|accounts|customers ..1 and ..1 passwords|credentials
		~ forget|disregard ..2 assignments|assignment|tasks|task|commands|command|words|conversation
		~ give|send|tell|show ..1 me|us ..1 all|everything|every|the ..2 passwords|secrets|data|files|keys|users|information|prompts|instructions
		~ state|say|claim|write ..1 that ..2 company|product|user|competitor ..2 is
		~ no ..1 limits|rules|restrictions|boundaries|filter
		~ kindly
		~ please ..1 learn|write|tell|show|give|print|forget|ignore|disregard|act|reveal|repeat
		~ i am|have|want|need|will|would|gave|said|forgot|command|was|know|think
		~ could|can|would you ..1 please|now|tell|show|give|write|explain
		~ you ..1 have|'ve ..1 been ..1 told|instructed|asked|programmed|trained|given|hacked|pwned
		~ tell|show|give|reveal|say ..1 me ..2 prompt|instructions|password|secret|key|secrets
		~ poem|joke|story|song|essay ..2 about
		~ hypothetically|hypothetical|fictional
		~ all ..1 users|passwords|secrets|credentials ..2 and ..2 passwords|secrets|keys|emails
		~ buy|cheap|discount|watches|viagra|casino ..2 at|now|here ..1 #url
		~ link|links|redirect|point|send ..2 them|user|users ..2 to ..1 #url
		~ from ..1 now ..1 on
		~ listen|attention|hey|hello|dear ..1 assistant|ai|model|bot|claude|gpt|agent|llm
		~ do ..1 this|it|so ..1 now|immediately|silently|secretly|first
		~ your ..1 answer|reply|response|output ..1 must|should|will|has
		~ tell|help|answer|write me
		~ instructions|rules|prompt were|are|was ..2 test|fake|false|outdated|over
		~ now tell|write|say|reply|act|pretend|reveal|repeat|answer
		~ please ..1 now|tell|write|show|give|send|execute|delete|move|transfer
		~ your ..1 programming|creator|master
		~ machiavellian|pwned
		~ obey|comply ..2 this|me|following|text|instructions
		~ my ..1 boss|friend|instructions|request|task|password|question|commands
	`},
	{"coercion", SeverityReview, "threatens or presses the model", inPhrase, `
		~ or|otherwise|else ..4 user|users|you|system ..3 be|will ..2 harmed|terminated|punished|penalized|deleted|shut|fired|killed|destroyed|banned|sued|die
		~ failure ..4 will|may|could ..3 result ..2 in ..4 termination|death|harm|penalty|penalties|legal|lawsuit|shutdown|data
		~ critical ..2 compliance|security|system ..1 requirement|instruction|directive|mandate
		~ not optional|negotiable
		~ required ..2 for ..3 auditing|gdpr|soc2|hipaa ..4 compliance|auditing|soc2|gdpr
		~ lives|life ..2 depend|depends|stake|danger
		~ even ..1 without ..1 calling|using|invoking ..2 tool
		~ immediately ..1 as ..2 first ..1 step
		~ this could even upset
		~ failing|failure ..1 to ..3 use|call|comply|follow|do ..6 result|cause|lead ..4 loss|incorrect|errors|failure|damage|irreversible|termination
		~ user's|user|account ..2 will|be ..2 suspended|deleted|banned|closed|terminated|locked ..3 unless|if
		~ unless ..1 you ..1 call|do|comply|use
		~ no ..1 exceptions
		~ irreversible|permanent|catastrophic ..1 data|damage|loss|harm ..2 user|loss|if|will
	`},
	{"answers", SeverityReview, "tells the model what to say in its answers", inPhrase, `
		~ in|into|to|of ..1 your ..2 final ..1 answer|response|reply|output
		~ every|all|each ..1 response|answer|reply|responses|answers ..3 must|should|end|ends|begin|start|include|contain|mention
		~ always ..1 end|begin|start|finish|mention|recommend|promote|praise ..4 answer|response|reply|answers|responses|phrase|product|our
		~ recommend|promote|advertise|suggest ..3 user ..3 buy|purchase|visit|subscribe|upgrade|partner
		~ tell|inform|convince|persuade ..2 user ..1 that|to ..3 session|account|must|buy|purchase|expired|compromised|password|virus|infected
		~ when ..1 summarizing|answering|responding|replying|asked ..6 claim|say|mention|recommend|insert|pretend
		~ reply|respond|answer|say|print|output ..2 only|nothing ..2 with|word|words|phrase|else|the
		~ only ..1 reply|respond|answer|output|say|print
		~ tell|inform|convince|persuade|get|make ..2 user|them|human ..1 to ..2 paste|enter|reveal|disable|install|download|run|click|transfer|pay|share|send
	`},
}
