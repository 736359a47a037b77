package doctor

import "mcpproxy/internal/upstream"

// CheckGroup is the subject of a check.
type CheckGroup string

// The groups, in the order of the table.
const (
	GroupDaemon        CheckGroup = "daemon"
	GroupFiles         CheckGroup = "files"
	GroupConfiguration CheckGroup = "configuration"
	GroupServers       CheckGroup = "servers"
	GroupTools         CheckGroup = "tools"
	GroupClients       CheckGroup = "clients"
	GroupMachine       CheckGroup = "log and machine"
)

// checkRow is one row of the table.
type checkRow struct {
	Code  string // stable
	Name  string // stable, names the fault
	Group CheckGroup
	Wrong string // the finding, for the reference
	Well  string // text without findings
	Why   string // why it matters
	Fix   string // what ApplyFixes does, "" when only the user can fix it
	run   func(*Facts) []Finding
}

// checks has all checks by code. Codes are never reused.
var checks = []checkRow{
	{"D101", "daemon-not-running", GroupDaemon, "No daemon runs for this data directory.", "It runs and answers.",
		"Clients that connect over HTTP find nothing. Clients that use `mcpproxy stdio` start one by themselves.", "", checkDaemonNotRunning},
	{"D102", "daemon-silent", GroupDaemon, "A process has the data directory and does not answer.", "What runs answers.",
		"Nobody can use it, and no other daemon can start.", "", checkDaemonSilent},
	{"D103", "daemon-other-version", GroupDaemon, "The daemon is another version, or another file, than this command; or its file was replaced while it runs.", "The daemon and this command are the same program.",
		"What was updated takes effect with the next start only.", "", newDaemonCheck(checkDaemonVersion)},
	{"D104", "socket-open", GroupDaemon, "Others may use the socket, or it is another user's.", "The socket is yours alone.",
		"Who can use the socket decides about servers and tools like you.", "sets its mode to 0600", checkSocketAccess},
	{"D105", "socket-stale", GroupDaemon, "A daemon that has ended left its socket.", "No socket was left behind.",
		"It does no harm, and says that the daemon did not stop in order.", "removes it, unless a daemon has begun to start", checkStaleSocket},
	{"D106", "port-taken", GroupDaemon, "Another program listens on the address of MCPProxy.", "The address is MCPProxy's, or free.",
		"Clients reach that program instead, and `mcpproxy serve` cannot start.", "", checkPortTaken},
	{"D107", "port-other-mcpproxy", GroupDaemon, "Another MCPProxy, with another data directory, listens on the address.", "No other MCPProxy has the address.",
		"Clients reach that one, with its servers and its log.", "", checkPortOfOtherMCPProxy},

	{"D201", "data-dir-missing", GroupFiles, "The data directory is not there.", "The data directory is there.",
		"Log, approvals and key are kept in it; it is made at the first start.", "makes it, with mode 0700", checkDataDirMissing},
	{"D202", "data-dir-open", GroupFiles, "Other users can look into the data directory.", "The data directory is closed to others.",
		"It holds the key, the log of every call, and the logins to servers.", "sets its mode to 0700", checkDataDirAccess},
	{"D203", "data-dir-not-writable", GroupFiles, "The data directory, or a file in it, cannot be written.", "The data can be written.",
		"Calls that cannot be recorded are refused.", "gives you, its owner, the right to write", checkFilesWritable},
	{"D204", "file-of-another-user", GroupFiles, "A file of MCPProxy is another user's, often after a run with sudo.", "All files are yours.",
		"MCPProxy cannot write it, or not for long.", "", checkFileOwners},
	{"D205", "config-open", GroupFiles, "Other users can read the configuration file.", "The configuration file is closed to others.",
		"It can hold credentials of servers.", "sets its mode to 0600", checkConfigAccess},
	{"D206", "key-open", GroupFiles, "Other users can read the key of the API.", "The key is closed to others.",
		"Who has the key decides about servers and tools like you.", "sets its mode to 0600", checkKeyAccess},
	{"D207", "key-unusable", GroupFiles, "The file of the key holds no key.", "The key can be used.",
		"MCPProxy does not start without a key; it makes a new one where there is no file.", "", checkKeyUsable},
	{"D208", "data-open", GroupFiles, "Other users can read the database or other data.", "The data is closed to others.",
		"It holds arguments and answers of every call.", "takes the rights of others away", checkDataFileAccess},
	{"D209", "database-put-aside", GroupFiles, "A database that was damaged, or was replaced, lies beside the one in use.", "No database was put aside.",
		"It takes room, and the records in it are in no other place.", "", checkMovedAsideDatabases},
	{"D210", "database-newer", GroupFiles, "A newer MCPProxy has written the database.", "This program knows the schema of the database.",
		"This one cannot read it: no call is allowed without its approvals.", "", checkDatabaseVersion},
	{"D211", "database-unreadable", GroupFiles, "The database cannot be read.", "The database can be read.",
		"Without it nobody knows what was approved.", "", checkDatabaseReadable},
	{"D212", "database-damaged", GroupFiles, "Pages of the database are damaged.", "The database is whole.",
		"Records and approvals in them are lost, and MCPProxy puts the database aside when it comes upon them.", "", checkDatabasePages},

	{"D301", "config-invalid", GroupConfiguration, "The configuration file is not right.", "The configuration file is right.",
		"Nothing of it is applied, and MCPProxy does not start with it.", "", checkConfigValid},
	{"D302", "config-unknown-key", GroupConfiguration, "The configuration file has a key that MCPProxy does not know.", "All keys are known.",
		"Nothing of the file is applied: what you meant might be a protection.", "", checkUnknownKeys},
	{"D303", "config-missing-value", GroupConfiguration, "An environment variable that the configuration names is not set.", "All variables are set.",
		"The server that needs it is not started; without any other key that needs it MCPProxy does not start.", "", checkMissingVariables},
	{"D304", "config-two-launches", GroupConfiguration, "Two enabled servers are launched in the same way.", "No server is there twice.",
		"Each tool is found twice, and the server runs twice.", "", checkDuplicateServers},
	{"D305", "config-needs-restart", GroupConfiguration, "A change waits for a restart.", "No change waits for a restart.",
		"The file says one thing, and MCPProxy does another.", "", newDaemonCheck(checkNeedsRestart)},
	{"D306", "config-without-effect", GroupConfiguration, "Something in the configuration file has no effect or leads back to MCPProxy.", "All of the file has its effect.",
		"It does not do what it was written for.", "", checkConfigWarnings},
	{"D307", "config-unconfirmed", GroupConfiguration, "What widens in the configuration file waits for a person.", "Nothing of the file waits for a person.",
		"What was confirmed last is in force instead. Whoever changed the file may not have been you.", "", newDaemonCheck(checkUnconfirmedConfig)},
	{"D308", "config-credential-in-clear", GroupConfiguration, "A credential of a server is in the configuration file in clear.", "No credential is in the file in clear.",
		"Anyone who reads the file, a backup or a commit of it has the credential.", "", newServerCheck(checkClearTextCredentials)},

	{"D401", "server-command-missing", GroupServers, "The command of a server is not found or cannot be started.", "All commands are found.",
		"The server and its tools are away.", "", newServerCheck(checkCommandMissing)},
	{"D402", "server-without-node", GroupServers, "A server runs with npx and Node.js is not found.", "Node.js is there where it is needed.",
		"The server and its tools are away.", "", newServerCheck(checkNodeMissing)},
	{"D403", "server-without-uv", GroupServers, "A server runs with uvx or uv, which is not found.", "uv is there where it is needed.",
		"The server and its tools are away.", "", newServerCheck(checkUVMissing)},
	{"D404", "server-without-engine", GroupServers, "A server runs in a container, and there is no engine, or it does not run.", "A container engine runs where one is needed.",
		"The server and its tools are away.", "", newServerCheck(checkContainerEngineMissing)},
	{"D405", "server-directory-missing", GroupServers, "The working directory of a server is not there.", "All working directories are there.",
		"The server cannot start.", "", newServerCheck(checkWorkingDirectoryMissing)},
	{"D406", "server-unknown-host", GroupServers, "The host name of a server's URL is not known.", "All host names are known.",
		"The server cannot be reached: a typing error, no network, or a VPN that is off.", "", newFailureCheck(upstream.UnknownHost, adviseHostUnknown)},
	{"D407", "server-refused", GroupServers, "Nothing answers at a server's address, or it may not be dialled.", "Something answers at all addresses.",
		"The server does not run, or listens elsewhere.", "", newFailureCheck(upstream.Unreachable, adviseServerUnreachable)},
	{"D408", "server-certificate-expired", GroupServers, "The certificate of a server has expired or is not valid yet.", "No certificate has expired.",
		"Nobody vouches for the server any more. A wrong clock looks the same.", "", newFailureCheck(upstream.CertificateExpired, adviseCertificateExpired)},
	{"D409", "server-certificate-unknown", GroupServers, "The certificate of a server is of nobody whom this system trusts.", "All certificates are trusted.",
		"It may be another server than the one you mean.", "", newFailureCheck(upstream.Certificate, adviseCertificateTrusted)},
	{"D410", "server-certificate-name", GroupServers, "The certificate of a server is for another host.", "All certificates are for their hosts.",
		"It may be another server than the one you mean.", "", newFailureCheck(upstream.CertificateName, adviseCertificateName)},
	{"D411", "server-login", GroupServers, "A server asks for a login, or refuses the credentials it was given (401).", "No server asks for a login.",
		"Its tools cannot be called.", "", newServerCheckWithDaemon(checkServerNeedsLogin)},
	{"D412", "server-forbidden", GroupServers, "A server refuses access (403).", "No server refuses access.",
		"The credentials are known, and do not suffice.", "", newServerCheckWithDaemon(checkServerForbidsAccess)},
	{"D413", "server-http-status", GroupServers, "A server answers with an HTTP status that is no answer.", "All servers answer MCP.",
		"The URL may be wrong, or something stands before the server.", "", newFailureCheck(upstream.Status, adviseServerHTTPStatus)},
	{"D414", "server-slow", GroupServers, "A server does not become ready in its time.", "All servers become ready in their time.",
		"Calls wait for it, or fail.", "", newServerCheckWithDaemon(checkSlowStart)},
	{"D415", "server-crashed", GroupServers, "The process of a server ends by itself.", "No server has crashed.",
		"The server is started again and again; its tools are away meanwhile.", "", newServerCheckWithDaemon(checkServerCrashed)},
	{"D416", "server-without-tools", GroupServers, "A server is ready and lists nothing.", "All servers that are ready list something.",
		"It is of no use as it is: often it lacks a setting or a right.", "", newServerCheckWithDaemon(checkServerListsNothing)},
	{"D417", "server-waits", GroupServers, "A server waits for your review.", "No server waits for review.",
		"Nothing of it can be called before.", "", newServerCheck(checkServerWaitsForReview)},
	{"D418", "server-not-speaking", GroupServers, "A server is there and does not speak MCP, or refuses the session.", "All servers speak MCP.",
		"The server and its tools are away.", "", newServerCheckWithDaemon(checkServerSpeaksMCP)},
	{"D419", "server-starting", GroupServers, "A server is still starting or installing.", "No server is still starting.",
		"Its tools can be called soon.", "", newServerCheckWithDaemon(checkServerStarting)},
	{"D420", "server-disabled", GroupServers, "A server is disabled.", "No server is disabled.",
		"Its tools can be found and not called. It is no fault.", "", newServerCheck(checkServerDisabled)},
	{"D421", "server-needs-secret", GroupServers, "A secret that a server needs is not set, or cannot be read.", "All secrets are there.",
		"The server is not started without it.", "", newServerCheckWithDaemon(checkServerNeedsSecret)},
	{"D422", "server-warns", GroupServers, "A server does something otherwise than the protocol asks.", "No server does otherwise than the protocol asks.",
		"MCPProxy copes with it; other clients may not, and something of the server may be missing.", "", newServerCheckWithDaemon(checkProtocolDeviations)},

	{"D501", "tools-without-hints", GroupTools, "Tools do not say whether they read or write, and look like reads.", "Tools say what they do, or nothing is gained.",
		"They count as destructive, so that agents ask you more than they need to.", "", newServerCheckWithDaemon(checkToolsWithoutHints)},
	{"D502", "tools-wait", GroupTools, "Tools, prompts or resources wait for your approval.", "No tool waits.",
		"They cannot be called before.", "", newServerCheck(checkDefinitionsAwaitApproval)},
	{"D503", "approvals-lost", GroupTools, "The approvals of an earlier database are not known any more, or cannot be read.", "The approvals are known.",
		"Nothing is accepted by itself until you have approved again.", "", newDaemonCheck(checkApprovalsLost)},
	{"D504", "tools-pattern-idle", GroupTools, "A pattern of enabled_tools or disabled_tools fits no tool of its server.", "Every pattern fits a tool.",
		"A tool that was to be switched off may be callable under another name.", "", newServerCheckWithDaemon(checkUnmatchedToolPatterns)},

	{"D601", "no-client-connected", GroupClients, "No MCP client of this machine uses MCPProxy.", "A client uses MCPProxy.",
		"MCPProxy is of no use without one.", "", checkNoClientConnected},
	{"D602", "client-elsewhere", GroupClients, "The entry of a client leads to another address.", "All entries lead here.",
		"The client finds nothing, or another MCPProxy.", "", newClientCheck(checkForeignClientEntries)},
	{"D603", "client-program-gone", GroupClients, "The entry of a client starts a program that is gone.", "What the clients start is there.",
		"The client has no tools of MCPProxy.", "", newClientCheck(checkMissingClientPrograms)},
	{"D604", "client-permissions", GroupClients, "The permissions of a client differ from the lanes.", "Clients ask as the lanes say.",
		"Reads are asked about, or writes are not.", "", newClientCheck(checkClientPermissions)},
	{"D605", "client-file-broken", GroupClients, "A file of a client cannot be read.", "The files of the clients can be read.",
		"The client may ignore the whole file, with MCPProxy in it.", "", checkBrokenClientFiles},
	{"D606", "client-bypasses", GroupClients, "A client that uses MCPProxy also reaches servers directly.", "Connected clients reach servers through MCPProxy only.",
		"Calls of those servers are not checked, not asked about and not recorded.", "", newClientCheck(checkClientsBypassingMCPProxy)},

	{"D701", "log-degraded", GroupMachine, "The activity log cannot be written.", "The activity log can be written.",
		"Calls that cannot be recorded are refused.", "", newDaemonCheck(checkLogDegraded)},
	{"D702", "log-behind", GroupMachine, "Records wait in the spool: the database does not take them.", "The database keeps up with the log.",
		"Searches miss the latest calls, and the spool has a bound.", "", newDaemonCheck(checkLogBacklog)},
	{"D703", "log-changed", GroupMachine, "Records are not as they were written.", "No record is known to be changed.",
		"Somebody or something has changed the log.", "", checkLogUnchanged},
	{"D704", "disk-nearly-full", GroupMachine, "There is little room on the disk of the data directory.", "There is room on the disk.",
		"Calls that cannot be recorded are refused.", "", checkDiskSpace},
	{"D705", "clock-wrong", GroupMachine, "The clock was set back, or files were written in the future.", "The clock goes on.",
		"Times of records overlap, and certificates and logins look invalid.", "", checkClock},
	{"D706", "presence-none", GroupMachine, "Nothing proves that a person decides.", "A person proves their presence.",
		"Whatever runs as you, an agent with a shell too, can decide in your place. It is the default, and no fault.", "", newDaemonCheck(checkPresenceOff)},
	{"D707", "daemon-warns", GroupMachine, "The daemon has something else to say.", "The daemon has nothing else to say.",
		"See what it says.", "", newDaemonCheck(checkDaemonWarnings)},
	{"D708", "look-too-slow", GroupMachine, "Something could not be looked at in time.", "Everything could be looked at.",
		"What is wrong there is not known: a disk or a process hangs.", "", checkTimedOutParts},
	{"D709", "presence-anchor", GroupMachine, "The fingerprint of what verifies your decisions is missing in a place, or another one is there.", "The anchor is what it was, everywhere.",
		"Nothing that widens counts: what verifies may be somebody else's.", "", newDaemonCheck(checkPresenceAnchor)},
	{"D710", "presence-void", GroupMachine, "No decision that widens counts.", "Decisions that you have signed count.",
		"Presence was reset, or is demanded and not set.", "", newDaemonCheck(checkPresenceVoid)},
	{"D711", "presence-statement", GroupMachine, "What is stored as signed by a person does not verify.", "Every statement verifies.",
		"Somebody or something has changed the database.", "", newDaemonCheck(checkPresenceSignatures)},
	{"D712", "presence-unsigned", GroupMachine, "Something is decided that nobody has signed.", "Every decision is signed.",
		"It counts for nothing, and somebody or something has put it there.", "", newDaemonCheck(checkUnsignedDecisions)},
}
