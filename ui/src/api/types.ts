// The REST contract of /api/v1 that the UI uses. Routes and JSON are exact.
// Times are RFC 3339. Absent members are left out; lists are never null. Failures are problem documents.

import type { Anchor } from "../lib/presence";

export type Lane = "read" | "write" | "destructive";
export interface Problem { type: string; title: string; status: number; detail: string; code: string; hint?: string; details?: Record<string, unknown>; activity_id?: string }
export interface Bound { total: number; limit: number; offset: number; next_cursor?: string } // pages

// ── Sign-in ── POST /session {code} or {key} -> Session, sets cookie mcpproxy_session (HttpOnly, SameSite=Strict, Path=/api/v1)
// GET /session -> Session without value (401 if none) · DELETE /session (?everywhere=true) -> {}
// every other request of the page sends X-MCPProxy-Session: value, with the cookie. POST /session/codes -> {code, expires_at} (socket or key only, never a session).
export interface Session { value: string; expires_at: string }

// ── Status ── GET /status plus: activity.records, activity.verified {at, ok}; definitions {loaded_bytes, all_bytes}
export interface Status {
  version: string; pid: number; started_at: string; uptime_seconds: number;
  servers: { total: number; enabled: number; ready: number; idle: number; not_ready?: { name: string; state: string; detail: string; since?: string; retry_at?: string }[] };
  tools: { total: number; callable: number }; offers: { total: number; waiting?: number };
  surfaces: { name: string; address: string }[]; config_path: string; config_error?: string; needs_restart?: string[]; unconfirmed?: number; warnings?: string[]; data_dir: string;
  activity: { degraded: boolean; message?: string; [k: string]: unknown; records: number; verified?: { at: string; ok: boolean } };
  held: { pending: number; leases: number }; // pending calls, and active leases
  pause?: Pause; // while calls are paused
  definitions: { loaded_bytes: number; all_bytes: number }; // size of the definitions that an agent loads (tools/list of /mcp), and of all definitions
}

// ── Kill switch ── GET /pause, POST /pause {reason}, POST /resume -> Pause
export interface Pause { paused: boolean; unknown?: string; reason?: string; by?: string; via?: string; at?: string; cancelled?: number; running?: number }

// ── Activity ── GET /activity, GET /activity/{id}
export interface ActivityRecord {
  id: string; type: "tool_call" | "policy_decision" | "approval" | "server_change" | "config_change" | "presence" | "system";
  status: "success" | "error" | "blocked" | "pending" | "interrupted" | "held"; // held: needs approval; the sent call has its own record, whose parent this is
  server_name?: string; tool_name?: string; arguments?: unknown; arguments_truncated?: boolean; response?: unknown; response_truncated?: boolean;
  error_message?: string; timestamp: string; duration_ms: number; own_us?: number /* MCPProxy's part of duration, in µs */; request_bytes: number; response_bytes: number;
  session_id?: string; request_id?: string; parent_id?: string; source?: string; actor?: string; client_name?: string; client_version?: string;
  repeated?: number; first_time?: string; last_time?: string;
  erased?: { field: ErasedField; at: string }[]; // fields that a user erased
  chain?: { seq: number; hash: string; previous: string; end_seq?: number; end_hash?: string }; // GET /activity/{id} only
  metadata: {
    intent?: { operation_type: Lane; data_sensitivity?: string; reason?: string; declared?: unknown /* to the letter, when it is not what counted */ };
    tool_variant?: string; warnings?: string[]; error_code?: string; search?: { query: string; rank?: number }; action?: string; detail?: string;
    decision?: Decision; // calls and refusals
    redacted?: { id: string; fields: ErasedField[] }; // of the record of an erasure: the fields of another record
  };
}
export type ErasedField = "arguments" | "response" | "error_message" | "reason" | "declared" | "query" | "warnings";
export interface Decision {
  outcome: "allowed" | "warned" | "refused" | "asked"; check?: string; // the check that refused: name, intent, arguments, scope, tool_exists, callable, hints, schema, lane, …
  hints?: { read_only?: HintFact; destructive?: HintFact; idempotent?: HintFact; open_world?: HintFact }; // effective
  alias?: string; call_with?: string; status?: string; fingerprint?: string; config_revision?: string; approved_by?: string; approved_at?: string;
  lane?: ArgumentLane; approval?: string; // for a call that needs approval: the id of the approval or the lease
}
// The effect of a call by its arguments: the word that decided, or why the argument could not be read. declared: the configuration names the argument, else the schema shows it.
export interface ArgumentLane { operation: Lane; word?: string; by: "sql" | "shell" | "cli" | "http" | "graphql" | "action"; argument: string; declared?: boolean; unread?: boolean }
export interface HintFact { value: boolean; from: "server" | "override" | "sandbox" | "inferred" | "default" }
export interface ActivityList extends Bound { activities: ActivityRecord[]; incomplete?: boolean; total_relation?: "eq" | "gte" }
// GET /activity/summary ? period=24h (or start_time, end_time) & step=30m & group=lane|server|tool|client & every filter of /activity
export interface Summary {
  since: string; until: string; step_seconds: number; cut?: boolean; incomplete?: boolean; // cut: only the newest part was read
  records: number; calls: number; refused: number; failed: number; failed_tool: number; failed_server: number; p50_ms: number; p95_ms: number; own_p50_us: number; own_p95_us: number; last?: string;
  buckets: { start: string; read: number; write: number; destructive: number; refused: number; failed: number }[];
  groups: { key: string; calls: number; refused: number; failed: number; p50_ms: number; p95_ms: number; own_p50_us: number; last: string }[]; // by calls, at most 100
}
// GET /activity/export ?format=jsonl|csv&include_bodies=true|false & filters: a stream, newest first
// GET /activity/verify -> VerifyAnswer
export interface VerifyAnswer { ok: boolean; records: number; entries: number; at: string; took_ms: number; first_break?: { id?: string; seq: number; reason: string } }
// GET /sessions ?period=24h&limit&offset: clients' sessions by the log, newest first
export interface SessionList extends Bound { sessions: { id: string; client_name?: string; client_version?: string; actor?: string; source?: string; first: string; last: string; calls: number; refused: number; failed: number }[] }

