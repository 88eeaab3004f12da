package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/capgate/capgate/ledger/disk"
	"github.com/capgate/capgate/ledger/internal/page"
)

// DefaultTimeout bounds each transaction whose context has no deadline.
const DefaultTimeout = 10 * time.Second

// stuckAfter is how long a few reads may take on a slow or crowded machine before the file is to blame.
const stuckAfter = time.Second

// mode says what a transaction does.
type mode int

const (
	reading mode = iota // a few gets: cannot take long
	walking             // reads as much as there is
	writing
)

// Phases of a session. The caller takes it away (abandoned) at the deadline; a session that was taken away stops
// before it goes on to the next phase, so nothing is committed after the caller was told that nothing was written.
const (
	phaseWaiting int32 = iota
	phaseWorking
	phaseCommitting
	phaseAbandoned
)

// errAbandoned ends a session that nobody waits for any more.
var errAbandoned = errors.New("abandoned")

// session is one opening of the file, for one transaction. It runs in a goroutine of its own, because neither a wait
// for a flock nor a read from a stuck disk can be interrupted: at the deadline its caller leaves it behind.
type session struct {
	ledger  *File
	mode    mode
	phase   atomic.Int32
	working atomic.Int64 // when the lock was won, in nanoseconds
	file    *os.File
	gate    bool
}

// bounded gives a context a deadline if it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, DefaultTimeout)
}

type outcome[T any] struct {
	value T
	err   error
}

