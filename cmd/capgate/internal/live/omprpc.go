package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"github.com/capgate/capgate/cmd/capgate/internal/client"
)

// OMPRPC is Oh My Pi driven over its RPC mode: JSON lines on stdin and stdout. To extensions it is a session with a UI,
// so dialogs can be answered without a terminal.
type OMPRPC struct {
	ctx    context.Context
	cancel context.CancelFunc
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr lockedBuffer
	frames chan frame // closed when the client has ended

	mu      sync.Mutex
	ids     int
	Session string // the session's id
}

// Dialog is a question of an extension.
type Dialog struct {
	ID      string
	Method  string // "confirm" for a yes-no question
	Title   string
	Message string
}

type frame struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Method  string `json:"method"`
	Title   string `json:"title"`
	Message string `json:"message"`
	Error   string `json:"error"`
	Success *bool  `json:"success"`
	Command string `json:"command"`
	Data    struct {
		SessionID string `json:"sessionId"`
	} `json:"data"`
}

// OMPRPC starts the client and waits until it can be prompted. r.Prompt is ignored.
func (s *Sandbox) OMPRPC(ctx context.Context, r OMPRun) (*OMPRPC, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &OMPRPC{ctx: ctx, cancel: cancel, frames: make(chan frame, 1000)}
	p.cmd = exec.CommandContext(ctx, s.Clients.OMP[0], s.ompArgs(r, "--mode", "rpc")...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = s.Work, s.Environ(r.Env...), &p.stderr
	client.OwnGroup(p.cmd)
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	go p.read(stdout)
	if _, err := p.await(func(f frame) bool { return f.Type == "ready" }); err != nil {
		_ = p.Close()
		return nil, err
	}
	state, err := p.ask(M{"type": "get_state"})
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	p.Session = state.Data.SessionID
	started(ompName, overRPC)
	return p, nil
}

// lockedBuffer can be read while a process is writing to it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (p *OMPRPC) read(stdout io.Reader) {
	defer close(p.frames)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		var f frame
		if json.Unmarshal(line, &f) == nil {
			select {
			case p.frames <- f:
			case <-p.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// await drops frames until one is wanted.
func (p *OMPRPC) await(wanted func(frame) bool) (frame, error) {
	for {
		select {
		case f, open := <-p.frames:
			switch {
			case !open:
				return frame{}, fmt.Errorf("the client has ended: %s", tail(p.stderr.String(), 500))
			case wanted(f):
				return f, nil
			case f.Type == "response" && f.Success != nil && !*f.Success:
				return frame{}, fmt.Errorf("%s: %s", f.Command, f.Error)
			}
		case <-p.ctx.Done():
			return frame{}, context.Cause(p.ctx)
		}
	}
}

func (p *OMPRPC) send(command any) error {
	line, err := json.Marshal(command)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err = p.stdin.Write(append(line, '\n'))
	return err
}

// ask sends a command and waits for its response; frames that come before it are dropped.
func (p *OMPRPC) ask(command M) (frame, error) {
	p.ids++
	id := fmt.Sprintf("q%d", p.ids)
	command["id"] = id
	if err := p.send(command); err != nil {
		return frame{}, err
	}
	return p.await(func(f frame) bool { return f.Type == "response" && f.ID == id && f.Success != nil && *f.Success })
}

// Prompt sends a user's message.
func (p *OMPRPC) Prompt(text string) error {
	_, err := p.ask(M{"type": "prompt", "message": text})
	return err
}

// Dialog waits for an extension's next question.
func (p *OMPRPC) Dialog() (Dialog, error) {
	f, err := p.await(func(f frame) bool {
		return f.Type == "extension_ui_request" && (f.Method == "confirm" || f.Method == "select" || f.Method == "input")
	})
	return Dialog{ID: f.ID, Method: f.Method, Title: f.Title, Message: f.Message}, err
}

// Answer says yes or no to a confirm dialog.
func (p *OMPRPC) Answer(d Dialog, yes bool) error {
	return p.send(M{"type": "extension_ui_response", "id": d.ID, "confirmed": yes})
}

// Settled waits for the end of the agent's turn. Agents in the background may go on.
func (p *OMPRPC) Settled() error {
	_, err := p.await(func(f frame) bool { return f.Type == "agent_end" })
	return err
}

// Close ends the client and its children.
func (p *OMPRPC) Close() error {
	p.cancel()
	for range p.frames { // the reader ends first: Wait closes its pipe
	}
	_ = p.cmd.Wait() // killed: of no interest
	return nil
}
