package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger/internal/page"
)

func init() {
	for name, role := range probeRoles {
		roles[name] = role
	}
}

// probeRoles are what is done with each damaged file, by a process of its own.
var probeRoles = map[string]func(l *File, args []string) error{
	"guarded":                   func(l *File, args []string) error { return probeRole(l, args, false, false) },
	"unguarded":                 func(l *File, args []string) error { return probeRole(l, args, true, false) },
	"unguarded, without verify": func(l *File, args []string) error { return probeRole(l, args, true, true) },
}

// unguardedVariable holds how many files are to be damaged, each in another way. The measurement takes a while and says
// nothing about the code that ships, so without the variable there is none.
const unguardedVariable = "CAPGATE_UNGUARDED"

// Exit statuses of a probe, which is a process of its own. Anything else is a crash.
const (
	probeSafe     = 0
	probeWrong    = 10
	probeHang     = 11
	probeNoAnswer = 12 // an error of no kind, or of several lines
)

// probeRole damages one copy of a victim, asks it everything once, and ends with one of the statuses above. It prints each
// step that it has done, so that a crash can be told by what came before it.
func probeRole(l *File, args []string, unguarded, decisionsOnly bool) error {
	whole, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var number [3]uint64 // of the damage, of the replayed entry, of the newest
	for i, arg := range args[1:4] {
		if number[i], err = strconv.ParseUint(arg, 10, 64); err != nil {
			return err
		}
	}
	v := &victim{
		File: l, whole: whole, replay: number[1],
		anchor: Anchor{Seq: number[2], Ledger: args[4], Hash: args[5]},
		done:   func(step string) { fmt.Println(step) },
	}
	p, err := page.Open(bytes.NewReader(whole), int64(len(whole)), rules, true)
	if err != nil {
		return err
	}
	v.used = int64(p.Meta().High) * page.Size
	v.unguarded, v.decisionsOnly = unguarded, decisionsOnly
	_, wrong := v.probe(v.mutate(rand.New(rand.NewPCG(0, number[0]))))
	status := probeNoAnswer
	switch {
	case wrong == nil:
		status = probeSafe
	case errors.Is(wrong, errWrongAnswer):
		status = probeWrong
	case errors.Is(wrong, errTooLong):
		status = probeHang
	}
	if wrong != nil {
		fmt.Fprintln(os.Stderr, strings.ReplaceAll(wrong.Error(), "\n", "; "))
	}
	os.Exit(status)
	return nil
}

// tally counts what became of damaged files.
type tally struct {
	mu                                 sync.Mutex
	safe, crashes, hangs, wrong, other int
}

// add runs one probe with a time limit, and returns a line about it where it was not safe.
func (c *tally) add(t *testing.T, path, role string, args ...string) string {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{path}, args...)...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	steps := strings.Split(strings.TrimSpace(out.String()), "\n")
	first, _, _ := strings.Cut(said.String(), "\n")
	after := "after " + strconv.Quote(steps[len(steps)-1])
	c.mu.Lock()
	defer c.mu.Unlock()
	switch status := cmd.ProcessState.ExitCode(); {
	case ctx.Err() != nil:
		c.hangs++
		return "hang, " + after + ": ended by the time limit"
	case err == nil:
		c.safe++
		return ""
	case status == probeWrong:
		c.wrong++
		return "wrong, " + first
	case status == probeHang:
		c.hangs++
		return "hang, " + first
	case status == probeNoAnswer:
		c.other++
		return "unusable error, " + first
	}
	c.crashes++
	return "crash, " + after + ": " + first
}

func (c *tally) String() string {
	return fmt.Sprintf("%d crashes, %d hangs, %d wrong answers, %d unusable errors, %d safe", c.crashes, c.hangs, c.wrong, c.other, c.safe)
}

// The evidence for docs/decisions/0007: what bbolt makes of damaged files when their pages are not checked first, and what
// becomes of the same files when they are. Faults and panics of the transaction itself are recovered both times, and seals,
// hashes and anchors are checked both times.
func TestDamageIsFatalOrWrongWithoutTheGuard(t *testing.T) {
	files, err := strconv.Atoi(os.Getenv(unguardedVariable))
	if err != nil {
		t.Skip("set " + unguardedVariable + "=1200 to measure with so many damaged files")
	}
	v := mustVictim(t)
	whole := filepath.Join(t.TempDir(), "whole.db")
	require.NoError(t, os.WriteFile(whole, v.whole, 0o600))

	counts := map[string]*tally{}
	for role := range probeRoles {
		counts[role] = &tally{}
	}
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range 2 {
		dir := t.TempDir()
		workers.Go(func() {
			for n := range numbers {
				for role, count := range counts {
					line := count.add(t, filepath.Join(dir, role+".db"), role, whole, strconv.Itoa(n), strconv.FormatUint(v.replay, 10),
						strconv.FormatUint(v.anchor.Seq, 10), v.anchor.Ledger, v.anchor.Hash)
					if line != "" {
						t.Logf("%s, file %d: %s", role, n, line)
					}
				}
			}
		})
	}
	for n := range files {
		numbers <- n
	}
	close(numbers)
	workers.Wait()

	for role, count := range counts {
		t.Logf("%s, %d damaged files: %s", role, files, count)
	}
	require.Equal(t, files, counts["guarded"].safe)
	require.Less(t, counts["unguarded"].safe, files, "nothing went wrong without the guard: is it needed?")
}
