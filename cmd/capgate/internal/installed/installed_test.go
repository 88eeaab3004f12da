package installed

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A project, whoever made it, must not keep an operator's commands from running there: what is no regular file is left out.
func TestWhatIsNoRegularFileIsLeftOut(t *testing.T) {
	home, project, plugin := t.TempDir(), t.TempDir(), t.TempDir()
	lookup := func(name string) (string, bool) {
		home, ok := map[string]string{"HOME": home, "USERPROFILE": home}[name]
		return home, ok
	}
	plugins := filepath.Join(home, ".claude", "plugins", "installed_plugins.json")
	for _, path := range []string{
		filepath.Join(home, ".claude", "settings.json"),
		filepath.Join(project, ".claude", "settings.json"),
		filepath.Join(project, ".claude", "settings.local.json"),
		plugins,
		filepath.Join(plugin, "hooks", "hooks.json"),
		filepath.Join(home, ".omp", "agent", "extensions", "capgate.ts"),
		filepath.Join(project, ".omp", "extensions", "capgate.ts"),
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			if path != plugins {
				require.NoError(t, os.MkdirAll(filepath.Dir(plugins), 0o700))
				list := `{"plugins":{"capgate@market":[{"installPath":"` + filepath.ToSlash(plugin) + `"}]}}`
				require.NoError(t, os.WriteFile(plugins, []byte(list), 0o600))
				defer os.Remove(plugins)
			}
			require.NoError(t, exec.Command("mkfifo", path).Run())
			defer os.Remove(path)
			listed := make(chan []Entry, 1)
			go func() { listed <- List(lookup, project) }()
			select {
			case entries := <-listed:
				require.Empty(t, entries)
			case <-time.After(10 * time.Second):
				require.Fail(t, "it waits for somebody to write there")
			}
		})
	}
}