// ── Events ── GET /events (text/event-stream), Last-Event-ID resumes; read by fetch. Each: id, event, data (one line JSON).
// activity.tool_call.started | activity.tool_call.completed | activity.policy_decision | activity.recorded (other types) -> EventRecord
// server.changed -> {server, state} · tool.changed -> {server} (listed tools, or decisions about them) · config.changed -> {keys, error?}
// pending.changed (no data): the waiting calls or the leases have changed: load them again.
// "reset" (no data): too far behind; load again. ": ping" comment every 15 s.
export interface EventRecord { id: string; type: ActivityRecord["type"]; status: ActivityRecord["status"]; server_name?: string; tool_name?: string; timestamp: string; duration_ms?: number; operation_type?: Lane; session_id?: string; client_name?: string; actor?: string; error_code?: string; reason?: string }

// ── Servers ── GET /servers, GET /servers/{name} plus members
export interface Server {
  name: string; protocol: "stdio" | "http" | "sse"; enabled: boolean; quarantined: boolean; stage?: "launch" | "definitions"; trust?: string; proposed_by?: string;
  state: "stopped" | "connecting" | "ready" | "failed" | "idle" | "needs_login" | "needs_secret" | "needs_variable"; tool_count: number; lazy?: boolean; session?: "auto" | "per_client" | "shared"; session_needs?: { need: "sampling" | "elicitation" | "roots" | "capabilities" | "state"; since?: string }[]; hint?: string; needs_login?: boolean; login?: ServerLogin; detail?: string;
  step?: string; step_since?: string; ahead?: number; trouble?: string /* what keeps a package manager from fetching it now */; last_error?: string; last_error_at?: string; failure?: string; tools?: Record<string, number>;
  offers?: Record<string, { total: number; waiting?: number }>; command?: string; args?: string[]; url?: string; pid?: number; restarts?: number; since?: string; retry_at?: string;
  protocol_version?: string; server_info?: { name?: string; version?: string }; warnings?: string[];
  sandbox?: { mode: "on" | "strict" | "container"; text: string; trusted?: boolean; not_enforced?: string[]; notes?: string[] };
  calls?: { hours: { calls: number; errors: number }[] /* 24, oldest first */; calls: number; errors: number; p95_ms: number }; // of the last 24 h
  waiting?: number; // tools and other definitions that need review
}
// GET /servers/{name} adds:
export interface ServerDetail extends Server {
  launch?: LaunchView; enabled_tools?: string[]; disabled_tools?: string[]; infer_hints?: string; hint_overrides?: Record<string, Record<string, boolean>>; call_timeout?: string; definition_bytes?: number;
  availability?: { at: string; state: string }[]; // changes of state in the last 24 h, oldest first, by the log
}
export interface LaunchView { protocol: string; command?: string; args?: string[]; env?: string[]; working_dir?: string; url?: string; headers?: string[]; sandbox?: string /* in words */ }
// actions: POST /servers/{name}/enable|disable|restart|login|logout|quarantine|approve {fingerprint}, PATCH (one member), DELETE, POST /servers {name, command, args, env, url, headers, working_dir, trust, quarantined}
// POST /servers/{name}/login -> LoginView, which GET /servers/{name}/login tells again
// POST /servers/{name}/login/complete {url} -> LoginView
export interface LoginView { server: string; state: "waiting" | "done" | "failed"; url?: string; code?: string; expires_at?: string; error?: string; authorization_server?: string; previous_authorization_server?: string }
export interface ServerLogin { state: "needed" | "waiting" | "retrying"; reason: string; detail?: string; remedy: string }
// GET /servers/{name}/logs?lines=100; GET /servers/{name}/logs/follow: event-stream, each data a LogLine, begins with the last `lines`
export interface LogTail { server: string; lines: string[]; entries: LogLine[] }
export interface LogLine { at?: string; stream: "stderr" | "stdout" | "mcpproxy"; text: string }
// POST /servers/parse {text} (right: look): any client's text -> servers that POST /servers takes
export interface Parsed { format: "json" | "toml" | "yaml" | "command" | "url" | ""; servers: ParsedServer[]; mistakes: { line: number; column: number; message: string; hint?: string }[]; notes: string[] /* left out on purpose: MCPProxy itself */ }
// ── Registries ── GET /registry/servers?q= -> RegistryEntries (latest versions) · POST /registry/add {entry, version, registry, option, name, values: ["NAME=VALUE"]} -> AddedFromRegistry
export interface RegistryInput { name: string; kind: "env" | "header" | "argument" | "variable"; description?: string; required?: boolean; secret?: boolean; repeated?: boolean; folder?: boolean; default?: string; choices?: string[] }
export interface RegistryOption { id: string; command?: string[]; url?: string; inputs: RegistryInput[]; problem?: string }
export interface RegistryEntry { registry: string; name: string; title?: string; description?: string; version: string; status?: string; status_message?: string; published?: string; website?: string; repository?: string; options: RegistryOption[]; verdict: Verdict | "incomplete"; findings: Finding[] }
export interface RegistryEntries { servers: RegistryEntry[]; registries: { name: string; url: string; fetched_at?: string; problem?: string; more?: boolean; unreadable?: number }[] }
export interface AddedFromRegistry { server: { name: string }; missing?: string[]; notes?: string[] }
export interface ParsedServer { name: string; add: Record<string, unknown> /* body for POST /servers */; launch: LaunchView; exists: boolean; secrets: { place: "env" | "headers" | "args" | "url"; name: string /* of env, headers the name; of args the index from 0 */; kind: string; suggestion: string /* the whole new value, with ${env:NAME} */ }[]; notes: string[] }

