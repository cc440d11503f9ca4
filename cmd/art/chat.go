package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/dataset"
	"github.com/goart-dev/art/internal/quantity"
)

func init() {
	verbs["chat"] = verb{
		summary: "talk with a model in the terminal",
		args:    "MODEL",
		runs:    true,
		text: `
Reads a message from each line of standard input and prints the reply while it is sampled. A line
that ends with \ goes on in the next one. Where the model calls a tool, the next line is its result.
Ctrl-C ends a reply; where nothing is being said it ends the program, as the end of input does.

  /system TEXT  begin anew with a system message     /undo       take back the last exchange
  /reset        begin anew                           /save FILE  append the chat to FILE as JSONL,
  /help         print this                                       for art sft
  /quit

` + models,
		define: func(flags *flag.FlagSet) action {
			c := &chatter{}
			c.play.flags(flags)
			flags.StringVar(&c.system, "system", "", "`text` of a system message")
			flags.StringVar(&c.toolFile, "tools", "", "`file` of tools that the model may call, a JSON list as OpenAI has it")
			flags.BoolVar(&c.tokens, "tokens", false, "show the probability of each token, in percent and by color")
			return c.run
		},
	}
}

// chatter is the verb chat with its flags, and a chat.
type chatter struct {
	play             playerOptions
	system, toolFile string
	tokens           bool

	show  shower
	model *art.Model
	chat  *art.Trajectory
	tools []art.Tool
	out   io.Writer
}

func (c *chatter) run(args []string, stdout, stderr io.Writer) (err error) {
	if len(args) != 1 {
		return badUsage("want one MODEL")
	}
	if c.tools, err = readTools(c.toolFile); err != nil {
		return err
	}
	ctx := context.Background()
	c.play.sampled = c.tokens
	var done func() error
	if c.model, done, err = openPlayer(ctx, args[0], c.play, stderr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	c.show = shower{color: colors(stdout), tokens: c.tokens}
	if c.tokens {
		if c.show.tokenizer, err = openTokenizer(args[0]); err != nil {
			return err
		}
	}
	c.out = stdout
	c.reset()
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, 16<<20)
	for {
		if err := write(c.out, c.prompt()); err != nil {
			return err
		}
		text, ok := readMessage(lines)
		if !ok {
			return errors.Join(lines.Err(), write(c.out, "\n"))
		}
		quit, err := c.line(ctx, text)
		if quit || err != nil {
			return err
		}
	}
}

// readTools reads a list of tools; no file is none.
func readTools(path string) (tools []art.Tool, err error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err == nil {
		if err = json.Unmarshal(data, &tools); err != nil {
			err = fmt.Errorf("%s: want a JSON list of tools: %w", path, err)
		}
	}
	return tools, err
}

// reset begins a new chat.
func (c *chatter) reset() {
	c.chat = art.NewTrajectory()
	c.chat.Tools = c.tools
	if c.system != "" {
		c.chat.Add(art.System(c.system))
	}
}

