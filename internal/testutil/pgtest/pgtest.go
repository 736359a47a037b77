//go:build unix

// Package pgtest runs a real PostgreSQL server for tests, and interrupts it.
//
// The server belongs to a test, or to those of a package, in a temporary directory and on a free port of 127.0.0.1. Without an
// installed PostgreSQL the test is skipped, unless CI is true; with -short it is always skipped. Only tests and
// measurements import this package.
package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Server is a PostgreSQL server.
type Server struct {
	bin, dir string
	port     int
	settings []string
	as       *syscall.SysProcAttr
	daemon   *exec.Cmd
	log      bytes.Buffer
	names    atomic.Int64
}

// StartServer starts a server until the test ends. Settings look like "max_connections=10".
func StartServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	skipIfShort(t)
	s, err := newServer(settings)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server has said:\n%s", s.log.Bytes()[max(0, s.log.Len()-4000):])
		}
		s.remove()
	})
	s.failOrSkip(t, err)
	return s
}

// shared is the server of SharedServer.
var shared struct {
	sync.Mutex
	server *Server
	users  int
}

// SharedServer returns a server that the tests of the process share. Each test has its own databases. It is started for
// the first one, and removed when no test uses it.
func SharedServer(t testing.TB) *Server {
	t.Helper()
	skipIfShort(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.users == 0 {
		s, err := newServer([]string{"max_connections=400"})
		if err != nil {
			s.remove()
			s.failOrSkip(t, err)
		}
		shared.server = s
	}
	shared.users++
	t.Cleanup(func() {
		shared.Lock()
		defer shared.Unlock()
		if shared.users--; shared.users == 0 {
			shared.server.remove()
		}
	})
	return shared.server
}

// errNotInstalled means that there is no PostgreSQL on this machine.
var errNotInstalled = errors.New("PostgreSQL is not installed (package postgresql)")

// skipIfShort skips the test with -short: the tests with a server take as long as the tests of all other packages.
func skipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("tests with PostgreSQL do not run with -short")
	}
}

// failOrSkip ends the test if there is an error. Without PostgreSQL it is skipped, unless CI is true.
func (s *Server) failOrSkip(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, errNotInstalled) && os.Getenv("CI") != "true":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
}

// newServer creates a directory with an empty database and starts the server there. If it fails to start, newServer
// returns both the server and the error.
func newServer(settings []string) (*Server, error) {
	s := &Server{settings: settings}
	var err error
	if s.bin, err = findInstallation(); err != nil {
		return s, err
	}
	if s.dir, err = os.MkdirTemp("", "pgtest"); err != nil {
		return s, err
	}
	if err := s.dropRootPrivileges(); err != nil {
		return s, err
	}
	if s.port, err = freePort(); err != nil {
		return s, err
	}
	if out, err := s.command("initdb", "-N", "-D", s.dataDir(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		return s, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return s, s.StartProcess()
}

// remove ends the server and removes its directory.
func (s *Server) remove() {
	s.Kill()
	_ = os.RemoveAll(s.dir)
}

// findInstallation returns the directory of the newest PostgreSQL.
func findInstallation() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(all) == 0 || err != nil {
		return "", errNotInstalled
	}
	slices.Sort(all)
	return filepath.Dir(all[len(all)-1]), nil
}

// dropRootPrivileges runs the server as a user other than root, because PostgreSQL refuses to run as root.
func (s *Server) dropRootPrivileges() error {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	s.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return errors.Join(err1, err2, os.Chown(s.dir, uid, gid), os.Chmod(s.dir, 0o755))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir, c.SysProcAttr = s.dir, s.as
	return c
}

// StartProcess starts the server again, and waits until it answers.
func (s *Server) StartProcess() error {
	args := []string{"-D", s.dataDir(), "-c", "listen_addresses=127.0.0.1", "-c", "port=" + strconv.Itoa(s.port), "-c", "unix_socket_directories=" + s.dir, "-c", "fsync=off"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	s.daemon = s.command("postgres", args...)
	s.daemon.Stdout, s.daemon.Stderr = &s.log, &s.log
	if err := s.daemon.Start(); err != nil {
		return err
	}
	var err error
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if _, err = s.Query("SELECT 1"); err == nil {
			return nil
		}
	}
	return fmt.Errorf("the server does not answer: %w", err)
}

// Kill kills the server and all its connections.
func (s *Server) Kill() {
	if s.daemon == nil {
		return
	}
	// The connection processes end shortly after the main process.
	out, _ := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(s.daemon.Process.Pid)).Output()
	_ = s.daemon.Process.Kill()
	for _, pid := range strings.Fields(string(out)) {
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	_ = s.daemon.Wait()
	s.daemon = nil
}

// Stop shuts the server down cleanly.
func (s *Server) Stop() {
	_ = s.daemon.Process.Signal(syscall.SIGINT)
	_ = s.daemon.Wait()
	s.daemon = nil
}

// Dir returns the directory with all its files.
func (s *Server) Dir() string { return s.dir }

// Address returns host:port of the server.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// CreateDatabase creates a database with its own role, d1 and so on, and returns its URL.
func (s *Server) CreateDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprint("d", s.names.Add(1))
	if out, err := s.run("postgres", "CREATE ROLE "+name+" LOGIN", "CREATE DATABASE "+name+" OWNER "+name); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return "postgres://" + name + ":" + Password + "@" + s.Address() + "/" + name + "?sslmode=disable"
}

// DatabaseName returns the name of the database of a URL from CreateDatabase.
func DatabaseName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(u.Path, "/")
}

// Password is in all URLs. The server does not check it.
const Password = "n0body-kn0ws"

// Query runs statements in the database postgres and returns the output of psql.
func (s *Server) Query(statements string) (string, error) { return s.QueryIn("postgres", statements) }

// QueryIn runs statements in a database.
func (s *Server) QueryIn(database, statements string) (string, error) {
	return s.run(database, statements)
}

// run executes SQL texts in a database, each text in its own transaction.
func (s *Server) run(database string, texts ...string) (string, error) {
	args := []string{"-h", s.dir, "-p", strconv.Itoa(s.port), "-U", "postgres", "-AtX", "-v", "ON_ERROR_STOP=1"}
	for _, text := range texts {
		args = append(args, "-c", text)
	}
	out, err := s.command("psql", append(args, database)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