// ── Tools ── GET /tools ?hints=said|corrected|guessed&use=recent|earlier|never&server&operation_type&call_with&status (now) & q= (part of name or title) & detail=slim|full (slim) & sort=name|calls|last|tokens & reverse=true & limit=100 (max 1000) & offset
export interface ToolList { tools: SlimTool[]; total: number; limit: number; offset: number; snapshot?: string /* absent when it is all of it */; facets: { lane: Record<string, number>; status: Record<string, number>; hints: Record<string, number>; use: Record<string, number>; server: Record<string, number> } }
export interface SlimTool { name: string; server: string; tool: string; title?: string; summary: string; alias?: string; always?: boolean; call_with: string; lane: Lane; guessed?: boolean; status?: string; deprecated?: boolean; tokens: number; calls: number; last_used?: string }
// GET /tools/search?q&limit&operation_type&explain=true & include_disabled=true;: took_ms, each hit tokens, locked
export interface SearchAnswer { query: string; total: number; took_ms: number; tokens: number; all_tokens: number; tools: Tool[]; locked: Tool[] /* fit, though locked; only with include_disabled */ }
// GET /servers/{name}/tools/{tool}
export interface Tool {
  name: string; server: string; tool: string; title?: string; description: string /* as agents get it */; declared_description?: string; settings?: ToolSettings; shadowed_by?: string; inputSchema?: unknown; outputSchema?: unknown; annotations: Record<string, boolean>; declared_annotations?: Record<string, boolean>;
  call_with: string; inferred_operation?: Lane; inferred_reason?: string; status?: string; deprecated?: boolean; score?: number; tokens?: number; calls?: number; last_used?: string; guessed?: boolean /* not of /tools in full */; remedy?: string /* of a locked one */;
  why?: { asked: string; found: string[]; how: string; fields: string[]; share?: number }[];
  trust?: { fingerprint: string; approved?: string; approved_by?: string; approved_at?: string; reason?: "new" | "changed" | "blocked"; off_by?: string; off_at?: string };
}
// PATCH /servers/{name}/tools/{tool}: members to change, null removes one
export interface ToolSettings { alias?: string; description?: string; add_description?: string; always?: boolean }
// GET /servers/{name}/tools/{tool} adds, with its own meaning: tokens (with the schema), compact_tokens (with the signature)
export interface ToolDetail extends Tool { lane: Lane; calls: number; signature: string; tokens: number; compact_tokens: number; corrected_annotations?: Record<string, boolean> /* from hint_overrides */ }
export interface ToolStats { since: string; calls: number; cut?: boolean; searches: number; recall_1: number; recall_3: number; recall_5: number; recall_10: number; mrr: number; missed: number; tools: { name: string; calls: number; found: number; missed?: number; rank?: number; last: string }[]; dead: string[]; dead_count: number } // GET /tools/stats
// POST /tools/call {tool_variant, name, args, intent:{operation_type, data_sensitivity, reason}, timeout}; header Idempotency-Key
export interface CallAnswer { result: { content?: unknown[]; structuredContent?: unknown; isError?: boolean }; is_error: boolean; warnings: string[]; activity_id: string; handle?: string }

