package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// allowedModules are the third-party modules that the program uses, each with the reason.
var allowedModules = map[string]string{
	"filippo.io/age":                                    "seals logins and secrets in a file where no system keyring is available",
	"mvdan.cc/sh/v3":                                    "the syntax of shell lines, whose commands decide what a call does",
	"github.com/zalando/go-keyring":                     "logins and secrets in the keyring of the system",
	"charm.land/lipgloss/v2":                            "tables in the terminal whose columns are right for wide characters and colours",
	"github.com/elastic/go-seccomp-bpf":                 "the filter of system calls of a sandboxed server",
	"github.com/landlock-lsm/go-landlock":               "the files and sockets of a sandboxed server",
	"golang.org/x/net":                                  "assembles that filter (bpf)",
	"github.com/fsnotify/fsnotify":                      "a saved configuration is applied at once",
	"github.com/gen2brain/beeep":                        "notifications on the desktop of macOS and Windows",
	"github.com/godbus/dbus/v5":                         "notifications on the desktop of Linux",
	"github.com/goccy/go-yaml":                          "the files of clients that write YAML; an oracle for what the command line writes",
	"github.com/google/go-cmp":                          "tests: differences that can be read",
	"github.com/vektah/gqlparser/v2":                    "the syntax of GraphQL, whose operations and fields decide what a call does",
	"github.com/kljensen/snowball":                      "stems of words, pinned, since they decide the order of results",
	"github.com/modelcontextprotocol/go-sdk":            "tests: the oracle, and servers nobody here wrote",
	"github.com/jackc/pgx/v5":                           "PostgreSQL: its connections alone (pgconn)",
	"github.com/pressly/goose/v3":                       "migrations of the database",
	"github.com/pelletier/go-toml/v2":                   "the files of clients that write TOML, with places",
	"github.com/rogpeppe/go-internal":                   "tests: stories as scripts, files in one text",
	"github.com/santhosh-tekuri/jsonschema/v6":          "JSON Schema, all mistakes with their paths",
	"github.com/spf13/cobra":                            "commands, help and completion",
	"github.com/spf13/pflag":                            "the flags of cobra's commands",
	"github.com/tailscale/hujson":                       "JSON with comments, edited without losing them",
	"github.com/prometheus/client_golang":               "the metrics, in the form that Prometheus reads",
	"github.com/prometheus/client_model":                "the metrics as they are gathered, to send them over OTLP",
	"go.opentelemetry.io/otel":                          "the context and the attributes of traces",
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace": "spans as OTLP has them",
	"go.opentelemetry.io/otel/sdk":                      "spans in batches, with a bound",
	"go.opentelemetry.io/otel/trace":                    "the interface of traces",
	"go.opentelemetry.io/proto/otlp":                    "the messages of OTLP",
	"google.golang.org/protobuf":                        "the encoding of OTLP",
	"github.com/zitadel/oidc/v3":                        "tests: an authorization server that others wrote",
	"go.uber.org/goleak":                                "tests: no goroutine is left behind",
	"golang.org/x/crypto":                               "argon2id, which seals the key of a passphrase",
	"golang.org/x/crypto/x509roots/fallback":            "packaging: the certificates of authorities in the container's root file system",
	"golang.org/x/sync":                                 "weighted semaphores for the bounds on concurrent calls and on large messages, one renewal of a login for all who wait",
	"golang.org/x/sys":                                  "file locks and process groups of each system",
	"golang.org/x/term":                                 "whether and how wide a terminal is",
	"github.com/itchyny/gojq":                           "tests: another implementation of jq, the oracle of selections",
	"github.com/wasilibs/go-pgquery":                    "tests: PostgreSQL's own parser, the oracle of what SQL does",
	"golang.org/x/text":                                 "folding and normal forms of Unicode",
	"modernc.org/sqlite":                                "the database, without cgo",
	"github.com/go-webauthn/webauthn":                   "tests: another implementation of WebAuthn, the oracle of passkeys",
	"pgregory.net/rapid":                                "tests: properties over drawn inputs",
}

// directRequirements returns the direct requirements of go.mod.
func directRequirements(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "require ")
		fields := strings.Fields(line)
		if len(fields) == 2 && strings.HasPrefix(fields[1], "v") { // not "// indirect"
			modules = append(modules, fields[0])
		}
	}
	if len(modules) == 0 {
		t.Fatal("no requirements found in go.mod")
	}
	return modules
}

func TestModulesHaveReasons(t *testing.T) {
	for _, m := range directRequirements(t) {
		if allowedModules[m] == "" {
			t.Errorf("go.mod requires %s: say in the list of allowed modules why, or do without it", m)
		}
	}
}

// TestNoReplaceDirectives: a build must not depend on a directory or a fork.
func TestNoReplaceDirectives(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod: %s", strings.TrimSpace(line))
		}
	}
}
