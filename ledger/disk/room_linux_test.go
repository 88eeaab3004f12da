package disk

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What there is room for is taken without a reader, by either thing that clients use.
func TestWhatThereIsRoomForIsTakenWithoutAReader(t *testing.T) {
	// What the system lets anybody have; a pipe of the first size is everybody's, too.
	most := map[string]int{"pipe": setting(t, "fs/pipe-max-size"), "socket": setting(t, "net/core/wmem_max")}
	for name, open := range map[string]func() (ends [2]int, err error){
		"pipe": func() (ends [2]int, err error) {
			err = syscall.Pipe(ends[:])
			ends[0], ends[1] = ends[1], ends[0]
			return ends, err
		},
		"socket": func() ([2]int, error) { return syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0) },
	} {
		for _, n := range []int{1, atomicWrite, 64 << 10, 64<<10 + 1, 200_000, 1 << 20, 1<<20 + 100, 64 << 20} {
			ends, err := open()
			require.NoError(t, err)
			d := Descriptor(ends[0])
			room := d.Room(n)
			if n <= 64<<10 || n <= most[name] {
				require.True(t, room, "%s, %d", name, n)
			}
			if n == 64<<20 {
				require.False(t, room, "%s, %d", name, n)
			}
			if room {
				done := make(chan error, 1)
				go func() {
					_, err := d.Write(make([]byte, n))
					done <- err
				}()
				select {
				case err := <-done:
					require.NoError(t, err)
				case <-time.After(20 * time.Second):
					t.Errorf("%s: %d bytes were not taken", name, n)
				}
			}
			t.Logf("%s, %d bytes: %v", name, n, room)
			require.NoError(t, syscall.Close(ends[1]))
			require.NoError(t, syscall.Close(ends[0]))
		}
	}
}

// setting reads a number of the kernel's, 0 where there is none.
func setting(t *testing.T, name string) (n int) {
	text, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		t.Log(err)
		return 0
	}
	_, err = fmt.Sscan(string(text), &n)
	require.NoError(t, err)
	return n
}

func TestAFileHasRoom(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/f")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	require.True(t, Descriptor(f.Fd()).Room(64<<20))
}
