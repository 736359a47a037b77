package policy

import (
	"os"
	"testing"

	"mcpproxy/internal/testutil/volume"
)

func TestMain(m *testing.M) {
	volume.ConfigureRapid()
	os.Exit(m.Run())
}
