// Package child runs a server, such as art serve, in a process of its own that ends with the process that started it,
// whatever ends that one:
//
//	server, err := child.Start(ctx, &child.Options{Args: []string{"--train", "tiny"}})
//	defer server.Close()
//	b, err := tinker.Open(ctx, &tinker.Options{BaseURL: server.URL, Key: server.Key, Tokenizer: "models/tiny"})
//
// The child watches its standard input, a pipe that only the parent can write to: it ends when the pipe does, which the
// operating system sees to when the parent is killed. That works on every system and, unlike Linux's signal at the
// death of a parent, does not depend on which thread has started the child. [Parent] and [Ready] are the child's side,
// for servers other than art serve.
package child

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/goart-dev/art"
)

// KeyVariable is the environment variable in which a child is given its key. Unlike a flag it is not in the list of
// processes.
const KeyVariable = "ART_KEY"

// Options of [Start]. Zero values are the defaults.
type Options struct {
	// Command is the program, and the arguments before the flags. Default: art serve, of $PATH. A program that can be a
	// server itself names itself by [os.Executable]. It gets the flags --child and --addr 127.0.0.1:0, any free port.
	Command []string
	// Args are the arguments after them, such as --train tiny. Another --addr replaces the first.
	Args []string
	// Dir is the working directory. Default: that of this process.
	Dir string
	// Env are further variables, KEY=VALUE.
	Env []string
	// Key is the secret that clients send. Default: a new one, which the SDKs of Tinker and of W&B accept.
	Key string
	// Stderr receives what the child writes to its standard error. nil: only the end is kept, for errors.
	Stderr io.Writer
	// Grace is how long [Server.Close] waits before it kills the child. Default 40 seconds, more than art serve needs by
	// default for requests that are being answered.
	Grace time.Duration
}

// Server is a server in a child process.
type Server struct {
	URL    string   // where this machine reaches it
	Key    string   // what clients send
	Models []string // the names that it knows
	PID    int      // of the process

	cmd   *exec.Cmd
	stdin io.Closer
	tail  *tail
	grace time.Duration
	done  chan struct{} // closed when the process has ended
	err   error         // why; read it after done
	close sync.Once
}

// ready is the line that a child writes to its standard output when it can be called.
type ready struct {
	URL    string   `json:"url"`
	Models []string `json:"models"`
}

// Start starts a server and waits until it can be called. ctx ends the start only. When it returns an error there is no
// process left; the error has the end of what the child has written to its standard error.
func Start(ctx context.Context, opts *Options) (*Server, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	// A key has the 40 characters that W&B's SDK wants, and the prefix that Tinker's does.
	o.Key, o.Grace = cmp.Or(o.Key, "tml-"+rand.Text()+rand.Text()[:10]), cmp.Or(o.Grace, 40*time.Second)
	if len(o.Command) == 0 {
		o.Command = []string{"art", "serve"}
	}
	s := &Server{Key: o.Key, grace: o.Grace, done: make(chan struct{})}
	first := &firstLine{line: make(chan string, 1)}
	if err := s.start(&o, first); err != nil {
		return nil, &art.Error{Op: "start server", Err: err,
			Hint: "install art with go install, or name the program in Options.Command"}
	}
	if err := s.await(ctx, first.line); err != nil {
		s.kill()
		return nil, &art.Error{Op: "start server", Err: s.explain(err),
			Hint: "run the same command by hand, without --child"}
	}
	return s, nil
}

