//go:build unix

package decisionlog

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The state directory may hold anything. Whatever stands in the log's place is an error, at once, for those who read
// and those who write.
func TestOnlyARegularFileIsALog(t *testing.T) {
	for name, place := range map[string]func(path string) error{
		"a FIFO":                    func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"a directory":               func(p string) error { return os.Mkdir(p, 0o700) },
		"a link to an endless file": func(p string) error { return os.Symlink("/dev/zero", p) },
		"a link to a log": func(p string) error {
			if err := os.WriteFile(p+".elsewhere", nil, 0o600); err != nil {
				return err
			}
			return os.Symlink(p+".elsewhere", p)
		},
		"a dangling link": func(p string) error { return os.Symlink(p+".nowhere", p) },
		"a socket": func(p string) error {
			l, err := net.Listen("unix", p)
			if err == nil {
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := os.MkdirTemp("", "log") // a socket's path must be short
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(state)) })
			path := filepath.Join(state, FileName)
			require.NoError(t, place(path))
			if name == "a FIFO" { // a reader would let a writer in
				reader, err := os.OpenFile(path, os.O_RDWR, 0)
				require.NoError(t, err)
				t.Cleanup(func() { _ = reader.Close() })
			}
			done := inBackground(func() {
				_, err := Last(state, 5)
				require.ErrorContains(t, err, "not a regular file")
				_, err = Find(state, "A")
				require.ErrorContains(t, err, "not a regular file")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.ErrorContains(t, Follow(ctx, state, 5, func(Record) error { return nil }), "not a regular file")
				require.ErrorContains(t, Append(state, record("A")), "not a regular file")
			})
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("it hangs")
			}
			require.NoFileExists(t, path+".nowhere")

			// The same in the place of an older file, and in the place of a log that is being followed.
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, Append(state, record("A")))
			require.NoError(t, place(path+".1"))
			_, err = Last(state, 5)
			require.ErrorContains(t, err, "not a regular file")
			got, err := Last(state, 1)
			require.NoError(t, err)
			require.Len(t, got, 1)
			require.NoError(t, os.RemoveAll(path+".1"))
			err = Follow(t.Context(), state, 1, func(Record) error {
				require.NoError(t, os.Remove(path))
				return place(path)
			})
			require.ErrorContains(t, err, "not a regular file")
		})
	}
}

func inBackground(do func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	return done
}
