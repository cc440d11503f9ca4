package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/secret"
)

// Session is a connection with a server. It is for one rollout, and not for concurrent use.
type Session struct {
	server *Server
	client *sdk.ClientSession
	said   *tail // nil for a server that is no command
	about  Description
	// changed is set when the server says that its tools have changed.
	changed atomic.Bool
	end     context.CancelFunc
}

// Connect opens a session and lists tools and resources. The session ends with ctx, or by [Session.Close].
func (s *Server) Connect(ctx context.Context) (*Session, error) {
	ctx, cancel := context.WithCancel(ctx)
	session := &Session{server: s, end: cancel}
	err := session.begin(ctx)
	if err != nil {
		err = session.failure("start", err)
		_ = session.Close()
		return nil, err
	}
	return session, nil
}

// begin connects and lists. The connection has the context of the session and not that of a call: it lasts. When it
// takes too long, Close ends that context, and so what is left of the attempt.
func (s *Session) begin(ctx context.Context) error {
	transport, said, err := s.server.dial(ctx)
	s.said = said
	if err != nil {
		return err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "art", Version: "0.1"}, &sdk.ClientOptions{
		Logger:                 s.server.opts.Logger,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { s.changed.Store(true) },
		Capabilities:           &sdk.ClientCapabilities{},
	})
	s.client, err = within(ctx, s.server.opts.StartTimeout, func(context.Context) (*sdk.ClientSession, error) {
		return client.Connect(ctx, transport, nil)
	})
	if err != nil {
		return err
	}
	about, err := within(ctx, s.server.opts.CallTimeout, s.list)
	s.about = about
	return err
}

// Description returns what the server offered when the session began.
func (s *Session) Description() *Description { return &s.about }

// Call calls a tool. What the tool, or the protocol, says is wrong with the call is a result for the model, with failed
// set. After an error the session is of no more use: the server did not answer in time, ended, sent a message that is
// too large, or changed its tools.
func (s *Session) Call(ctx context.Context, tool string, args json.RawMessage) (result string, failed bool, err error) {
	answer, err := within(ctx, s.server.opts.CallTimeout, func(ctx context.Context) (*sdk.CallToolResult, error) {
		return s.client.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	})
	if err != nil {
		return s.refused("tool "+tool, err)
	}
	if s.changed.Load() {
		return "", false, s.failure("tool "+tool, errors.New("the server changed its tools"))
	}
	return s.shown(textOf(answer)), answer.IsError, nil
}

// Read reads a resource, as [Session.Call] calls a tool.
func (s *Session) Read(ctx context.Context, uri string) (text string, failed bool, err error) {
	answer, err := within(ctx, s.server.opts.CallTimeout, func(ctx context.Context) (*sdk.ReadResourceResult, error) {
		return s.client.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	})
	if err != nil {
		return s.refused("resource "+uri, err)
	}
	return s.shown(contentsText(answer.Contents)), false, nil
}

// refused makes a result of an error that answers the request. Any other, or one after a change of tools, is a failure.
func (s *Session) refused(what string, err error) (result string, failed bool, _ error) {
	var answer *jsonrpc.Error
	if !errors.As(err, &answer) || s.changed.Load() {
		return "", false, s.failure(what, err)
	}
	return s.shown(answer.Message), true, nil
}

// shown is what the model, and so a trajectory, gets to see of a text of the server: not what the server was given in
// confidence, and not more than so much.
func (s *Session) shown(text string) string {
	return cut(secret.Hide(text, s.server.secrets), s.server.opts.MaxResult)
}

// failure says what went wrong, and what a command last said: all of it is read once the command has ended.
func (s *Session) failure(what string, err error) error {
	if s.said != nil {
		_ = s.Close() // what it is closed for says more
	}
	if text := s.said.String(); text != "" {
		err = fmt.Errorf("%w; it last said %q", err, text)
	}
	err = secret.HideError(err, s.server.secrets)
	return &art.Error{Op: "mcp", Err: fmt.Errorf("the session with the MCP server failed: %s, %s: %w", s.server.name, what,
		err), Hint: "look at the server's log; Options has the time limits"}
}

// closeTimeout is how long a session may take to close before it is left behind.
const closeTimeout = 10 * time.Second

// Close ends the session. A command is asked to end, then told, then killed.
func (s *Session) Close() error {
	defer s.end()
	if s.client == nil {
		return nil
	}
	_, err := within(context.Background(), closeTimeout, func(context.Context) (struct{}, error) {
		return struct{}{}, s.client.Close()
	})
	return err
}

// within calls f and leaves it behind when it does not return in time: a server that hangs may block what has no
// context, such as a write into a pipe that nobody reads.
func within[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := f(ctx)
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		if o.err != nil && ctx.Err() != nil {
			o.err = context.Cause(ctx)
		}
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// textOf is what the model reads of a result: texts, notes for what is none, or structured content alone as JSON.
func textOf(result *sdk.CallToolResult) string {
	var parts []string
	for _, c := range result.Content {
		parts = append(parts, contentText(c))
	}
	if len(parts) == 0 && result.StructuredContent != nil {
		if text, err := json.Marshal(result.StructuredContent); err == nil {
			return string(text)
		}
	}
	return strings.Join(parts, "\n")
}

func contentText(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[image, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[resource %s]", c.URI)
	case *sdk.EmbeddedResource:
		return contentsText([]*sdk.ResourceContents{c.Resource})
	}
	return fmt.Sprintf("[%T]", c)
}

func contentsText(list []*sdk.ResourceContents) string {
	var parts []string
	for _, c := range list {
		switch {
		case c == nil:
		case len(c.Blob) > 0:
			parts = append(parts, fmt.Sprintf("[%s, %s, %d bytes]", c.URI, c.MIMEType, len(c.Blob)))
		default:
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// cut shortens a text to a number of characters, and says so at its end. Bytes that are no UTF-8 become U+FFFD.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	n := utf8.RuneCountInString(text)
	if n <= most {
		return text
	}
	note := fmt.Sprintf(" [cut: %d characters]", n)
	keep := max(0, most-len(note))
	at := 0
	for range keep {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return text[:at] + note
}