// start starts the process, and waits for its end in a goroutine.
func (s *Server) start(o *Options, stdout io.Writer) (err error) {
	args := slices.Concat(o.Command[1:], []string{"--child", "--addr", "127.0.0.1:0"}, o.Args)
	s.cmd = exec.Command(o.Command[0], args...) //nolint:gosec,noctx // the caller's program, which outlives the context
	s.tail = &tail{to: o.Stderr}
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr, s.cmd.WaitDelay = o.Dir, stdout, s.tail, time.Second
	s.cmd.Env = slices.Concat(os.Environ(), o.Env, []string{KeyVariable + "=" + o.Key})
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.PID = s.cmd.Process.Pid
	go func() {
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	return nil
}

// await waits for the line of a child that is ready.
func (s *Server) await(ctx context.Context, line <-chan string) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.done:
		return cmp.Or(s.err, errors.New("it ended before it was ready"))
	case text := <-line:
		var r ready
		if err := json.Unmarshal([]byte(text), &r); err != nil || r.URL == "" {
			return fmt.Errorf("it wrote %.100q, want the JSON of child.Ready", text)
		}
		s.URL, s.Models = r.URL, r.Models
		return nil
	}
}

// firstLine hands on the first line that is written to it, and drops what follows.
type firstLine struct {
	read []byte
	line chan string // has room for one
	sent bool
}

// maxLine bounds the line, in bytes.
const maxLine = 1 << 20

func (f *firstLine) Write(p []byte) (int, error) {
	if f.sent {
		return len(p), nil
	}
	f.read = append(f.read, p...)
	text, _, ended := bytes.Cut(f.read, []byte{'\n'})
	if ended || len(text) > maxLine {
		f.sent = true
		f.line <- string(text)
	}
	return len(p), nil
}

// Done is closed when the process has ended, by whatever.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says why the process has ended without [Server.Close]. It is nil while it runs.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.explain(cmp.Or(s.err, errors.New("the server has ended")))
	default:
		return nil
	}
}

// Close tells the server to end and waits for that. It kills the process after Options.Grace, which is an error, as is
// a process that has failed. Further calls do nothing.
func (s *Server) Close() (err error) {
	s.close.Do(func() { err = s.stop() })
	return err
}

func (s *Server) stop() error {
	_ = s.stdin.Close() // it has been closed if the process has ended
	timer := time.NewTimer(s.grace)
	defer timer.Stop()
	select {
	case <-s.done:
		if s.err == nil {
			return nil
		}
		return &art.Error{Op: "stop server", Err: s.explain(s.err)}
	case <-timer.C:
		s.kill()
		return &art.Error{Op: "stop server", Err: fmt.Errorf("it had not ended after %v, and was killed", s.grace),
			Hint: "raise Options.Grace above the server's --drain"}
	}
}

// kill ends the process at once.
func (s *Server) kill() {
	_ = s.stdin.Close()
	_ = s.cmd.Process.Kill() // an error says that it has ended
	<-s.done
}

// explain adds the end of the standard error, without the key.
func (s *Server) explain(err error) error {
	text := strings.TrimSpace(strings.ReplaceAll(s.tail.text(), s.Key, "KEY"))
	if text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}

// tail passes on what is written to it, and keeps the end.
type tail struct {
	to io.Writer // may be nil

	mu  sync.Mutex
	end []byte
}

// maxTail is how much is kept, in bytes.
const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.end = append(t.end, p...)
	t.end = t.end[max(0, len(t.end)-maxTail):]
	t.mu.Unlock()
	if t.to == nil {
		return len(p), nil
	}
	return t.to.Write(p)
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}

// Parent is for the child: it returns a context that ends when the process that has started it with [Start] does, or
// calls [Server.Close]. The process has the time of grace from then on to end by itself, and exits with status 1
// afterwards, whatever it does. Parent reads standard input, and lets a Ctrl-C of the terminal to the parent.
func Parent(ctx context.Context, grace time.Duration) context.Context {
	signal.Ignore(os.Interrupt, syscall.SIGPIPE) // nobody may read what the child writes when the parent is gone
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error ends the parent's side as well
		cancel()
		time.Sleep(grace)
		os.Exit(1)
	}()
	return ctx
}

// Ready is for the child: it tells the parent, through the child's standard output, under which URL it can be called
// and which models it knows.
func Ready(stdout io.Writer, url string, models []string) error {
	line, err := json.Marshal(ready{url, models})
	if err != nil {
		return err
	}
	_, err = stdout.Write(append(line, '\n'))
	return err
}
