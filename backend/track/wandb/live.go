package wandb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goart-dev/art/internal/track"
)

// live is a run whose rows go to a file, and from there to a server. The file is what counts: an error of the server is
// none of the run. The lines of the history have numbers, so that a line that arrives twice replaces itself. What is in
// the file stays, as on the server: a live run does not rewind.
type live struct {
	file   *offline
	server *client

	lines    []map[string]any // of the history, from number sent on
	sent     int              // lines that the server has
	open     bool             // sent is known, and the run exists
	sections int              // that the server knows
	config   bool             // the server has to be told the configuration
	failures int              // in a row
	next     time.Time        // not before
}

func newLive(file *offline) *live {
	r := &live{file: file, server: newClient(file.opts, file.id)}
	file.told = func(row map[string]any) { r.lines = append(r.lines, row) }
	return r
}

// Written implements [track.Run].
func (r *live) Written(ctx context.Context) (track.Values, error) {
	values, err := r.file.Written(ctx)
	r.lines = append([]map[string]any(nil), r.file.rows...)
	return values, err
}

// Config implements [track.Run].
func (r *live) Config(ctx context.Context, config map[string]any) error {
	if err := r.file.Config(ctx, config); err != nil {
		return err
	}
	r.config = true
	r.send(ctx)
	return nil
}

// Rows implements [track.Run].
func (r *live) Rows(ctx context.Context, rows []track.Row) error {
	if err := r.file.Rows(ctx, rows); err != nil {
		return err
	}
	r.send(ctx)
	return nil
}

// Groups implements [track.Run].
func (r *live) Groups(ctx context.Context, g track.Groups) error {
	if err := r.file.Groups(ctx, g); err != nil {
		return err
	}
	r.send(ctx)
	return nil
}

// Close implements [track.Run].
func (r *live) Close(ctx context.Context, failed bool) error {
	err := r.file.Close(ctx, failed)
	sending := r.sendNow(ctx)
	for pause := 100 * time.Millisecond; sending != nil && ctx.Err() == nil; pause *= 2 {
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			sending = r.sendNow(ctx)
		}
	}
	if sending == nil {
		sending = r.server.end(ctx, failed)
	}
	if sending != nil {
		sending = fmt.Errorf("%d rows were not sent; wandb sync %s does: %w", len(r.lines), r.file.dir, sending)
	}
	return errors.Join(err, sending)
}

// send sends what waits, unless the last failure is too recent.
func (r *live) send(ctx context.Context) {
	if time.Now().Before(r.next) {
		return
	}
	err := r.sendNow(ctx)
	if err == nil {
		r.failures = 0
		return
	}
	if r.failures == 0 {
		r.file.opts.Logger.Warn("W&B does not take rows; they wait in the file", "run", r.file.id, "error", err)
	}
	r.failures++
	r.next = time.Now().Add(min(time.Second<<min(r.failures, 6), time.Minute))
}

// sendNow sends what waits.
func (r *live) sendNow(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	for len(r.lines) > 0 {
		rows := r.lines[:min(len(r.lines), maxLines)]
		for _, row := range rows {
			if err := r.uploadTables(ctx, row); err != nil {
				return err
			}
		}
		if err := r.server.stream(ctx, r.sent, rows, r.file.h.summary); err != nil {
			return err
		}
		r.sent, r.lines = r.sent+len(rows), r.lines[len(rows):]
	}
	return r.upsert(ctx)
}

// begin asks how many lines the server has, and makes the run.
func (r *live) begin(ctx context.Context) error {
	if r.open {
		return nil
	}
	lines, err := r.server.resume(ctx)
	if err != nil {
		return err
	}
	if lines > len(r.lines) {
		return fmt.Errorf("the run has %d rows on the server, and %d in %s: it was logged from elsewhere; "+
			"give the model another name", lines, len(r.lines), r.file.dir)
	}
	r.config = true
	if err := r.upsert(ctx); err != nil {
		return err
	}
	r.lines, r.sent, r.open = r.lines[lines:], lines, true
	return nil
}

// upsert tells the server the configuration and the metrics, if they have changed.
func (r *live) upsert(ctx context.Context) error {
	sections := r.file.h.sections
	if !r.config && len(sections) == r.sections {
		return nil
	}
	if err := r.server.upsert(ctx, r.file.name, r.file.config, sections); err != nil {
		return err
	}
	r.config, r.sections = false, len(sections)
	return nil
}

// uploadTables uploads the files that a row shows.
func (r *live) uploadTables(ctx context.Context, row map[string]any) error {
	for _, v := range row {
		object, ok := v.(map[string]any)
		if !ok || object["_type"] != "table-file" {
			continue
		}
		name, _ := object["path"].(string)
		content, err := os.ReadFile(filepath.Join(r.file.dir, "files", filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // deleted by hand: the chart shows that it is missing
		}
		if err != nil {
			return err
		}
		if err := r.server.upload(ctx, name, content); err != nil {
			return err
		}
	}
	return nil
}
