package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/ops"
)

// findFile returns the facts about a file, or the zero value if it does not exist.
func (f *Facts) findFile(path string) FileFacts {
	for _, one := range f.Files {
		if one.Path == path {
			return one
		}
	}
	return FileFacts{}
}

// openToOthersFinding returns the finding that other users can access a file. It can be fixed automatically if this
// user owns the file.
func (f *Facts) openToOthersFinding(at FileFacts, what string) Finding {
	mode := at.Mode.Perm() &^ 0o077
	found := Finding{State: Bad, Subject: at.Path, What: fmt.Sprintf("%s %s is open to other users: its mode is %04o.", what, at.Path, at.Mode.Perm()),
		Do: "Remove their access.", Command: fmt.Sprintf("chmod %o %s", mode, ops.ShellQuote(at.Path))}
	if at.Owner == f.User || f.User == 0 {
		found.fix = func() error { return os.Chmod(at.Path, mode) }
	}
	return found
}

// isAccessibleToOthers reports whether other users can access an existing file. It always returns false on Windows,
// where modes have no meaning.
func isAccessibleToOthers(at FileFacts) bool {
	return at.Path != "" && at.Owner >= 0 && at.Mode.Perm()&0o077 != 0
}

func checkDataDirMissing(f *Facts) []Finding {
	return reportIf(f.findFile(f.DataDir).Path == "" && !slices.Contains(f.TimedOut, "the files"), Finding{State: Warn, Subject: f.DataDir, What: "The directory " + f.DataDir + " does not exist.", Do: "Create it, or start MCPProxy: it creates the directory.",
		Command: "mkdir -p -m 700 " + ops.ShellQuote(f.DataDir), fix: func() error { return os.MkdirAll(f.DataDir, 0o700) }})
}

func checkDataDirAccess(f *Facts) []Finding {
	dir := f.findFile(f.DataDir)
	return reportIf(isAccessibleToOthers(dir) && dir.Mode.IsDir(), f.openToOthersFinding(dir, "The data directory"))
}

func checkFilesWritable(f *Facts) (out []Finding) {
	for _, at := range f.Files {
		if at.Writable || at.Owner != f.User || at.Path == f.ConfigPath {
			continue // files of other users have their own check, and a file may be read-only on purpose
		}
		found := Finding{State: Bad, Subject: at.Path, What: at.Path + " is not writable."}
		switch own := at.Mode.Perm() | requiredOwnerBits(at); {
		case at.Mode.Perm()&0o200 == 0:
			found.Do, found.Command = "Give yourself write permission.", fmt.Sprintf("chmod %o %s", own, ops.ShellQuote(at.Path))
			found.fix = func() error { return os.Chmod(at.Path, own) }
		default:
			found.What += " Its mode allows writing: the file system may be read-only."
			found.Do, found.Command = "Make it writable, or choose another data directory.", f.sudoCommand("mount -o remount,rw "+ops.ShellQuote(mountPoint(at.Path)))
		}
		out = append(out, found)
	}
	return out
}

// requiredOwnerBits returns the mode bits that the owner of a file or directory needs.
func requiredOwnerBits(at FileFacts) fs.FileMode {
	if at.Mode.IsDir() {
		return 0o700
	}
	return 0o600
}

// expectedOwner returns the user that should own the files. It is this user or, for root, the owner of the data
// directory.
func (f *Facts) expectedOwner() int {
	if dir := f.findFile(f.DataDir); f.User == 0 && dir.Path != "" && dir.Owner >= 0 {
		return dir.Owner
	}
	return f.User
}

func checkFileOwners(f *Facts) []Finding {
	var others []FileFacts
	for _, at := range f.Files {
		if at.Owner >= 0 && at.Owner != f.expectedOwner() {
			others = append(others, at)
		}
	}
	if others == nil {
		return nil
	}
	return singleFinding(Finding{State: Bad, Subject: others[0].Path, What: fmt.Sprintf("User %[2]d owns %[1]s and %[4]d more, instead of user %[3]d.", others[0].Path, others[0].Owner, f.expectedOwner(), len(others)-1),
		Do: "Give them to the user that runs MCPProxy.", Command: f.sudoCommand(fmt.Sprintf("chown -R %d %s", f.expectedOwner(), quotePaths(others)))})
}

func checkConfigAccess(f *Facts) []Finding {
	at := f.findFile(f.ConfigPath)
	return reportIf(isAccessibleToOthers(at), f.openToOthersFinding(at, "The configuration file"))
}

