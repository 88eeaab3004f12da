//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger/disk"
)

func init() {
	roles["hold"] = holdRole
	roles["small"] = smallRole
	roles["begin"] = beginRole
	roles["cramped"] = crampedRole
	roles["loop"] = loopRole
}

// holdRole takes the lock of the ledger and keeps it.
func holdRole(l *File, _ []string) error {
	f, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := disk.Lock(f, disk.Exclusive); err != nil {
		return err
	}
	fmt.Println("held")
	time.Sleep(time.Minute)
	return nil
}

// smallRole records turns while files may not grow beyond a size.
func smallRole(l *File, args []string) error {
	most, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	return cramped(most, func() error { return turnsRole(l, args) })
}

// crampedRole begins a turn while files may not grow at all.
func crampedRole(l *File, args []string) error {
	return cramped(0, func() error { return beginRole(l, args) })
}

// cramped does something while files may not grow beyond a size.
func cramped(most uint64, do func() error) error {
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: before.Max}); err != nil {
		return err
	}
	// The process writes its coverage when it ends, and would fail for the same reason.
	return errors.Join(do(), syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
}

// beginRole begins a turn, says so, and lives on.
func beginRole(l *File, args []string) error {
	r, err := l.BeginTurn(context.Background(), args[0], args[1], args[2])
	if err != nil {
		return err
	}
	fmt.Println(r.Seq, r.Replayed)
	time.Sleep(time.Minute)
	return nil
}

// loopRole is a loop of a dimension of its own: it begins turns, and ends every third itself, until it is refused.
func loopRole(l *File, args []string) error {
	for i := 0; ; i++ {
		key := fmt.Sprint(args[1], "-", i)
		r, err := l.BeginTurn(context.Background(), args[0], args[1], key)
		if errors.Is(err, ErrBudgetSpent) {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println(r.Seq)
		if i%3 > 0 {
			continue
		}
		if r, err = l.EndTurn(context.Background(), args[0], args[1], key); err != nil || r.Replayed {
			return fmt.Errorf("a turn that it began is not ended: %w", err)
		}
	}
}

func TestATurnGoesOnInAnotherProcessAfterKill9(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 2, 1)
	for range scaled(10) {
		c := start(t, l.path, "begin", "r", "a", "k")
		require.True(t, c.out.Scan(), c.err)
		require.Contains(t, []string{"2 false", "2 true"}, c.out.Text(), "whoever comes later goes on inside the same turn")
		require.NoError(t, c.Process.Kill())
		c.Wait()
		require.Equal(t, Budget{Run: "r", Used: 1, Open: 1, Limit: 2}, mustBudget(t, l, "r").counts())
	}
	r, err := l.EndTurn(context.Background(), "r", "a", "k")
	require.NoError(t, err)
	require.EqualValues(t, 2, r.Ends)
	c := start(t, l.path, "begin", "r", "a", "k")
	require.False(t, c.out.Scan())
	require.Error(t, c.Wait())
	require.Contains(t, c.err.String(), ErrTurnOver.Error())
	require.Equal(t, Budget{Run: "r", Used: 1, Limit: 2}, mustBudget(t, l, "r").counts())
}

func TestLoopsOfManyProcessesShareALimitExactly(t *testing.T) {
	l := newLedger(t)
	limit := scaled(300)
	mustOpen(t, l, "r", int64(limit), 8)
	_, err := l.RecordTurn(context.Background(), "r", "filler", "")
	require.NoError(t, err)
	fill(t, l, "r", 7*limit-1) // turns without a dimension leave that many to the loops
	var children []*child
	for d := range 7 {
		children = append(children, start(t, l.path, "loop", "r", fmt.Sprint(d)))
	}
	begun := map[string]bool{}
	for _, c := range children {
		for _, line := range c.finish(t) {
			require.False(t, begun[line], "entry %s was acknowledged twice", line)
			begun[line] = true
		}
	}
	require.Len(t, begun, limit)
	require.Equal(t, Budget{Run: "r", Used: int64(8 * limit), Limit: int64(8 * limit)}, mustBudget(t, l, "r").counts(), "each refusal ended a turn")
}

