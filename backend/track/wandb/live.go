package wandb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/secret"
	"github.com/goart-dev/art/internal/track"
)

// live is a [track.Run] whose rows go to a file, and from there to a server. The file is what counts: an error of the
// server is none of the run. The lines of the history have numbers, so that a line that arrives twice replaces itself.
// What is in the file stays, as on the server: a live run does not rewind.
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

func (r *live) Written(ctx context.Context) (track.Values, error) {
	values, err := r.file.Written(ctx)
	r.lines = append([]map[string]any(nil), r.file.rows...)
	return values, err
}

func (r *live) Config(ctx context.Context, config map[string]any) error {
	err := r.file.Config(ctx, config)
	r.config = r.config || err == nil
	return r.send(ctx, err)
}

func (r *live) Rows(ctx context.Context, rows []track.Row) error {
	return r.send(ctx, r.file.Rows(ctx, rows))
}

func (r *live) Groups(ctx context.Context, g track.Groups) error {
	return r.send(ctx, r.file.Groups(ctx, g))
}

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
		code := 0
		if failed {
			code = 1
		}
		sending = r.server.fileStream(ctx, map[string]any{"complete": true, "exitcode": code})
	}
	if sending != nil {
		sending = fmt.Errorf("%d rows were not sent; wandb sync %s does: %w", len(r.lines), r.file.dir, sending)
	}
	return errors.Join(err, sending)
}

// send sends what waits after it was written, unless that has failed, or the last failure of the server is too recent.
// It returns the error of the file.
func (r *live) send(ctx context.Context, written error) error {
	if written != nil || time.Now().Before(r.next) {
		return written
	}
	err := r.sendNow(ctx)
	if err == nil {
		r.failures = 0
		return nil
	}
	if r.failures == 0 {
		r.file.opts.Logger.Warn("W&B does not take rows; they wait in the file", "run", r.file.id, "error", err)
	}
	r.failures++
	r.next = time.Now().Add(min(time.Second<<min(r.failures, 6), time.Minute))
	return nil
}

