package doctor

import "mcpproxy/internal/upstream"

// CheckGroup is the subject area of a check.
type CheckGroup string

// The groups, in the order of the checks table.
const (
	GroupDaemon        CheckGroup = "daemon"
	GroupFiles         CheckGroup = "files"
	GroupConfiguration CheckGroup = "configuration"
	GroupServers       CheckGroup = "servers"
	GroupTools         CheckGroup = "tools"
	GroupClients       CheckGroup = "clients"
	GroupMachine       CheckGroup = "log and machine"
)

// checkRow is one row of the checks table.
type checkRow struct {
	Code          string // stable
	Name          string // stable name of the fault
	Group         CheckGroup
	Wrong         string // description of the fault, for the reference
	NoFindingText string // text if there are no findings
	Why           string // consequences of the fault
	Fix           string // what ApplyFixes does; "" if only the user can fix it
	run           func(*Facts) []Finding
}

// checks lists all checks in the order of their codes. Codes are never reused.
var checks = []checkRow{
	{"D101", "daemon-not-running", GroupDaemon, "No daemon runs for this data directory.", "The daemon runs and responds.",
		"Clients cannot connect over HTTP. Clients that use `mcpproxy stdio` start a daemon.", "", checkDaemonNotRunning},
	{"D102", "daemon-silent", GroupDaemon, "A process locks the data directory but does not respond.", "The running daemon responds.",
		"Clients cannot use it, and no other daemon can start.", "", checkDaemonSilent},
	{"D103", "daemon-other-version", GroupDaemon, "The daemon and this command are different versions or files, or the program was replaced while the daemon runs.", "The daemon and this command are the same program.",
		"An update takes effect at the next start.", "", newDaemonCheck(checkDaemonVersion)},
	{"D104", "socket-open", GroupDaemon, "Other users can access the socket, or another user owns it.", "Only you can access the socket.",
		"A user with access to the socket can approve and change everything, as you can.", "sets its mode to 0600", checkSocketAccess},
	{"D105", "socket-stale", GroupDaemon, "A stopped daemon left its socket.", "There is no stale socket.",
		"The socket is harmless, but the daemon did not shut down cleanly.", "removes it, unless a daemon is starting", checkStaleSocket},
	{"D106", "port-taken", GroupDaemon, "Another program listens on the address of MCPProxy.", "No other program uses the address.",
		"Clients connect to that program, and `mcpproxy serve` cannot start.", "", checkPortTaken},
	{"D107", "port-other-mcpproxy", GroupDaemon, "Another MCPProxy, with another data directory, listens on the address.", "No other MCPProxy uses the address.",
		"Clients connect to that MCPProxy, which has other servers and another log.", "", checkPortOfOtherMCPProxy},
	{"D108", "calls-paused", GroupDaemon, "A user has paused all calls, or MCPProxy cannot read whether calls are paused.", "Calls are not paused.",
		"MCPProxy rejects calls on all surfaces until a user resumes them.", "", newDaemonCheck(checkCallsPaused)},

	{"D201", "data-dir-missing", GroupFiles, "The data directory does not exist.", "The data directory exists.",
		"It holds the activity log, approvals and the API key. The first start creates it.", "creates it with mode 0700", checkDataDirMissing},
	{"D202", "data-dir-open", GroupFiles, "Other users can read the data directory.", "Other users cannot read the data directory.",
		"It holds the API key, the activity log and logins of servers.", "sets its mode to 0700", checkDataDirAccess},
	{"D203", "data-dir-not-writable", GroupFiles, "The data directory, or a file in it, is not writable.", "The data directory is writable.",
		"MCPProxy rejects calls that it cannot record.", "makes it writable for you, its owner", checkFilesWritable},
	{"D204", "file-of-another-user", GroupFiles, "Another user owns a file of MCPProxy, often after a run with sudo.", "You own all files.",
		"MCPProxy cannot write it, or will soon fail to.", "", checkFileOwners},
	{"D205", "config-open", GroupFiles, "Other users can read the configuration file.", "Other users cannot read the configuration file.",
		"It can contain credentials of servers.", "sets its mode to 0600", checkConfigAccess},
	{"D206", "key-open", GroupFiles, "Other users can read the API key.", "Other users cannot read the API key.",
		"A user with the key can approve and change everything, as you can.", "sets its mode to 0600", checkKeyAccess},
	{"D207", "key-unusable", GroupFiles, "The API key file contains no key.", "The API key is valid.",
		"MCPProxy does not start with this file. Without the file, it generates a new key.", "", checkKeyUsable},
	{"D208", "data-open", GroupFiles, "Other users can read the database or other data.", "Other users cannot read the data.",
		"It contains arguments and results of calls.", "removes the access of other users", checkDataFileAccess},
	{"D209", "database-put-aside", GroupFiles, "The data directory contains an old database that was damaged or replaced.", "There is no old database.",
		"It uses disk space. Its records are not in the current database.", "", checkMovedAsideDatabases},
	{"D210", "database-newer", GroupFiles, "A newer version of MCPProxy wrote the database.", "This version can read the database.",
		"This version cannot read its approvals, and rejects all calls.", "", checkDatabaseVersion},
	{"D211", "database-unreadable", GroupFiles, "The database cannot be read.", "The database can be read.",
		"Without it, MCPProxy does not know which tools are approved.", "", checkDatabaseReadable},
	{"D212", "database-damaged", GroupFiles, "Pages of the database are damaged.", "The database is not damaged.",
		"Records and approvals on these pages are lost. MCPProxy moves the database away when it reads one.", "", checkDatabasePages},

	{"D301", "config-invalid", GroupConfiguration, "The configuration file is invalid.", "The configuration file is valid.",
		"MCPProxy does not apply it, and does not start with it.", "", checkConfigValid},
	{"D302", "config-unknown-key", GroupConfiguration, "The configuration file contains an unknown key.", "All keys are known.",
		"MCPProxy does not apply the file: the key could be a misspelled restriction.", "", checkUnknownKeys},
	{"D303", "config-missing-value", GroupConfiguration, "The configuration uses an environment variable that is not set.", "All variables are set.",
		"A server that uses it is not started. If another key uses it, MCPProxy does not start.", "", checkMissingVariables},
	{"D304", "config-two-launches", GroupConfiguration, "Two enabled servers have the same command or URL.", "No server is configured twice.",
		"The server runs twice, and each tool is listed twice.", "", checkDuplicateServers},
	{"D305", "config-needs-restart", GroupConfiguration, "A configuration change requires a restart.", "No change requires a restart.",
		"MCPProxy still runs with the old values.", "", newDaemonCheck(checkNeedsRestart)},
	{"D306", "config-without-effect", GroupConfiguration, "A part of the configuration file has no effect, or a server points back to MCPProxy.", "Everything in the file has an effect.",
		"MCPProxy does not do what the file asks for.", "", checkConfigWarnings},
	{"D307", "config-unconfirmed", GroupConfiguration, "Changes in the configuration file that grant more access wait for confirmation.", "No change in the file waits for confirmation.",
		"The last confirmed values are active. Another program may have changed the file.", "", newDaemonCheck(checkUnconfirmedConfig)},
	{"D308", "config-credential-in-clear", GroupConfiguration, "The configuration file contains a credential of a server in plain text.", "The file contains no credential in plain text.",
		"Anyone who can read the file, a backup or a commit of it has the credential.", "", newServerCheck(checkClearTextCredentials)},

	{"D401", "server-command-missing", GroupServers, "The command of a server is not found or cannot be started.", "All commands are found.",
		"The server and its tools are not available.", "", newServerCheck(checkCommandMissing)},
	{"D402", "server-without-node", GroupServers, "A server needs Node.js (npx), which is not installed.", "Node.js is installed, or no server needs it.",
		"The server and its tools are not available.", "", newToolchainCheck(toolchainNode, "Install Node.js (https://nodejs.org). Its node and npx must be in the PATH of MCPProxy.")},
	{"D403", "server-without-uv", GroupServers, "A server needs uv (uvx), which is not installed.", "uv is installed, or no server needs it.",
		"The server and its tools are not available.", "", newToolchainCheck(toolchainUV, "Install uv (https://docs.astral.sh/uv). Its uvx must be in the PATH of MCPProxy.")},
	{"D404", "server-without-engine", GroupServers, "A server needs a container engine, which is not installed or not running.", "A container engine runs, or no server needs one.",
		"The server and its tools are not available.", "", newToolchainCheck(toolchainEngine, "Install Docker or Podman, start its engine, and check that you have access (`docker info`).")},
	{"D405", "server-directory-missing", GroupServers, "The working directory of a server does not exist.", "All working directories exist.",
		"The server cannot start.", "", newServerCheck(checkWorkingDirectoryMissing)},
	{"D406", "server-unknown-host", GroupServers, "The host name in a server's URL cannot be resolved.", "All host names can be resolved.",
		"The server cannot be reached. The URL is misspelled, or the network or a VPN is down.", "", newFailureCheck(upstream.UnknownHost, "Check the URL {url} and the network. To correct the URL: {set url}.")},
	{"D407", "server-refused", GroupServers, "A server's address does not respond, or MCPProxy is not allowed to connect to it.", "All addresses answer.",
		"The server is not running, or listens at another address.", "", newFailureCheck(upstream.Unreachable, "Start the server at {url}, or correct its URL with {set url}.")},
	{"D408", "server-certificate-expired", GroupServers, "The certificate of a server has expired or is not valid yet.", "No certificate has expired.",
		"The server's identity is not certain. A wrong clock has the same effect.", "", newFailureCheck(upstream.CertificateExpired, "Ask its operator to renew the certificate, and check the clock of this machine (`date`).")},
	{"D409", "server-certificate-unknown", GroupServers, "This system does not trust the issuer of a server's certificate.", "All certificates are trusted.",
		"The address may belong to another server.", "", newFailureCheck(upstream.Certificate, "Ask its operator for a certificate that this system trusts. Or add the certificate authority to the system, or to SSL_CERT_FILE where MCPProxy starts.")},
	{"D410", "server-certificate-name", GroupServers, "The certificate of a server is for another host.", "All certificates match their hosts.",
		"The address may belong to another server.", "", newFailureCheck(upstream.CertificateName, "Use the host name of the certificate: {set url}.")},
	{"D411", "server-login", GroupServers, "A server requires a login, or rejects its credentials (401).", "No server requires a login.",
		"Its tools cannot be called.", "", newServerCheckWithDaemon(checkServerNeedsLogin)},
	{"D412", "server-forbidden", GroupServers, "A server denies access (403).", "No server denies access.",
		"The credentials are valid but lack permission.", "", newServerCheckWithDaemon(checkServerForbidsAccess)},
	{"D413", "server-http-status", GroupServers, "A server returns an unexpected HTTP status.", "All servers respond to MCP requests.",
		"The URL may be wrong, or another program responds instead of the server.", "", newFailureCheck(upstream.Status, "Check whether {url} is the address of its MCP endpoint, often with /mcp at the end. To correct it: {set url}.")},
	{"D414", "server-slow", GroupServers, "A server does not become ready within its time limit.", "All servers become ready within their time limits.",
		"Calls wait for it, or fail.", "", newServerCheckWithDaemon(checkSlowStart)},
	{"D415", "server-crashed", GroupServers, "The process of a server exits.", "No server has crashed.",
		"MCPProxy restarts the server repeatedly. Its tools are not available in between.", "", newServerCheckWithDaemon(checkServerCrashed)},
	{"D416", "server-without-tools", GroupServers, "A server is ready but lists no tools, prompts or resources.", "Every ready server lists a tool, prompt or resource.",
		"Agents cannot use it. Often a setting or a permission is missing.", "", newServerCheckWithDaemon(checkServerListsNothing)},
	{"D417", "server-waits", GroupServers, "A server waits for your review.", "No server waits for review.",
		"Its tools cannot be called until you approve it.", "", newServerCheck(checkServerWaitsForReview)},
	{"D418", "server-not-speaking", GroupServers, "A server responds but does not speak MCP, or rejects the session.", "All servers speak MCP.",
		"The server and its tools are not available.", "", newServerCheckWithDaemon(checkServerSpeaksMCP)},
	{"D419", "server-starting", GroupServers, "A server is still starting or installing.", "No server is still starting.",
		"Its tools can be called soon.", "", newServerCheckWithDaemon(checkServerStarting)},
	{"D420", "server-disabled", GroupServers, "A server is disabled.", "No server is disabled.",
		"Its tools can be found but not called. This is not a problem.", "", newServerCheck(checkServerDisabled)},
	{"D421", "server-needs-secret", GroupServers, "A secret of a server is not set, or cannot be read.", "All secrets are set.",
		"The server is not started without it.", "", newServerCheckWithDaemon(checkServerNeedsSecret)},
	{"D422", "server-warns", GroupServers, "A server violates the MCP specification, or your settings for its tools do not fit its list.", "All servers follow the MCP specification, and your settings fit their tools.",
		"MCPProxy tolerates a violation. Other clients may not, and a part of the server may be missing.", "", newServerCheckWithDaemon(checkProtocolDeviations)},
	{"D423", "server-sandbox", GroupServers, "The sandbox of a server cannot be set up, or is not complete.", "All sandboxes are complete.",
		"The server is not started, or can do more than its configuration says.", "", newServerCheckWithDaemon(checkSandbox)},

	{"D501", "tools-without-hints", GroupTools, "Tools without hints seem to be reads.", "No tool without hints seems to be a read.",
		"MCPProxy does not treat them as reads, so clients ask you more often than necessary.", "", newServerCheckWithDaemon(checkToolsWithoutHints)},
	{"D502", "tools-wait", GroupTools, "Tools, prompts or resources wait for your approval.", "No tool waits.",
		"They cannot be used until you approve them.", "", newServerCheck(checkDefinitionsAwaitApproval)},
	{"D503", "approvals-lost", GroupTools, "The approvals of an earlier database are lost, or cannot be read.", "The approvals can be read.",
		"MCPProxy accepts nothing automatically until you approve the servers again.", "", newDaemonCheck(checkApprovalsLost)},
	{"D504", "tools-pattern-idle", GroupTools, "A pattern of `enabled_tools` or `disabled_tools` matches no tool of its server.", "Every pattern matches a tool.",
		"A tool that you meant to disable may be callable under another name.", "", newServerCheckWithDaemon(checkUnmatchedToolPatterns)},

	{"D601", "no-client-connected", GroupClients, "No MCP client on this machine uses MCPProxy.", "A client uses MCPProxy.",
		"MCPProxy does nothing without a client.", "", checkNoClientConnected},
	{"D602", "client-elsewhere", GroupClients, "A client's entry for MCPProxy has another address.", "All entries have the address of this MCPProxy.",
		"The client cannot connect, or connects to another MCPProxy.", "", newClientCheck(checkForeignClientEntries)},
	{"D603", "client-program-gone", GroupClients, "A client's entry for MCPProxy starts a program that does not exist.", "The programs that clients start exist.",
		"The client cannot use MCPProxy.", "", newClientCheck(checkMissingClientPrograms)},
	{"D604", "client-permissions", GroupClients, "A client's permission rules do not match the lanes.", "The permission rules of clients match the lanes.",
		"The client asks about reads, or does not ask about writes.", "", newClientCheck(checkClientPermissions)},
	{"D605", "client-file-broken", GroupClients, "A file of a client cannot be read.", "The files of the clients can be read.",
		"The client may ignore the whole file, including its entry for MCPProxy.", "", checkBrokenClientFiles},
	{"D606", "client-bypasses", GroupClients, "A client that uses MCPProxy also reaches servers directly.", "Connected clients reach servers through MCPProxy only.",
		"MCPProxy does not check, ask about or record calls to those servers.", "", newClientCheck(checkClientsBypassingMCPProxy)},

	{"D701", "log-degraded", GroupMachine, "The activity log cannot be written.", "The activity log can be written.",
		"MCPProxy rejects calls that it cannot record.", "", newDaemonCheck(checkLogDegraded)},
	{"D702", "log-behind", GroupMachine, "Records wait in the spool because the database does not accept them.", "The database keeps up with the log.",
		"Searches miss the latest calls, and the spool has a size limit.", "", newDaemonCheck(checkLogBacklog)},
	{"D703", "log-changed", GroupMachine, "Records of the activity log were changed.", "No changed record was found.",
		"A user or a program changed the activity log.", "", checkLogUnchanged},
	{"D704", "disk-nearly-full", GroupMachine, "The disk of the data directory is almost full.", "The disk has free space.",
		"MCPProxy rejects calls that it cannot record.", "", checkDiskSpace},
	{"D705", "clock-wrong", GroupMachine, "The clock was set back, or files were written in the future.", "The clock is consistent.",
		"Record times overlap, and certificates and logins can appear invalid.", "", checkClock},
	{"D706", "presence-none", GroupMachine, "Presence is off: approvals need no passphrase or passkey.", "Presence is on.",
		"Any program that runs under your account, such as an agent with a shell, can approve for you. This is the default, not a problem.", "", newDaemonCheck(checkPresenceOff)},
	{"D707", "daemon-warns", GroupMachine, "The daemon reports another warning.", "The daemon reports no other warning.",
		"The warning describes the effect.", "", newDaemonCheck(checkDaemonWarnings)},
	{"D708", "look-too-slow", GroupMachine, "A check did not finish in time.", "All checks finished in time.",
		"A disk or a process may hang. Other problems there are not reported.", "", checkTimedOutParts},
	{"D709", "presence-anchor", GroupMachine, "The fingerprint of the presence key is missing or different in one of its locations.", "The fingerprint of the presence key is the same in all locations.",
		"Decisions that grant more access are not valid: the key may not be yours.", "", newDaemonCheck(checkPresenceAnchor)},
	{"D710", "presence-void", GroupMachine, "No decision that grants more access is valid.", "Your signed decisions are valid.",
		"Presence was reset, or is required but not set up.", "", newDaemonCheck(checkPresenceVoid)},
	{"D711", "presence-statement", GroupMachine, "The signature of a stored decision is invalid.", "All signatures are valid.",
		"A user or a program changed the database.", "", newDaemonCheck(checkPresenceSignatures)},
	{"D712", "presence-unsigned", GroupMachine, "A stored decision has no signature.", "Every decision is signed.",
		"The decision is not valid. A user or a program changed the database.", "", newDaemonCheck(checkUnsignedDecisions)},
}