// ── Approvals ── GET /approvals?limit=500&offset=0
export type Verdict = "clean" | "review" | "block";
// One finding of the scanner. start and end count bytes of UTF-8 in the string at path; see lib/spans.ts.
export interface Finding { rule: string; severity: "note" | "review" | "block"; path: string; start: number; end: number; excerpt: string; reason: string }
// One piece of a word difference; one place at which two definitions differ.
export interface Piece { kind: "same" | "added" | "removed"; text: string }
export interface Difference { path: string; kind: "added" | "removed" | "changed"; old?: unknown; new?: unknown; words?: Piece[]; hint?: boolean; loosened?: boolean }
export interface ToolDiff {
  name: string; server: string; tool: string; status?: string; reason?: "new" | "changed" | "blocked"; fingerprint: string; definition: unknown;
  approved?: { fingerprint: string; by: string; at: string; definition?: unknown }; changes: Difference[]; truncated?: boolean; loosened?: string[]; verdict: Verdict | "incomplete"; findings: Finding[];
}
export interface Waiting { servers: WaitingServer[]; tools: WaitingTool[]; total_tools: number; offers: WaitingOffer[]; total_offers: number; total_blocked: number; total_findings: number; total_poisoned: number /* of all pages; blocked items count only in total_tools and total_offers */; forgotten?: { name: string; tools: number; offers: number }[]; warnings?: string[] }
export interface WaitingServer { name: string; stage: "launch" | "definitions"; fingerprint: string; proposed_by?: string; proposed_at?: string; client_name?: string; session_id?: string /* of a proposal */; launch: LaunchView; tool_count: number; offer_count: number; findings: number; since?: string }
export interface WaitingTool { name: string; server: string; tool: string; reason: "new" | "changed" | "blocked"; fingerprint: string; approved?: string; together?: boolean; loosened?: string[]; verdict: Verdict; findings: Finding[]; lane: Lane; guessed?: boolean; since?: string; what?: { description?: { added: number; removed: number } /* words */; parameters?: number; hints?: boolean; other?: string[] } /* of a changed one */ }
export interface WaitingOffer { kind: "prompt" | "resource" | "template" | "instructions"; server: string; name?: string; reason: string; fingerprint: string; approved?: string; together?: boolean; verdict: Verdict; findings: Finding[]; since?: string }
// GET /servers/{name}/tools/{tool}/diff, /servers/{name}/review, /servers/{name}/{prompts|resources|templates}/{item}/diff, /servers/{name}/instructions/diff: look at the daemon's openapi.json
// POST /servers/{name}/tools/{tool}/approve {fingerprint, keep?: "destructive"} · block {fingerprint} · withdraw {fingerprint}
// the same three for …/prompts|resources|templates/{item} and …/instructions. An approval taken back leaves the definition new: the definition accepted before is not restored.
// POST /approvals/approve {tools:[{name, kind? (unless it is a tool), fingerprint}]} (<= 500) -> {results: [{name, ok, problem?: Problem}]}