// readMessage reads a line, and those after it while they end with a backslash.
func readMessage(lines *bufio.Scanner) (text string, ok bool) {
	for lines.Scan() {
		part, goesOn := strings.CutSuffix(lines.Text(), `\`)
		text += part
		if !goesOn {
			return text, true
		}
		text += "\n"
	}
	return text, text != ""
}

// prompt asks for a message, or for the result of the first call that has none.
func (c *chatter) prompt() string {
	if call := c.open(); call != nil {
		return c.show.style("35", "result of "+printable(call.Name)) + "> "
	}
	return c.show.style("36", "you") + "> "
}

// open returns the first call that has no result.
func (c *chatter) open() *art.ToolCall {
	messages := c.chat.Messages
	at := len(messages) - 1
	for at >= 0 && messages[at].Role == art.RoleTool {
		at--
	}
	if at < 0 {
		return nil
	}
	if answered := len(messages) - 1 - at; answered < len(messages[at].ToolCalls) {
		return &messages[at].ToolCalls[answered]
	}
	return nil
}

// line takes a line of the user: a command, the result of a tool, or a message.
func (c *chatter) line(ctx context.Context, text string) (done bool, err error) {
	call := c.open()
	switch {
	case call != nil:
		c.chat.Add(art.ToolResult(call.ID, text))
		if c.open() != nil {
			return false, nil
		}
	case strings.HasPrefix(text, "/"):
		return c.command(text)
	case strings.TrimSpace(text) == "":
		return false, nil
	default:
		c.chat.Add(art.User(text))
	}
	return false, c.reply(ctx)
}

// command carries out a line that begins with a slash.
func (c *chatter) command(text string) (done bool, err error) {
	name, rest, _ := strings.Cut(text, " ")
	switch rest = strings.TrimSpace(rest); name {
	case "/quit":
		return true, nil
	case "/reset":
		c.reset()
	case "/system":
		c.system = rest
		c.reset()
	case "/undo":
		c.undo()
	case "/save":
		err = c.save(rest)
	case "/help":
		err = write(c.out, strings.TrimSpace(verbs["chat"].text)+"\n")
	default:
		err = write(c.out, fmt.Sprintf("%s is no command; /help lists them. To say it, put a space before it.\n", name))
	}
	return false, err
}

// undo takes back what was said since the last message of the user, and that message.
func (c *chatter) undo() {
	for i, m := range slices.Backward(c.chat.Messages) {
		if m.Role == art.RoleUser {
			c.chat.Messages = c.chat.Messages[:i]
			return
		}
	}
}

// save appends the chat to a file of examples.
func (c *chatter) save(path string) error {
	if path == "" {
		return write(c.out, "/save needs the name of a file\n")
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		example := art.Example{History: c.chat.History}
		err = errors.Join(dataset.WriteJSONL(f, example), f.Close())
	}
	if err != nil {
		return write(c.out, printable(err.Error())+"\n")
	}
	return write(c.out, fmt.Sprintf("%s\n", quantity.Of(len(c.chat.Messages), "message")))
}

// reply lets the model answer. Ctrl-C ends it, and what was said until then is taken back. An error of the model, such
// as a full context, is printed: the chat can be shortened.
func (c *chatter) reply(ctx context.Context) error {
	before := len(c.chat.Messages)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	p := &printer{shower: &c.show, out: c.out}
	response, err := c.model.Stream(ctx, &c.chat.History, nil, p.piece)
	p.print("\n")
	switch {
	case p.err != nil:
		return p.err
	case err != nil:
		c.chat.Messages = c.chat.Messages[:before]
		c.undo()
		if ctx.Err() != nil {
			return write(c.out, "(interrupted; the message is taken back)\n")
		}
		return write(c.out, fmt.Sprintf("%s\n(the message is taken back; /reset begins anew)\n", printable(err.Error())))
	}
	c.chat.Add(response.Message)
	if response.Finish == "length" {
		return write(c.out, "(cut: --max-tokens or the context is reached)\n")
	}
	return nil
}

// printer prints a reply as it comes.
type printer struct {
	*shower
	out       io.Writer
	err       error
	reasoning bool
	written   bool
}

// piece prints what has been added.
func (p *printer) piece(piece art.Piece) error {
	if p.tokens {
		for i, id := range piece.IDs {
			p.print(p.token(id, piece.Logprobs[i]))
		}
		return p.err
	}
	if piece.Reasoning != "" {
		p.reasoning = true
		p.print(p.style("2", printable(piece.Reasoning)))
	}
	if piece.Content != "" {
		if p.reasoning {
			p.print("\n")
			p.reasoning = false
		}
		p.print(printable(piece.Content))
	}
	for _, call := range piece.ToolCalls {
		if p.written {
			p.print("\n")
		}
		p.print(p.style("35", "calls ") + printable(call.Name) + "(" + printable(call.Arguments) + ")")
	}
	return p.err
}

func (p *printer) print(text string) {
	if p.err == nil {
		p.err = write(p.out, text)
		p.written = true
	}
}
