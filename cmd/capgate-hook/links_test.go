package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The hook starts on every tool call, so it links nothing that it does not need.
func TestTheHookLinksNothingItDoesNotNeed(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{else if eq .ImportPath \"net\"}}net{{end}}", ".").Output()
	require.NoError(t, err)
	for _, path := range strings.Fields(string(out)) {
		ok := strings.HasPrefix(path, "github.com/capgate/capgate/") || strings.HasPrefix(path, "go.etcd.io/bbolt") ||
			strings.HasPrefix(path, "golang.org/x/sys/")
		require.True(t, ok, path)
	}
	require.Contains(t, string(out), "go.etcd.io/bbolt")
}
