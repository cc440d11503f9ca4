package hub

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"
)

// maxSilence is how long a server may send nothing in the middle of a file.
const maxSilence = 60 * time.Second

var errChecksum = errors.New("the content does not have the checksum that the hub gives")

type transfer struct {
	client  *client
	address string
	want    remoteFile
	report  func(have int64) // called with the bytes of the file so far

	part *os.File
	sum  hash.Hash // of the bytes so far
	have int64     // bytes so far
}

func (c *client) fetch(
	ctx context.Context, store cache, commit string, want remoteFile, report func(int64),
) (err error) {
	if err := store.root.MkdirAll(path.Dir(store.blobPath(want.digest)), 0o777); err != nil {
		return err
	}
	unlock, err := store.lock(ctx, want.digest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	blob := store.blobPath(want.digest)
	if info, err := store.root.Stat(blob); err == nil && info.Mode().IsRegular() && info.Size() == want.size {
		report(want.size)
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t := &transfer{client: c, address: c.address(commit, want.name), want: want, report: report}
	return t.run(ctx, store, blob)
}

// run fetches the rest of a blob, checks all of it and renames it.
func (t *transfer) run(ctx context.Context, store cache, blob string) (err error) {
	incomplete := blob + ".incomplete"
	if t.part, err = store.root.OpenFile(incomplete, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return err
	}
	defer t.part.Close()
	resumed, err := t.resume()
	if err != nil {
		return err
	}
	err = t.complete(ctx)
	if resumed && errors.Is(err, errChecksum) { // the earlier part may be damaged: once more, from the start
		if err = t.restart(); err == nil {
			err = t.complete(ctx)
		}
	}
	if errors.Is(err, errChecksum) {
		return errors.Join(err, t.part.Close(), store.root.Remove(incomplete))
	}
	if err != nil {
		return err // the part is kept
	}
	if err := errors.Join(t.part.Sync(), t.part.Close()); err != nil {
		return err
	}
	return store.root.Rename(incomplete, blob)
}

func (t *transfer) resume() (resumed bool, err error) {
	t.sum = t.want.digest.hash(t.want.size)
	if t.have, err = io.Copy(t.sum, t.part); err != nil {
		return false, err
	}
	if t.have > t.want.size {
		return false, t.restart()
	}
	t.report(t.have)
	return t.have > 0, nil
}

func (t *transfer) restart() error {
	t.sum, t.have = t.want.digest.hash(t.want.size), 0
	t.report(0)
	if err := t.part.Truncate(0); err != nil {
		return err
	}
	_, err := t.part.Seek(0, io.SeekStart)
	return err
}

func (t *transfer) complete(ctx context.Context) error {
	most := t.have // a server that starts over makes no progress before it is beyond that
	progressed := func() bool {
		more := t.have > most
		most = max(most, t.have)
		return more
	}
	err := t.client.retry(ctx, func() error { return t.get(ctx) }, progressed)
	if err != nil {
		return err
	}
	if !t.want.digest.is(t.sum) {
		return fmt.Errorf("%w (%s): try again; if it persists, the hub or a proxy is broken", errChecksum, t.want.digest)
	}
	return nil
}

func (t *transfer) get(ctx context.Context) error {
	if t.have == t.want.size {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := t.client.do(ctx, http.MethodGet, t.address, t.have, followAll)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && t.have > 0:
		if err := t.restart(); err != nil { // the server does not support ranges
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return temporary(fmt.Errorf("%s answers %d", resp.Request.URL.Host, resp.StatusCode))
		}
	case resp.StatusCode != http.StatusPartialContent:
		return t.client.refused(resp)
	case !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", t.have)):
		return fmt.Errorf("%s answers a request for the bytes from %d on with %q", resp.Request.URL.Host, t.have,
			resp.Header.Get("Content-Range"))
	}
	watch := time.AfterFunc(maxSilence, func() { cancel(fmt.Errorf("the server was silent for %v", maxSilence)) })
	defer watch.Stop()
	return t.read(ctx, resp.Body, watch)
}

func (t *transfer) read(ctx context.Context, body io.Reader, watch *time.Timer) error {
	buffer := make([]byte, 1<<20)
	for t.have < t.want.size {
		n, err := body.Read(buffer[:min(int64(len(buffer)), t.want.size-t.have)])
		if n > 0 {
			watch.Reset(maxSilence)
			written, failure := t.part.Write(buffer[:n])
			t.sum.Write(buffer[:written]) // what a full disk has taken counts
			t.have += int64(written)
			if failure != nil {
				return fmt.Errorf("%w; what is there is kept: try again when there is room for %d more bytes", failure,
					t.want.size-t.have)
			}
			t.report(t.have)
		}
		if err != nil && t.have < t.want.size {
			return temporary(fmt.Errorf("the connection was cut at %d of %d bytes: %w", t.have, t.want.size,
				errors.Join(err, context.Cause(ctx))))
		}
	}
	return nil
}