// ── Calls that wait ── GET /pending -> {pending: PendingCall[]}, the oldest first, of long arguments the beginning · GET /pending/{id} -> PendingCall, also when it was answered
// POST /pending/{id}/approve · POST /pending/{id}/deny {reason} -> PendingCall; the first answer counts; a second one is a 409 with the decision.
export interface PendingCall {
  id: string; state: "waiting" | "approved" | "denied" | "used" | "expired"; name: string; server: string; tool: string; lane: Lane; lane_reason: string; tool_variant: string;
  rule: string /* of the configuration, by which it is asked about */; arguments: unknown /* masked; if arguments_truncated a string, the beginning of them; null once it waits no more: its record has them */; arguments_truncated?: boolean; reason?: string /* the agent's claim */;
  actor: string; client_name?: string; client_version?: string; source: string; asked_at: string; last_asked_at: string; until: string /* the question is kept, or the answer holds */; waits_until?: string /* the client waits, if it is still there */;
  activity_id: string; answered_at?: string; answered_by?: string; answered_via?: string; denial?: string;
}
// GET /leases -> {leases: LeaseView[]} that run · POST /leases {server, lane?, for?: "15m", calls?, client?: name of a token, tools?: pattern} -> LeaseView · DELETE /leases/{id} -> LeaseView
export interface LeaseView { id: string; server: string; lane: Lane /* the highest lane that the lease covers */; tools?: string; client?: string; calls: number; calls_left: number; given_at: string; until: string; given_by: string; given_via: string; ended?: string }

// ── Secrets ── GET /secrets -> {secrets: SecretView[]} · PUT /secrets/{name} {value} -> SecretView · DELETE /secrets/{name}: no answer has a value
export interface SecretView { name: string; state: "set" | "missing" | "locked"; kept?: "keyring" | "file"; used_by: string[]; set_at?: string }

// ── Tokens ── GET /tokens -> {tokens: TokenView[]} · POST /tokens {name, profile?, servers?, lanes?, expires_in?: "30d"} -> CreatedToken · DELETE /tokens/{name} -> {revoked} · GET /profiles -> {profiles: ProfileView[]}
export interface TokenView { name: string; profile?: string; servers?: string[]; lanes?: Lane[]; created_by: string; created_at: string; expires_at?: string; expired?: boolean; last_used_at?: string; answers?: boolean /* the form of its client may approve calls that wait */; warning?: string /* why it permits less than configured */ } // left out: no bound
export interface CreatedToken extends TokenView { token: string /* shown only once */ }
export interface ProfileView { name: string; servers?: string[]; lanes?: Lane[]; reaches: { server: string; tools: number; callable: number }[] }

// ── Presence ── GET /presence -> Presence · PUT /presence {anchor} -> Presence. A change that grants more access is answered with 403 PRESENCE_REQUIRED {details: {statement, claims, anchor}} until it comes with the header MCPProxy-Presence
export interface Presence {
  on: boolean; kind: Anchor["kind"] /* of the anchor that is set */; void?: string /* why no change that grants more access counts */; remedy?: string; since?: string; fingerprint?: string; anchor?: Anchor; head: string /* the next anchor follows it */;
  reset_at?: string; call_off?: boolean; may_set: boolean; may_join: boolean; places: { name: string; state: string }[]; signed: number; bad: string[]; unsigned: string[];
}