func TestProcessesShareALimitOf500Exactly(t *testing.T) {
	l := newLedger(t)
	limit := scaled(500)
	mustOpen(t, l, "r", int64(limit), 1)
	var children []*child
	for range 24 {
		children = append(children, start(t, l.path, "turns", "r"))
	}
	var seqs []int
	for _, c := range children {
		for _, line := range c.finish(t) {
			seq, err := strconv.Atoi(line)
			require.NoError(t, err)
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	require.Len(t, seqs, limit)
	for i, seq := range seqs {
		require.Equal(t, i+2, seq, "acknowledged sequences have a gap or a double")
	}
	require.Equal(t, Budget{Run: "r", Used: int64(limit), Limit: int64(limit)}, mustBudget(t, l, "r").counts())
}

func TestReadersBesideBusyWritersAlwaysSeeARightCount(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 1_000_000, 1)
	for range 4 {
		start(t, l.path, "turns", "r")
	}
	type reader struct {
		*child
		floor int64 // acknowledged before it started
	}
	var readers []reader
	for range 8 {
		floor := mustBudget(t, l, "r").Used
		readers = append(readers, reader{start(t, l.path, "budget", "r", strconv.Itoa(scaled(100))), floor})
	}
	var slowest int64
	for _, c := range readers {
		before := c.floor
		for _, line := range c.finish(t) {
			var used, micros int64
			_, err := fmt.Sscan(line, &used, &micros)
			require.NoError(t, err)
			require.GreaterOrEqual(t, used, before, "a count went back")
			before, slowest = used, max(slowest, micros)
		}
		require.LessOrEqual(t, before, mustBudget(t, l, "r").Used)
	}
	t.Logf("slowest of %d reads: %d µs", 8*scaled(100), slowest)
}

func TestAcknowledgedTurnsSurviveKill9(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 1_000_000, 1)
	kills := scaled(100)
	acknowledged := map[string]bool{}
	for k := 0; k < kills; k += 4 {
		var children []*child
		for range min(4, kills-k) {
			children = append(children, start(t, l.path, "turns", "r"))
		}
		for i, c := range children {
			// The first lines prove that it is at work; the rest is read after the kill.
			for range 1 + (k+i)%5 {
				require.True(t, c.out.Scan(), c.err)
				acknowledged[c.out.Text()] = true
			}
			require.NoError(t, c.Process.Kill())
			for _, line := range c.lines() {
				acknowledged[line] = true
			}
			c.Wait()
		}
	}
	there := map[string]bool{}
	require.NoError(t, l.Entries(context.Background(), 2, func(r Receipt, _ []byte) error {
		there[fmt.Sprint(r.Seq)] = true
		return nil
	}))
	for seq := range acknowledged {
		require.True(t, there[seq], "turn %s was acknowledged and is not there", seq)
	}
	require.EqualValues(t, len(there), mustBudget(t, l, "r").Used)
	t.Logf("%d kills, %d turns acknowledged, %d there", kills, len(acknowledged), len(there))
}

func TestALockHeldTooLongIsBusyAndFreeAfterKill9(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 10, 1)
	holder := start(t, l.path, "hold")
	require.True(t, holder.out.Scan(), holder.err)

	for name, call := range map[string]func(context.Context) error{
		"read":  func(ctx context.Context) error { _, err := l.Budget(ctx, "r", nil); return err },
		"write": func(ctx context.Context) error { _, err := l.RecordTurn(ctx, "r", "", ""); return err },
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		began := time.Now()
		err := call(ctx)
		cancel()
		require.ErrorIs(t, err, ErrBusy, name)
		took := time.Since(began)
		require.GreaterOrEqual(t, took, 290*time.Millisecond, name)
		require.Less(t, took, 5*time.Second, name)
		if took > 400*time.Millisecond {
			t.Logf("%s: slow, %v", name, took)
		}
	}

	// Whoever waits when the holder dies goes on at once.
	waiting := make(chan error, 1)
	go func() {
		_, err := l.RecordTurn(context.Background(), "r", "", "")
		waiting <- err
	}()
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, holder.Process.Kill())
	died := time.Now()
	require.NoError(t, <-waiting)
	t.Logf("a waiter went on %v after the kill", time.Since(died))
	require.EqualValues(t, 1, mustBudget(t, l, "r").Used, "an abandoned call must not record later")
}

func TestAbandonedWaitsDoNotPileUpThreads(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 10, 1)
	holder := start(t, l.path, "hold")
	require.True(t, holder.out.Scan(), holder.err)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	var wrong atomic.Int32
	done := make(chan struct{})
	for range 50 {
		go func() {
			if _, err := l.Budget(ctx, "r", nil); !errors.Is(err, ErrBusy) {
				wrong.Add(1)
			}
			done <- struct{}{}
		}()
	}
	for range 50 {
		<-done
	}
	require.Zero(t, wrong.Load())
	require.Len(t, l.gate, 1, "one call waits in the kernel, the others on a channel")
	require.NoError(t, holder.Process.Kill())
	mustBudget(t, l, "r")
	require.Eventually(t, func() bool { return len(l.gate) == 0 }, 5*time.Second, time.Millisecond)
}