// transact runs do in a transaction and returns its result. An error rolls back; so does a transaction that appended
// nothing.
func transact[T any](ctx context.Context, l *File, m mode, do func(context.Context, *tx) (T, error)) (T, error) {
	if ctx.Err() != nil {
		var zero T
		return zero, fmt.Errorf("%w (%w)", busy("there was no time left"), ctx.Err())
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	start := time.Now()
	s := &session{ledger: l, mode: m}
	done := make(chan outcome[T], 1)
	go func() {
		value, err := run(ctx, s, do)
		done <- outcome[T]{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	phase := s.phase.Swap(phaseAbandoned)
	select {
	case o := <-done: // it had just finished
		return o.value, o.err
	default:
	}
	var zero T
	return zero, s.late(ctx, phase, start)
}

// late says what the deadline interrupted.
func (s *session) late(ctx context.Context, phase int32, start time.Time) error {
	worked := time.Duration(time.Now().UnixNano() - s.working.Load())
	switch {
	case phase == phaseCommitting:
		return fmt.Errorf("%w: the flush was not done at the deadline (%w); count the entry as open", ErrNotRecorded, ctx.Err())
	case phase == phaseWaiting:
		return fmt.Errorf("%w (%w)", busy("the lock was not free before the deadline"), ctx.Err())
	case s.mode == walking:
		return fmt.Errorf("%w (%w)", busy("reading all of it was not done before the deadline"), ctx.Err())
	case worked < stuckAfter || worked < time.Since(start)/2 || !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w (%w)", busy("there was too little time after the lock"), ctx.Err())
	}
	return corrupt("a few reads did not end in %v", worked.Round(time.Millisecond))
}

// run does the work of a session. Whatever happens, no descriptor and so no lock outlives it.
func run[T any](ctx context.Context, s *session, do func(context.Context, *tx) (T, error)) (value T, err error) {
	// A fault in the mapped file, as a truncation by another program makes one, becomes a panic of this goroutine.
	debug.SetPanicOnFault(true)
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(p)
		}
		s.leaveGate()
		// After a panic bbolt still holds its own mutexes and cannot be asked to close. Its mapping stays, and keeps
		// the open file alive, so closing the descriptor is not enough: the lock must be given back by name. After a
		// proper close both do nothing.
		if s.file != nil {
			_ = disk.Unlock(s.file)
			s.file.Close()
		}
	}()
	db, g, err := s.open(ctx)
	if err != nil {
		return value, err
	}
	value, err = inTx(ctx, s, db, g, do)
	db.Close() // an entry is durable by now, or has failed
	return value, err
}

func inTx[T any](ctx context.Context, s *session, db *bbolt.DB, g guard, do func(context.Context, *tx) (T, error)) (value T, err error) {
	var zero T
	bolt, err := db.Begin(s.mode == writing)
	if err != nil {
		return zero, s.classify(err)
	}
	t, err := newTx(bolt, g, s.ledger.now)
	if err == nil {
		if s.ledger.saw != nil {
			s.ledger.saw(t.head.seq)
		}
		value, err = do(ctx, t)
	}
	if err != nil || !t.dirty {
		if rollback := bolt.Rollback(); err == nil && rollback != nil {
			err = s.classify(rollback)
		}
		if err == nil && t.replays {
			err = s.flush(db)
		}
		if err != nil {
			return zero, err
		}
		return value, nil
	}
	if !s.phase.CompareAndSwap(phaseWorking, phaseCommitting) {
		bolt.Rollback()
		return zero, errAbandoned
	}
	if err := bolt.Commit(); err != nil {
		return zero, notRecorded(err)
	}
	return value, t.refusal
}

// flush makes durable what an earlier process wrote: it may have been killed between its last write and the flush, and
// a receipt of that must not be given before.
func (s *session) flush(db *bbolt.DB) error {
	if !s.phase.CompareAndSwap(phaseWorking, phaseCommitting) {
		return errAbandoned
	}
	if err := s.ledger.sync(db); err != nil {
		return notRecorded(err)
	}
	return nil
}

// open takes the locks, in the order that the package comment gives, checks the file and hands it to bbolt.
func (s *session) open(ctx context.Context) (*bbolt.DB, guard, error) {
	if err := s.enter(ctx); err != nil {
		return nil, guard{}, err
	}
	for {
		err := s.lock()
		if err == nil {
			break
		}
		if !errors.Is(err, errReplaced) {
			return nil, guard{}, err
		}
		if ctx.Err() != nil {
			return nil, guard{}, busy("the file was replaced again and again")
		}
	}
	s.working.Store(time.Now().UnixNano())
	if !s.phase.CompareAndSwap(phaseWaiting, phaseWorking) {
		return nil, guard{}, errAbandoned
	}
	s.leaveGate()
	if !disk.HasFlock {
		db, err := s.openBolt(ctx)
		if err != nil {
			return nil, guard{}, err
		}
		g, err := s.guard()
		if err != nil {
			db.Close()
		}
		return db, g, err
	}
	g, err := s.guard()
	if err != nil {
		return nil, guard{}, err
	}
	db, err := s.openBolt(ctx)
	return db, g, err
}

func (s *session) openBolt(ctx context.Context) (*bbolt.DB, error) {
	timeout := time.Nanosecond // the lock is held already
	if deadline, ok := ctx.Deadline(); ok && !disk.HasFlock {
		timeout = max(time.Until(deadline), timeout)
	}
	db, err := bbolt.Open(s.ledger.path, 0o600, &bbolt.Options{
		ReadOnly:     s.mode != writing,
		Timeout:      timeout,
		PageSize:     page.Size,
		NoStatistics: true,
		OpenFile:     func(string, int, os.FileMode) (*os.File, error) { return s.file, nil },
	})
	if err != nil {
		return nil, s.classify(err)
	}
	return db, nil
}

// guard checks the parts of the file that every transaction uses.
func (s *session) guard() (guard, error) {
	if s.ledger.unguarded {
		return guard{off: true}, nil
	}
	info, err := s.file.Stat()
	if err != nil {
		return guard{}, s.classify(err)
	}
	return newGuard(s.file, info.Size(), s.mode)
}

// enter waits for the one place per [File] that may wait in the kernel, so that callers without luck pile up on a
// channel and not in blocked threads.
func (s *session) enter(ctx context.Context) error {
	select {
	case s.ledger.gate <- struct{}{}:
		s.gate = true
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", busy("other calls of this process were first"), ctx.Err())
	}
}

func (s *session) leaveGate() {
	if s.gate {
		s.gate = false
		<-s.ledger.gate
	}
}

// errReplaced: while the lock was waited for, another file took the ledger's name.
var errReplaced = errors.New("replaced")

// lock opens the file and locks it, queueing at the turnstile.
func (s *session) lock() error {
	turnstile, err := s.ledger.turnstile()
	if err != nil {
		return err
	}
	if turnstile != nil {
		defer turnstile.Close()
		if err := lockFile(turnstile, disk.Exclusive); err != nil {
			return s.classify(err)
		}
	}
	flags := os.O_RDONLY
	if s.mode == writing {
		flags = os.O_RDWR
	}
	f, err := os.OpenFile(s.ledger.path, flags|disk.Nonblock, 0)
	if err != nil {
		return s.classify(err)
	}
	s.file = f
	info, err := f.Stat()
	if err != nil {
		return s.classify(err)
	}
	if !info.Mode().IsRegular() {
		return notAFile(disk.KindName(info.Mode()))
	}
	m := disk.Shared
	if s.mode == writing {
		m = disk.Exclusive
	}
	if err := lockFile(f, m); err != nil {
		return s.classify(err)
	}
	named, err := os.Stat(s.ledger.path)
	if err != nil {
		return s.classify(err)
	}
	if !os.SameFile(info, named) {
		f.Close()
		s.file = nil
		return errReplaced
	}
	return nil
}

// lockFile waits in the kernel's queue, where the system has one; elsewhere bbolt's own lock has to do. The lock is taken
// before bbolt opens the file, and bbolt's own attempt on the same descriptor succeeds at once: bbolt alone would poll
// every 50 ms, which starves readers beside busy writers.
func lockFile(f *os.File, m disk.Mode) error {
	if !disk.HasFlock {
		return nil
	}
	return disk.Lock(f, m)
}

// turnstile opens the lock file, which is created beside a ledger, never without one. A directory that cannot be
// written is no reason to refuse: the turnstile gives fairness, integrity rests on the ledger's own lock.
func (l *File) turnstile() (*os.File, error) {
	name := l.turnstileName()
	f, err := os.OpenFile(name, os.O_RDONLY|disk.Nonblock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(l.path); errors.Is(err, fs.ErrNotExist) {
			return nil, l.missing()
		}
		f, _, err = disk.OpenRegular(name, os.O_RDONLY|os.O_CREATE)
	}
	if err != nil {
		return nil, nil
	}
	return f, nil
}

// turnstileName is never the ledger's own name, also where a file system does not tell upper from lower case: whoever
// holds a turnstile must not wait for it.
func (l *File) turnstileName() string { return beside(l.path, ".lock") }

// beside returns the name of a ledger's companion: the ledger's, its extension replaced or, where it is this one, appended.
func beside(path, extension string) string {
	ext := filepath.Ext(path)
	if strings.EqualFold(ext, extension) {
		ext = ""
	}
	return strings.TrimSuffix(path, ext) + extension
}

// Files returns the names of the files that belong to a ledger at a path, the ledger's own first. Not all of them need exist.
func Files(path string) []string { return []string{path, beside(path, ".lock"), beside(path, ".head")} }

// classify gives an error of the system or of bbolt the sentinel that callers branch on.
func (s *session) classify(err error) error {
	switch {
	case known(err):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return s.ledger.missing()
	case errors.Is(err, syscall.EISDIR): // where it is opened for writing
		return notAFile("a directory")
	case errors.Is(err, berrors.ErrTimeout):
		return busy("the lock was not free before the deadline")
	case !refusedBySystem(err):
		return corrupt("%v", err)
	case s.mode == writing:
		return notRecorded(err)
	}
	return unreadable(err)
}

// panicked turns a panic of bbolt, or a fault in the mapped file, into an error of one line.
func (s *session) panicked(p any) error {
	text, _, _ := strings.Cut(fmt.Sprint(p), "\n")
	if s.phase.Load() == phaseCommitting {
		return notRecorded(errors.New(text))
	}
	return corrupt("its pages cannot be used: %s", text)
}