// sendNow sends what waits.
func (r *live) sendNow(ctx context.Context) error {
	if !r.open {
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

// maxLines bounds the lines of a request.
const maxLines = 1000

// client speaks the protocol of the wandb client 0.31 for one run: GraphQL, and a stream of lines of files.
type client struct {
	opts   Options
	id     string
	entity string
	http   *http.Client
	header http.Header // of requests to the API
}

func newClient(o Options, id string) *client {
	r := &http.Request{Header: http.Header{"Content-Type": {"application/json"}}}
	r.SetBasicAuth("api", o.APIKey)
	return &client{
		opts: o, id: id, entity: o.Entity, http: secret.Client(&http.Client{Timeout: o.Timeout}), header: r.Header,
	}
}

// resume returns the number of rows that the server has of the run, 0 when there is no run. It finds out whose run it
// is, too.
func (c *client) resume(ctx context.Context) (lines int, err error) {
	if c.entity == "" {
		var viewer struct {
			Viewer struct{ Entity string }
		}
		if err := c.graphql(ctx, `query Viewer { viewer { id entity } }`, nil, &viewer); err != nil {
			return 0, err
		}
		if c.entity = viewer.Viewer.Entity; c.entity == "" {
			return 0, errors.New("wandb: the key has no default entity: set Options.Entity")
		}
	}
	var status struct {
		Model *struct {
			Bucket *struct{ HistoryLineCount int }
		}
	}
	err = c.graphql(ctx, `query RunResumeStatus($project: String, $entity: String, $name: String!) {
		model(name: $project, entityName: $entity) { bucket(name: $name, missingOk: true) { name historyLineCount } }
	}`, map[string]any{"project": c.opts.Project, "entity": c.entity, "name": c.id}, &status)
	if err != nil || status.Model == nil || status.Model.Bucket == nil {
		return 0, err
	}
	return status.Model.Bucket.HistoryLineCount, nil
}

// mutationUpsert makes a run or changes what is not null.
const mutationUpsert = `mutation UpsertBucket(
	$name: String, $project: String, $entity: String, $displayName: String, $config: JSONString, $state: String
) {
	upsertBucket(input: {
		name: $name, modelName: $project, entityName: $entity, displayName: $displayName, config: $config, state: $state
	}) { bucket { id name historyLineCount } inserted }
}`

// upsert makes the run, or tells the server what has changed. The metrics of a section have the training step as
// x-axis; the numbers are W&B's names for the fields of a definition.
func (c *client) upsert(ctx context.Context, name string, config map[string]any, sections []string) error {
	wrapped := map[string]any{}
	for key, value := range config {
		wrapped[key] = map[string]any{"value": value}
	}
	metrics := []map[string]any{{"1": keyStep, "6": []int{3}, "7": []int{}}}
	for _, section := range sections {
		metrics = append(metrics, map[string]any{"2": section + "/*", "5": 1, "6": []int{1}, "7": []int{}})
	}
	wrapped["_wandb"] = map[string]any{"value": map[string]any{"m": metrics}}
	return c.graphql(ctx, mutationUpsert, map[string]any{
		"name": c.id, "project": c.opts.Project, "entity": c.entity, "displayName": name, "config": asJSON(wrapped),
		"state": "running",
	}, nil)
}

// filePart are lines of a file of a run.
type filePart struct {
	Offset  int      `json:"offset"`
	Content []string `json:"content"`
}

// stream sends rows, of which the first is line number first of the history, and the summary.
func (c *client) stream(ctx context.Context, first int, rows []map[string]any, summary map[string]any) error {
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = asJSON(row)
	}
	return c.fileStream(ctx, map[string]any{"files": map[string]filePart{
		"wandb-history.jsonl": {first, lines}, "wandb-summary.json": {0, []string{asJSON(summary)}},
	}})
}

// mutationFiles asks where files are to be put.
const mutationFiles = `mutation CreateRunFiles($entity: String!, $project: String!, $run: String!, $files: [String!]!) {
	createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run, files: $files}) {
		runID uploadHeaders files { name uploadUrl }
	}
}`

// upload puts a file of the run where the server wants it, without the key.
func (c *client) upload(ctx context.Context, name string, content []byte) error {
	var answer struct {
		CreateRunFiles struct {
			UploadHeaders []string
			Files         []struct{ UploadURL string }
		}
	}
	err := c.graphql(ctx, mutationFiles, map[string]any{
		"entity": c.entity, "project": c.opts.Project, "run": c.id, "files": []string{name},
	}, &answer)
	if err != nil {
		return err
	}
	if len(answer.CreateRunFiles.Files) != 1 {
		return fmt.Errorf("wandb: the server did not say where to put %s", name)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, answer.CreateRunFiles.Files[0].UploadURL,
		bytes.NewReader(content))
	if err != nil {
		return err
	}
	for _, header := range answer.CreateRunFiles.UploadHeaders {
		if key, value, ok := strings.Cut(header, ":"); ok {
			req.Header.Set(key, value)
		}
	}
	return c.do(req, nil)
}

// fileStream posts to the stream of the run.
func (c *client) fileStream(ctx context.Context, body any) error {
	path := fmt.Sprintf("/files/%s/%s/%s/file_stream",
		url.PathEscape(c.entity), url.PathEscape(c.opts.Project), url.PathEscape(c.id))
	return c.post(ctx, path, body, nil)
}

// graphql sends a query and reads its data into out, which may be nil.
func (c *client) graphql(ctx context.Context, query string, variables map[string]any, out any) error {
	var answer struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := c.post(ctx, "/graphql", map[string]any{"query": query, "variables": variables}, &answer); err != nil {
		return err
	}
	if len(answer.Errors) > 0 {
		return fmt.Errorf("wandb: %s", secret.Hide(answer.Errors[0].Message, secret.OfHeader(c.header)))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Data, out)
}

func (c *client) post(ctx context.Context, path string, body, out any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.opts.BaseURL+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header = c.header.Clone()
	return c.do(req, out)
}

// do makes a request and reads the answer into out, which may be nil.
func (c *client) do(req *http.Request, out any) error {
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("wandb: %s %s: %w", req.Method, req.URL.Path, secret.WithoutURL(err))
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("wandb: %s %s: %s: %s", req.Method, req.URL.Path, res.Status, answer[:min(len(answer), 200)])
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}
