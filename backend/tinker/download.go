package tinker

import (
	"archive/tar"
	"compress/gzip"
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

	"github.com/goart-dev/art"
)

// maxFile bounds a file of a checkpoint.
const maxFile = 64 << 30

// Download brings the adapter of a step home, in PEFT's format, into a new folder: adapter_config.json and
// adapter_model.safetensors. backend/local loads it ([art.ModelOptions].Adapter) and `art serve` serves it. Step 0 is
// not stored at a service.
func (b *Backend) Download(ctx context.Context, m *art.Model, step int, dir string) error {
	const op = "download"
	e, err := b.trainable(op, m)
	if err != nil {
		return err
	}
	at, err := e.remote(step)
	if err != nil {
		return err
	}
	run, id, ok := strings.Cut(strings.TrimPrefix(at.Path, "tinker://"), "/")
	if !ok {
		err := fmt.Errorf("%w: the service has not stored step %d", art.ErrInvalid, step)
		return &art.Error{Op: op, Err: err, Hint: "take a step that was trained"}
	}
	address, err := b.archive(ctx, run, id)
	var s *statusError
	if errors.As(err, &s) && s.older() {
		address, err = b.export(ctx, e, m.Options(), at.Path, step)
	}
	if err != nil {
		return err
	}
	if err := b.fetch(ctx, address, dir); err != nil {
		return b.broken(op, err)
	}
	return nil
}

// export is the address of an archive at a service that has them only of weights for sampling, as SkyRL's has: a
// training run is made of what was saved, saved for sampling, and unloaded.
func (b *Backend) export(
	ctx context.Context, e *entry, opts art.ModelOptions, path string, step int,
) (address *url.URL, err error) {
	copied := &entry{base: e.base}
	if err := b.createModel(ctx, copied, opts); err != nil {
		return nil, err
	}
	defer func() {
		if _, err := b.small(ctx, "unload_model", request{ModelID: copied.model, Type: "unload_model"}); err != nil {
			b.opts.Logger.Warn("a training run for a download was not unloaded", "model", copied.model, "error", err)
		}
	}()
	if err := b.load(ctx, copied, path, true); err != nil {
		return nil, err
	}
	saved, err := b.save(ctx, copied, fmt.Sprintf("step-%06d", step), false)
	if err != nil {
		return nil, err
	}
	return b.archive(ctx, copied.model, saved[strings.LastIndexByte(saved, '/')+1:])
}

// archive returns the address of an archive: where the service redirects to, or what its answer says.
func (b *Backend) archive(ctx context.Context, run, id string) (*url.URL, error) {
	path := "training_runs/" + url.PathEscape(run) + "/checkpoints/" + id + "/archive"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.address.JoinPath("api/v1/", path).String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-API-Key", b.opts.Key)
	client := *b.http // the redirect is followed by fetch, without the key
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	w, err := client.Do(r)
	if err != nil {
		return nil, b.broken("download", err)
	}
	defer w.Body.Close()
	data, err := io.ReadAll(io.LimitReader(w.Body, 1<<20))
	if err == nil && w.StatusCode >= 400 {
		err = &statusError{w.StatusCode, detail(data)}
	}
	if err != nil {
		return nil, b.broken("download", err)
	}
	var body struct{ URL string }
	location := w.Header.Get("Location")
	if location == "" && json.Unmarshal(data, &body) == nil {
		location = body.URL
	}
	address, err := w.Request.URL.Parse(location)
	if err != nil || location == "" {
		return nil, b.broken("download", errors.New("the answer has no address of an archive"))
	}
	return address, nil
}

// fetch unpacks an archive into a new folder, as a whole or not at all.
func (b *Backend) fetch(ctx context.Context, address *url.URL, dir string) (err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	w, err := b.opts.HTTPClient.Do(r)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	if w.StatusCode != http.StatusOK {
		return &statusError{w.StatusCode, "the archive cannot be read"}
	}
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("%s exists already; choose a new folder", dir)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".download-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := unpack(w.Body, temp); err != nil {
		return fmt.Errorf("the archive cannot be read: %w", err)
	}
	return os.Rename(temp, dir)
}

// adapterFiles are what an archive must have; others are left out.
var adapterFiles = map[string]bool{"adapter_config.json": true, "adapter_model.safetensors": true}

// unpack writes the files of an adapter. Names of folders are dropped, so that nothing leaves dir.
func unpack(from io.Reader, dir string) error {
	zipped, err := gzip.NewReader(from)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for in := tar.NewReader(zipped); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name := header.Name[strings.LastIndexByte(header.Name, '/')+1:]
		if header.Typeflag != tar.TypeReg || !adapterFiles[name] || found[name] {
			continue
		}
		if header.Size > maxFile {
			return fmt.Errorf("%s has %d bytes", name, header.Size)
		}
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, in)
		if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
			return err
		}
		found[name] = true
	}
	if len(found) < len(adapterFiles) {
		return fmt.Errorf("it has only %d of adapter_config.json and adapter_model.safetensors", len(found))
	}
	return nil
}
