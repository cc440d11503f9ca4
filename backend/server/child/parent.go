package child

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

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
