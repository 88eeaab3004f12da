package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/capgate/capgate/cmd/capgate/internal/client"
)

// Terminal is a client in a tmux server of its own, 140 columns by 50 lines. It ends with Close or with its context.
type Terminal struct {
	ctx    context.Context
	dir    string // of the server's socket
	cancel context.CancelFunc
	once   sync.Once
	err    error // of closing
}

// terminal starts a client's command there. Without tmux the error wraps ErrUnavailable.
func (s *Sandbox) terminal(ctx context.Context, name string, env, command []string) (*Terminal, error) {
	if _, err := exec.LookPath("tmux"); err != nil {
		return nil, fmt.Errorf("%w: no tmux in PATH for a terminal", ErrUnavailable)
	}
	// Not below the sandbox: a socket's path has room for about a hundred bytes.
	dir, err := os.MkdirTemp("", "live")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &Terminal{ctx: ctx, dir: dir, cancel: cancel}
	// env -i, because a tmux server adds variables of its own; remain-on-exit keeps the last screen of a client that fails.
	// Claude Code leaves a socket in its runtime directory, or in /tmp where the path is too long for one.
	env = append(slices.Clone(env), "XDG_RUNTIME_DIR="+dir)
	args := append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "140", "-y", "50", "-c", s.Work, "env", "-i"}, env...)
	args = append(append(args, command...), ";", "set-option", "-g", "remain-on-exit", "on")
	if _, err := t.tmux(args...); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	started(name, inTerminal)
	context.AfterFunc(ctx, func() { _ = t.Close() })
	return t, nil
}

func (t *Terminal) tmux(args ...string) (string, error) {
	// Its own context: the server must be ended after the terminal's.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "tmux", append([]string{"-S", filepath.Join(t.dir, "s")}, args...)...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=xterm-256color"}
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux: %w: %s", err, tail(string(out), 500))
	}
	return string(out), nil
}

// SendKeys types: names that tmux knows (Enter, Escape, Down, C-c) are keys, anything else is text.
func (t *Terminal) SendKeys(keys ...string) error {
	_, err := t.tmux(append([]string{"send-keys"}, keys...)...)
	return err
}

// Screen is what is visible now.
func (t *Terminal) Screen() (string, error) { return t.tmux("capture-pane", "-p") }

// WaitFor polls the screen until it matches, and returns the match with its groups. The error holds the last screen.
func (t *Terminal) WaitFor(pattern string) ([]string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	last := ""
	for {
		screen, err := t.Screen()
		if err != nil && t.ctx.Err() == nil {
			return nil, err
		}
		if err == nil {
			last = screen
		}
		if found := re.FindStringSubmatch(screen); found != nil {
			return found, nil
		}
		select {
		case <-t.ctx.Done():
			return nil, fmt.Errorf("waiting for %q: %w; the screen:\n%s", pattern, context.Cause(t.ctx), strings.TrimRight(last, "\n"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close ends the client and its tmux server. Closing twice is no error.
func (t *Terminal) Close() error {
	t.cancel()
	t.once.Do(func() { t.err = t.close() })
	return t.err
}

func (t *Terminal) close() error {
	// The server would only hang up on the client, which then still tidies up its home while the test removes that.
	for range 100 {
		state, err := t.tmux("display-message", "-p", "#{pane_dead} #{pane_pid}")
		dead, pid, _ := strings.Cut(strings.TrimSpace(state), " ")
		leader, notANumber := strconv.Atoi(pid)
		if err != nil || dead == "1" || notANumber != nil || leader <= 1 {
			break
		}
		_ = client.EndGroup(leader) // it may just have ended
		time.Sleep(20 * time.Millisecond)
	}
	_, _ = t.tmux("kill-server") // may be gone already
	return os.RemoveAll(t.dir)
}
