package hook

// Mutants of this package that no test of it kills, and why.
//
// No difference can be seen:
//   - run.overdue and run.finish, r.mu.Unlock() left out before the end: the process ends, or waits for its end.
//   - run.overdue and run.unsaid, close(…) left out, and the length of that last wait: some milliseconds more.
//   - run.configure, ok && c.GuardActive() → ||: without a state directory nobody said anything, and where nothing judges a halt
//     is of no effect.
//   - run.judge, facts.Known = StagePayload left out: Next asks for that stage, of which Gather reads nothing more.
//   - isArmed, false → true: what has no path for a marker has none for a heartbeat.
//   - exportTo, err = closed left out: the close of a file that was written fails on file systems that are elsewhere.
//   - Gather, err == nil && ok → ||: on an error nothing is admitted.
//   - gatherWrites, seen: a path that was looked at is looked at again.
//
// It takes what a fast test has not got:
//   - gatherWrites, w.Tree and known.Ancestor: a second mount of a directory.
//   - run.judge, the time that is kept for the lock's own error: a lock that is held, and a clock that is exact to 25 ms;
//     TestAHeldLockDeniesAtTheDeadline in cmd/capgate-hook holds one.
//   - run.configure, the second look at a halt: one that comes between two system calls. Package control tries it.
//   - run.judge, r.publish in the loop: something that is stuck in one stage and not in the one before it.