func TestRacingCreatorsMakeOneLedger(t *testing.T) {
	for range scaled(5) {
		l := newLedger(t)
		var children []*child
		for i := range 16 {
			children = append(children, start(t, l.path, "open", fmt.Sprint("run-", i)))
		}
		ids, seqs := map[string]bool{}, map[string]bool{}
		for _, c := range children {
			lines := c.finish(t)
			require.Len(t, lines, 1)
			id, seq, _ := strings.Cut(lines[0], " ")
			ids[id], seqs[seq] = true, true
		}
		require.Len(t, ids, 1)
		require.Len(t, seqs, 16)
		leftovers(t, l)
	}
}

func TestAFullDiskIsNotRecordedAndHarmsNothing(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 1_000_000, 1)
	mustTurn(t, l, "r", "", "")
	for _, size := range []int{0, 4096, 20000, 32768, 65536, 100_000} {
		c := start(t, l.path, "small", "r", strconv.Itoa(size))
		acknowledged := len(c.lines())
		before := mustBudget(t, l, "r").Used
		require.Error(t, c.Wait())
		require.Contains(t, c.err.String(), ErrNotRecorded.Error())
		require.NotContains(t, c.err.String(), "\n\n")
		requireSound(t, l)
		require.LessOrEqual(t, int64(acknowledged), before)
		mustTurn(t, l, "r", "", "")
		require.Equal(t, before+1, mustBudget(t, l, "r").Used)
		t.Logf("limit of %d bytes: %d recorded, then: %s", size, acknowledged, strings.TrimSpace(c.err.String()))
	}
}

func TestARefusalWhoseEndCannotBeWrittenIsNotRecorded(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 1, 1)
	mustBegin(t, l, "r", "a", "k")
	c := start(t, l.path, "cramped", "r", "a", "next")
	require.Empty(t, c.lines())
	require.Error(t, c.Wait())
	require.Contains(t, c.err.String(), ErrNotRecorded.Error())
	require.NotContains(t, c.err.String(), ErrBudgetSpent.Error(), "the turn is not over yet")
	require.Equal(t, Budget{Run: "r", Used: 1, Open: 1, Limit: 1}, mustBudget(t, l, "r").counts())
}

func TestLedgerInADirectoryThatCannotBeWrittenIsReadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root ignores modes: only the missing lock file is tested")
	}
	l := newLedger(t)
	mustOpen(t, l, "r", 4, 1)
	lock := strings.TrimSuffix(l.path, ".db") + ".lock"
	require.NoError(t, os.Remove(lock))
	dir := l.path[:strings.LastIndex(l.path, "/")]
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	require.Zero(t, mustBudget(t, l, "r").Used)
	require.NoError(t, os.Chmod(dir, 0o700))
	mustTurn(t, l, "r", "", "")
	require.FileExists(t, lock, "a lock file that was deleted comes back")
	require.NoError(t, os.Remove(lock))
	require.NoError(t, os.Mkdir(lock, 0o700))
	mustTurn(t, l, "r", "", "")
}

func TestALedgerReplacedWhileWaitingIsNotWrittenTo(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 4, 1)
	old, err := os.ReadFile(l.path)
	require.NoError(t, err)
	holder := start(t, l.path, "hold")
	require.True(t, holder.out.Scan(), holder.err)
	waiting := make(chan error, 1)
	go func() {
		_, err := l.RecordTurn(context.Background(), "r", "", "")
		waiting <- err
	}()
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, os.WriteFile(l.path+".copy", old, 0o600))
	require.NoError(t, os.Rename(l.path+".copy", l.path))
	require.NoError(t, holder.Process.Kill())
	require.NoError(t, <-waiting)
	require.EqualValues(t, 1, mustBudget(t, l, "r").Used)
}

func TestThingsThatAreNotFilesAreErrorsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		want error
		says string
	}{
		"FIFO":           {func(p string) error { return syscall.Mkfifo(p, 0o600) }, ErrCorrupt, "it is a FIFO, not a file; "},
		"directory":      {func(p string) error { return os.Mkdir(p, 0o700) }, ErrCorrupt, "it is a directory, not a file; "},
		"device":         {func(p string) error { return os.Symlink("/dev/null", p) }, ErrCorrupt, "it is a device, not a file; "},
		"dangling link":  {func(p string) error { return os.Symlink("nowhere", p) }, ErrMissing, "a symbolic link to a file that does not exist; "},
		"link to itself": {func(p string) error { return os.Symlink(p, p) }, syscall.ELOOP, "check the path"},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewFile(t.TempDir()+"/ledger.db", Options{})
			require.NoError(t, c.make(l.path))
			began := time.Now()
			for method, err := range everyMethod(l) {
				require.ErrorIs(t, err, c.want, method)
				require.ErrorContains(t, err, c.says, method)
				require.NotContains(t, err.Error(), "free space", method)
			}
			require.Less(t, time.Since(began), 5*time.Second)
		})
	}
}
