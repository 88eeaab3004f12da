package hook

import (
	"io"
	"time"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
)

// grace is what is kept of the deadline for saying the answer: a fortieth of it, at most 25 ms. Waits for locks end
// two of it before the deadline, so that their own error is told; the watchdog strikes one before it.
func grace(f capgate.Facts) time.Duration {
	return min(f.Deadline()/40, 25*time.Millisecond)
}

func (r *run) watchdogIn() time.Duration {
	return r.facts.Deadline() - grace(r.facts) - time.Since(r.Start)
}

// overdue answers in the place of a goroutine that is stuck, and ends the process.
func (r *run) overdue() {
	r.mu.Lock()
	late := decision{facts: r.facts}
	switch {
	case r.decided != nil: // only the log or the client's pipe is slow
		late = *r.decided
		late.id = ""
	case r.call.Silent, r.facts.Known == capgate.StageConfig && r.firstWords().Silent:
		// It is no tool call, as far as one can tell.
	default:
		late = r.lateDecision(r.facts)
	}
	silent := r.claimed
	r.claimed = true
	r.mu.Unlock()

	if silent { // the pipe to the client is stuck
		r.Exit(r.unsaid(late))
		return
	}
	said := make(chan int, 1)
	go func() {
		said <- r.say(late)
		r.log(late)
		close(said)
	}()
	select {
	case status := <-said:
		// The log gets the rest of what was kept.
		select {
		case <-said:
		case <-time.After(grace(late.facts)):
		}
		r.Exit(status)
	case <-time.After(2 * grace(late.facts)):
		r.Exit(r.unsaid(late))
	}
}

// firstWords decodes what has come of a payload that is not whole.
func (r *run) firstWords() client.Call {
	call, _ := r.Client.Decode(r.payload[:min(len(r.payload), firstRead)], r.Lookup)
	return call
}

// firstRead is the size of the first read from stdin, in bytes: most payloads fit, and the pages are not touched
// twice.
const firstRead = 32 << 10

// maxPayload bounds what is read from stdin, in bytes. A longer payload is not read to its end, which is the deadline's
// case: what cannot be read cannot be counted. Twice as much could not be judged by the default deadline, and to end a process that
// holds it takes long, too.
const maxPayload = 256 << 20

// maxMoved bounds what is moved to another place while a payload is read, in bytes.
const maxMoved = 4 << 20

// grown returns buf with more room. A long payload gets at once all the room that any may have: memory that nothing is written
// to costs nothing, while to move hundreds of megabytes takes seconds, in which the watchdog may not run.
func grown(buf []byte) []byte {
	size := 4 * len(buf)
	if size > maxMoved {
		size = maxPayload
	}
	larger := make([]byte, size)
	copy(larger, buf)
	return larger
}

// readStdin reads stdin to its end and keeps what has come where the watchdog can see it.
func (r *run) readStdin() ([]byte, error) {
	buf := make([]byte, firstRead)
	n := 0
	for {
		if n == len(buf) {
			if n >= maxPayload {
				return nil, capgate.ErrOverdue
			}
			buf = grown(buf)
		}
		m, err := r.Stdin.Read(buf[n:])
		n += m
		r.mu.Lock()
		r.payload = buf[:n]
		r.mu.Unlock()
		if err == io.EOF {
			return buf[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
}