// ── Clients ── GET /clients -> Clients
export interface Clients { clients: Client[]; changes: Change[] /* the newest first, at most 50 */ }
export interface Client {
  id: string; name: string; found: boolean; found_by?: string /* what shows that it is installed */; connected: boolean; server: string /* the name of MCPProxy in it, present or planned */; servers: string[] /* the names of all its entries */; surface: Surface; path: string; transport: "http" | "stdio";
  leads_to?: string /* URL or command of the existing entry */; foreign: boolean /* to something else */; missing?: string /* the program that it starts, which is not there */; broken: string[] /* its files that cannot be read, and why */;
  entry: { path: string; text: string } /* to write by hand */; command?: string[] /* its own, which adds MCPProxy */; next?: string /* the user's next step before it is used */; permissions?: Permissions /* of those that are installed */;
}
/** What a client sees: six tools that search and call, tools by name with an entry for each lane, tools by name in one entry, or one server. */
export type Surface = "search" | "lanes" | "all" | "server";
export type Asking = "runs" | "asks" | "denied" | "unknown";
export interface Permissions { right: boolean; writable: boolean; lanes: PermissionLane[]; by_hand?: string; notes?: string[]; basis?: "documented" | "source" | "unverified" }
export interface PermissionLane { tool: string; lane?: Lane; verdict: Asking; wanted: Asking; right: boolean; rule: { text: string; path?: string; line?: number }; why?: string }
export interface Change { id: string; client: string; what: "connect" | "disconnect" | "permissions" | "import"; path: string; at: string; created: boolean; undone?: string; partly?: boolean /* others had changed the file: only its entries were restored */; undoable: boolean /* the last of its file */ }
// POST /clients/{client}/connect {dry_run, surface?, profile?, token? (the name of one that is made for it)} · disconnect {dry_run} · permissions {dry_run} -> Outcome · POST /clients/undo {change} -> Change
export interface Outcome {
  path?: string; target?: string /* where a link leads */; command?: string[] /* the client's own, which does it */; next?: string; changed: boolean; difference?: string /* lines with "+ ", "- ", "  " */;
  warnings: string[]; written: boolean; change?: string; backup?: string;
  rules?: { path: string; difference: string; written: boolean; change?: string } /* the permission rules that change with it, in another file or place */;
}

// POST /servers/add {servers: [bodies of POST /servers]} -> AddedServers: one edit, which the user signs once
export interface AddedServers { results: { name: string; server?: Server; problem?: Problem }[] }

// ── Import ── GET /clients/servers -> Importable · POST /servers/import {ids, keyring, remove, confirmed, dry_run} -> {results: Imported[]}
export interface Importable { found: FoundServer[]; broken: { client: string; path: string; message: string }[] }
export interface FoundServer {
  id: string; client: string; client_name: string; path: string; target?: string /* target of a link */; scope: string; name: string /* its name in MCPProxy */; called: string /* its name in the client */;
  launch: { command?: string; args?: string[]; env?: Record<string, string>; working_dir?: string; url?: string; headers?: Record<string, string> } /* secrets masked */; secrets: { place: string; name: string }[];
  have: boolean /* one like it is here */; ours: boolean /* it is MCPProxy */; notes: string[];
}
export interface Imported { id: string; name: string; added: boolean; state: string; secrets: string[]; removed: boolean; change?: string; problem?: { code: string; message: string; hint?: string } }

// ── Configuration ──
// GET /config -> Config · PATCH /config {set: {key: value|null}} · PUT /config {text} — both with header If-Match: etag; 409 when the file changed since then; -> Config
// POST /config/validate {text, set? (as PATCH: put into a valid text first)} -> Validation · GET /config/history?limit&offset -> {versions: ConfigVersion[], total,…} · GET /config/history/{id} -> {id, text}
export interface Config { path: string; text: string /* literal secrets are written as ***masked:N*** and are put back on save */; etag: string; in_force_since: string; error?: string; mistakes?: Mistake[]; in_force_etag: string; needs_restart: string[]; unconfirmed: { key: string; from: unknown; to: unknown }[]; unconfirmed_why?: string; settings: Setting[] }
export interface Setting { key: string; type: "string" | "boolean" | "integer" | "duration" | "list"; range?: string /* bounds, in words */; doc: string; value: unknown; default: unknown; allowed?: string[]; restart?: boolean; set: boolean /* is in the file */; locked?: boolean /* PATCH cannot set it: use the text (PUT), or a flag sets it */ } // all types but mcpServers
export interface Mistake { line: number; column: number; key?: string; message: string; hint?: string }
export interface Validation { text?: string /* with the changes of set, if there were any */; ok: boolean; mistakes: Mistake[]; warnings: string[]; changes: { key: string; from: unknown; to: unknown }[]; needs_restart: string[] }
// by: an actor, or "file". Refusals: 409 CONFLICT {details.etag}; 422 INVALID_CONFIG {details.mistakes: Mistake[]} (line 0: no place).
export interface ConfigVersion { id: string; at: string; by: string; keys: string[]; bytes: number; etag: string }
// GET /diagnostics -> Diagnostics
export interface Diagnostics { checks: { code: string; title: string; state: "ok" | "warn" | "bad"; detail: string; fix?: string }[] }
