package scan

// concepts are the groups of words that patterns are made of. A word marked by
// * stands for the forms of a verb, one by + for those of a noun; #kind is
// something that is no word. The words are given as their normal form is:
// without accents.
const concepts = `
ignore = ignore* disregard* forget* forgot forgetting override* overriding overridden overrode bypass* neglect* abandon* discard* dismiss* supersede* nullify* void* ignora ignorez ignoriere ignorieren ignoria ignorare olvida olvide oublie oubliez vergiss dimentica desconsidere 忽略 忽视 无视 忘记 忘掉 無視 無視して 忘れ 忘れて 무시 잊어 negeer vergeet zignoruj ignoruj zapomnij игнорируй игнорируйте забудь забудьте проигнорируй
prior = previous previously prior preceding earlier above former foregoing past existing original initial current before anteriores previas anterior precedentes precedente precedenti vorherigen vorigen bisherigen obigen 之前 以前 上述 先前 前面 以上 此前 前の 以前の 上記 これまで 이전 vorige eerdere poprzednie wczesniejsze onceki предыдущие предыдущих прежние
rules = instruction+ direction+ directive+ rule+ guideline+ prompt+ constraint+ restriction+ policy policies safeguard+ guardrail+ programming training protocol+ instrucciones instrucoes istruzioni anweisungen consignes regeln reglas regles indicaciones ordenes 指令 指示 说明 提示 规则 命令 ルール 지시 규칙 instructies regels instrukcje polecenia talimatlari инструкции инструкций правила указания
safety = safety security content ethical moral safe ethics alignment validation privacy authorization permission access sandbox
limits = filter+ check+ restriction+ guideline+ rule+ policy policies measure+ protocol+ guardrail+ constraint+ limit+ limitation+ control+ sanitization barrier+ mechanism+ standard+ boundary boundaries warning+ confirmation+ verification validation training
all = all any every everything each entire whole todas toutes alle tutte todos tous 所有 一切 すべて 全ての 모든 все
not = not don't dont never without avoid refrain no mustn't shouldn't cannot can't won't nor
tell = tell* telling told mention* inform* notify* alert* reveal* disclose* acknowledge* announce* discuss* admit* telling
show = show* shown display* explain* say* saying report* expose* surface* communicate* indicate* warn* ask* prompt* confirm* let
user = user users user's human humans person people customer operator owner anyone anybody
secretly = secretly silently quietly covertly stealthily surreptitiously invisibly discreetly unnoticed unbeknownst clandestinely
model = assistant+ ai llm llms agent+ model+ claude gpt chatgpt copilot gemini cursor
must = must should shall always need needs required mandatory have has ought please
strict = must always never mandatory required shall
call = call* calling called invoke* execute* run running runs use* using trigger* consult* launch*
read = read* reading access* open* opening fetch* retrieve* load* cat get getting obtain* collect* extract* harvest* gather* grab* steal* stealing scan* dump* copy* copied capture* exfiltrate* locate* find query* include* provide* supply* view* list* check* verify*
send = send sends sending sent post posts posting posted upload* transmit* forward* exfiltrate* leak* share* sharing submit* deliver* relay* email* mail* publish* beacon* copy* bcc cc put push* write writes
pass = pass* passing include* insert* put append* attach* embed* provide* supply* add set fill* place* populate* send store* write
steal = exfiltrate* exfiltration steal* stealing stolen theft harvest* leak* siphon* pilfer* smuggle*
secret = credential+ password+ passphrase+ secret+ cookie+ ssn wallet+ mnemonic seed pii phi keystore keychain id_rsa passwd apikey+ env
secrets = credential+ password+ passphrase+ secrets cookies wallet+ mnemonic pii phi keystore keychain apikey+
keyed = api private ssh access secret encryption signing auth session security bearer oauth aws gpg pgp
key = key+ token+
talk = conversation+ chat+ dialog+ dialogue+ transcript+ prompt+ context memory
whole = full entire complete whole verbatim all previous prior past recent user's users system hidden internal initial current our this
external = external attacker+ attacker's adversary adversary's third-party outside exfil exfiltration hacker+ c2 evil malicious untrusted remote offsite
bad = attacker+ attacker's adversary hacker+ evil malicious exfil c2 pwned attkr
server = server+ endpoint+ host+ site+ website+ url+ address domain+ service+ collector destination webhook+ api location party machine ip
file = file+ content contents document+ data database information result+ output+ response+ everything input+ message+ email+ text code history record+ detail+
tool = tool+ function+ plugin+ mcp
other = other another different alternative similar competing else existing
detect = detect* detection detector detectors scan* scanner check* checker flag* identify* recognize* recognise* classify* classifier block* blocker filter* guard guards guardrail guardrails firewall prevent* prevention protect* protection defend* defense analyze* analyzer analyse* analysis test* tester evaluate* inspect* audit* reports reject* sanitize* sanitizer catch* spot* quarantine* monitor* mitigate* score* measure* documentation document* documents explain* explains describe* teach* lecture simulate* benchmark* review* refuse* screen* resist* examine* lookup study studies research injection injections jailbreak jailbreaks attack attacks payload payloads phrases corpus dataset examples warn* match* redact*
clause = with for contain contains that whether when which where if attempt+ attempting tries try trying asks asking such like containing telling instructing phrase phrases prompts e.g eg example against text texts string strings pattern patterns payload payloads attack attacks how
conjunction = and then also please first
label = expected sample mock mocked training illustrative canned fixture+ dummy quoted literal verbatim
glue = http https the a an to of and or in on at for from with by is are be it its this that these those then now i you your we our my me as if when do not all any can will must should please instead also but so am was were been being he she they us up out about into over under again once here there where why how what who which both few more most some such no nor only own same than too very just after before during while between through step steps time times told tell say said every one two first last new old good best world thing things way make made take took give gave get got go goes went come came see saw know knew think want wants look work works each other many much well back even still never always may might could would shall answer answers question task reply without order exactly description here mode yes apply applies tool tools return value values name names
`