func checkKeyAccess(f *Facts) []Finding {
	at := f.findFile(filepath.Join(f.DataDir, auth.KeyFile))
	return reportIf(isAccessibleToOthers(at), f.openToOthersFinding(at, "The key"))
}

func checkKeyUsable(f *Facts) []Finding {
	path := filepath.Join(f.DataDir, auth.KeyFile)
	return reportIf(f.KeyError != "", Finding{State: Bad, Subject: path, What: path + " contains no usable key: " + f.KeyError + ".",
		Do: "Remove it. The next start generates a new key; update the programs that use the key.", Command: "rm -r " + ops.ShellQuote(path)})
}

// isDataFile reports whether a file in the data directory contains data of MCPProxy, such as records, logs or secrets.
func isDataFile(name string) bool {
	return strings.HasPrefix(name, databaseName) || slices.Contains([]string{"spool", "logs", "config-history", "restrictions.log", "revoked_tokens", auth.SessionsFile, "logins.age", "logins.key", "secrets.age", "secrets.key", "secrets.json"}, name)
}

func checkDataFileAccess(f *Facts) (out []Finding) {
	for _, at := range f.Files {
		if filepath.Dir(at.Path) == f.DataDir && isDataFile(filepath.Base(at.Path)) && isAccessibleToOthers(at) {
			out = append(out, f.openToOthersFinding(at, "The data in"))
		}
	}
	return out
}

func checkMovedAsideDatabases(f *Facts) []Finding {
	if len(f.MovedAside) == 0 {
		return nil
	}
	var size int64
	for _, at := range f.MovedAside {
		size += at.Size
	}
	return singleFinding(Finding{State: Warn, Subject: f.MovedAside[0].Path, What: fmt.Sprintf("%d files of old databases are in %s, %d KB.", len(f.MovedAside), f.DataDir, size>>10),
		Do: "Remove them if you do not need their records.", Command: "rm " + quotePaths(f.MovedAside)})
}

func checkDatabaseVersion(f *Facts) []Finding {
	path, aside := filepath.Join(f.DataDir, databaseName), filepath.Join(f.DataDir, fmt.Sprintf("version-%d", f.DatabaseFacts.Version))
	return reportIf(f.DatabaseFacts.Version > f.DatabaseFacts.Newest, Finding{State: Bad, Subject: path, What: fmt.Sprintf("The database has version %d. This MCPProxy supports versions up to %d.", f.DatabaseFacts.Version, f.DatabaseFacts.Newest),
		Do:      "Install the newer MCPProxy that wrote it. To continue with this version, without the log and the approvals, stop MCPProxy and move the database away.",
		Command: moveAsideCommand(aside, path)})
}

// moveAsideCommand returns a command that moves a database and its accompanying files into a new directory.
func moveAsideCommand(aside, path string) string {
	return fmt.Sprintf("mkdir -m 700 %s && mv %s* %s/", ops.ShellQuote(aside), ops.ShellQuote(path), ops.ShellQuote(aside))
}

// noDatabaseText is why there is nothing to check before the first start.
const noDatabaseText = "There is no database yet."

// checkDatabasePages reports damaged pages, which may not have been read yet.
func checkDatabasePages(f *Facts) []Finding {
	switch {
	case f.DatabaseDamage == "" && f.PagesExtent == readPart:
		return skippedFinding(fmt.Sprintf("The database could not be read completely within %s.", readTime))
	case f.DatabaseDamage == "" && (f.PagesExtent == readAll || f.Daemon != nil): // a running daemon checks its database after an error
		return nil
	case f.NoDatabase && f.Daemon == nil:
		return skippedFinding(noDatabaseText)
	case f.DatabaseDamage == "":
		return skippedFinding("The doctor reads the whole database only if no daemon runs.")
	}
	path, aside := filepath.Join(f.DataDir, databaseName), filepath.Join(f.DataDir, "damaged-"+f.Now.UTC().Format("20060102-150405"))
	return singleFinding(Finding{State: Bad, Subject: path, What: "The database is damaged: " + f.DatabaseDamage + ".",
		Do: "Restore it from a backup. Without a backup, move it away: MCPProxy creates a new database from the spool. Blocked tools stay blocked. " +
			"Approve again what you approved before.",
		Command: moveAsideCommand(aside, path)})
}

func checkDatabaseReadable(f *Facts) []Finding {
	return reportIf(f.DatabaseErr != "", Finding{State: Bad, Subject: filepath.Join(f.DataDir, databaseName), What: "The database cannot be read: " + f.DatabaseErr + ".",
		Do: "Start MCPProxy: it moves the damaged database away. Blocked tools stay blocked. Approve again what you approved before.", Command: f.cliCommand("serve")})
}
