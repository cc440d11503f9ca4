package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/secret"
)

// Options of a server. Zero values are the defaults.
type Options struct {
	// Header is sent with each HTTP request, such as an Authorization: to the scheme, host and port of the address only.
	// Where the server redirects to another, or an SSE server wants messages there, the session fails.
	Header http.Header
	// Env are environment variables of a command, as KEY=VALUE, beside those that it gets of this process: HOME, LOGNAME,
	// PATH, SHELL, TERM and USER, and on Windows their like, as with the official SDKs. Keys of this process are not
	// among them; os.Environ() passes everything on.
	Env []string
	// Dir is the working directory of a command. Default: that of this process.
	Dir string
	// CallTimeout bounds each call of a tool, and each list. Default 30 s.
	CallTimeout time.Duration
	// StartTimeout bounds the start of a session, a command's start included. Default 30 s.
	StartTimeout time.Duration
	// MaxResult is the most characters of a result that the agent sees. Default 20,000.
	MaxResult int
	// Logger receives what the SDK and the server's standard error say. nil discards.
	Logger *slog.Logger
}

// maxMessage is the most bytes of one message of a server. A larger one ends the session.
const maxMessage = sdk.DefaultMaxLineLength

// Server is an MCP server that sessions can be opened with. It is safe for concurrent use.
type Server struct {
	name    string
	opts    Options
	secrets []string // of the options: what the server says does not repeat them
	// dial returns the transport of a new session, and what a command says on its standard error.
	dial func(ctx context.Context) (sdk.Transport, *tail, error)
}

// Name is the address or the command.
func (s *Server) Name() string { return s.name }

// Open returns the server at an address, without connecting yet. opts may be nil. An address is
//
//   - http://... or https://...: streamable HTTP,
//   - sse+http://... or sse+https://...: the older protocol with server-sent events,
//   - anything else: a command line, whose words are separated by spaces; quotes "..." and '...' keep spaces. Each
//     session starts the command and talks with it over standard input and output.
func Open(address string, opts *Options) (*Server, error) {
	rest, sse := strings.CutPrefix(address, "sse+")
	if strings.HasPrefix(rest, "http://") || strings.HasPrefix(rest, "https://") {
		return overHTTP(address, rest, sse, opts)
	}
	words, err := splitWords(address)
	if err == nil && len(words) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, invalid("open", fmt.Errorf("address %q: %w", address, err), "give a URL or a command")
	}
	return Command(opts, words[0], words[1:]...)
}

// Command returns a server that each session starts as a process.
func Command(opts *Options, name string, args ...string) (*Server, error) {
	s := newServer(strings.Join(append([]string{name}, args...), " "), opts)
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, invalid("open", fmt.Errorf("command %q: %w", name, err), "give a URL, or a command that is installed")
	}
	s.dial = func(context.Context) (sdk.Transport, *tail, error) {
		said := &tail{logger: s.opts.Logger}
		cmd := exec.Command(path, args...) // not of a context: the session ends it
		cmd.Dir, cmd.Stderr, cmd.WaitDelay = s.opts.Dir, said, time.Second
		cmd.Env = append(inherited(), s.opts.Env...)
		return &sdk.CommandTransport{Command: cmd, TerminateDuration: 3 * time.Second}, said, nil
	}
	return s, nil
}

// InProcess returns a server that runs in this process. begin makes the server of each session, with data of its own.
func InProcess(name string, begin func() *sdk.Server, opts *Options) *Server {
	s := newServer(name, opts)
	s.dial = func(ctx context.Context) (sdk.Transport, *tail, error) {
		ours, theirs := sdk.NewInMemoryTransports()
		_, err := begin().Connect(ctx, theirs, nil)
		return ours, nil, err
	}
	return s
}

func overHTTP(name, address string, sse bool, opts *Options) (*Server, error) {
	u, err := url.Parse(address)
	if err == nil && u.Host == "" {
		err = errors.New("it has no host")
	}
	if err != nil {
		return nil, invalid("open", fmt.Errorf("address %q: %w", name, err), "write it like https://example.com/mcp")
	}
	s := newServer(name, opts)
	hiding := secret.Client(nil)
	client := &http.Client{CheckRedirect: hiding.CheckRedirect, Transport: &limitedTransport{
		next: hiding.Transport, origin: u, header: s.opts.Header.Clone(),
	}}
	s.dial = func(context.Context) (sdk.Transport, *tail, error) {
		if sse {
			return &sdk.SSEClientTransport{Endpoint: address, HTTPClient: client, MaxEventSize: maxMessage}, nil, nil
		}
		return &sdk.StreamableClientTransport{Endpoint: address, HTTPClient: client, MaxEventSize: maxMessage}, nil, nil
	}
	return s, nil
}

func newServer(name string, opts *Options) *Server {
	s := &Server{name: name}
	if opts != nil {
		s.opts = *opts
	}
	s.secrets = secret.OfHeader(s.opts.Header)
	for _, variable := range s.opts.Env {
		if name, value, _ := strings.Cut(variable, "="); secret.IsName(name) {
			s.secrets = append(s.secrets, value)
		}
	}
	s.opts.CallTimeout = cmp.Or(s.opts.CallTimeout, 30*time.Second)
	s.opts.StartTimeout = cmp.Or(s.opts.StartTimeout, 30*time.Second)
	s.opts.MaxResult = cmp.Or(s.opts.MaxResult, 20_000)
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

func invalid(op string, err error, hint string) error {
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: hint}
}

// splitWords splits a command line at spaces that are not within quotes.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	inWord := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inWord = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// limitedTransport sends headers to the origin alone, and bounds replies that are no streams, as the SDK does events.
type limitedTransport struct {
	next   http.RoundTripper
	origin *url.URL
	header http.Header
}

func (t *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !secret.SameOrigin(r.URL, t.origin) { // of an SSE server's endpoint event
		return nil, fmt.Errorf("the server wants messages at %s, which is another host than its own: they are not sent",
			secret.Origin(r.URL))
	}
	if len(t.header) > 0 {
		r = r.Clone(r.Context())
		for key, values := range t.header {
			r.Header[http.CanonicalHeaderKey(key)] = values
		}
	}
	response, err := t.next.RoundTrip(r)
	if err == nil && !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		response.Body = &limitedBody{ReadCloser: response.Body, left: maxMessage}
	}
	return response, err
}

// limitedBody fails when it is read beyond a number of bytes.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the reply has more than %d bytes", maxMessage)
	}
	return n, err
}

// inheritedNames are the environment variables that a command gets, by the operating system: the lists of the official
// SDKs for TypeScript and Python, for Windows together. Keys of this process are not for every server.
var inheritedNames = map[bool][]string{
	false: {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"},
	true: {
		"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES",
		"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE",
	},
}

func inherited() (env []string) {
	for _, name := range inheritedNames[runtime.GOOS == "windows"] {
		if value, ok := os.LookupEnv(name); ok && !strings.HasPrefix(value, "()") { // a function of the shell
			env = append(env, name+"="+value)
		}
	}
	return env
}

// tail keeps the end of what a command says on its standard error, for the reason of a failure.
type tail struct {
	logger *slog.Logger
	mu     sync.Mutex
	text   []byte
}

const maxTail = 500

func (t *tail) Write(p []byte) (int, error) {
	t.logger.Info("the MCP server says", "text", strings.TrimSpace(string(p)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(p), nil
}

// String is what was kept, as valid UTF-8.
func (t *tail) String() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(strings.TrimSpace(string(t.text)), "")
}
