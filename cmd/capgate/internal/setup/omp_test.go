package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/capgate/client/claude"
	"github.com/capgate/capgate/cmd/capgate/internal/setup/setuptest"
)

func TestMain(m *testing.M) { setuptest.Main(m) }

// Installing again keeps what the extension says, as it does for a settings file.
func TestOMPIsInstalledAgainWithWhatItHad(t *testing.T) {
	p := setuptest.New(t).Install("--client", "omp", "--state", t.TempDir(), "--subagents", "scout", "--admission", "ask")
	out, exit := p.Run("install", "--client", "omp")
	require.Equal(t, 0, exit)
	require.Contains(t, out, "capgate.ts: unchanged")
	path := filepath.Join(p.Home, ".omp", "agent", "capgate.env")
	spec := filepath.Join(p.Home, "spec.json")
	require.NoError(t, os.WriteFile(spec, []byte(`{"subagents":{"a":{}}}`), 0o600))
	out, exit = p.Run("install", "--client", "omp", "--spec", spec)
	require.Equal(t, 0, exit)
	require.Contains(t, out, `taken out: CAPGATE_ALLOWED_SUBAGENTS, which was "scout"`)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "CAPGATE_ALLOWED_SUBAGENTS=")
	require.Contains(t, string(text), "CAPGATE_SPEC="+spec+"\n")
	require.Contains(t, string(text), "CAPGATE_ADMISSION=ask\n")
	require.NotContains(t, string(text), "CAPGATE_DATA_DIR="+p.State+"\n")
	extension, err := os.ReadFile(filepath.Join(p.Home, ".omp", "agent", "extensions", "capgate.ts"))
	require.NoError(t, err)
	require.Contains(t, string(extension), `const ENV_FILE: string = "`+path+`";`)
}

func TestOMPExtensionIsPrintedWithItsHookAndEnvironment(t *testing.T) {
	p := setuptest.New(t)
	out, exit := p.Run("omp", "extension", "--subagents", "scout", "--admission", "ask")
	require.Equal(t, 0, exit)
	require.Contains(t, out, `const HOOK: string = "`+filepath.Join(filepath.Dir(p.Client), hookProgram)+`";`)
	require.Contains(t, out, `"CAPGATE_ALLOWED_SUBAGENTS":"scout"`)
	require.Contains(t, out, `"CAPGATE_DATA_DIR":"`+p.State+`"`)
	require.NotContains(t, out, claude.NoBackground)
	require.NoDirExists(t, p.State, "printing makes nothing")
}
