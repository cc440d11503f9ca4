package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"

	"github.com/goart-dev/art/internal/secret"
)

// The media types of the hub.
const (
	mediaJSON  = "application/json"
	mediaLines = "application/x-ndjson"
	mediaLFS   = "application/vnd.git-lfs+json"
)

// object is a large file: in requests by its content, in answers with what is to be done.
type object struct {
	OID     string `json:"oid"`
	Size    int64  `json:"size"`
	Actions *struct {
		Upload *action
		Verify *action
	} `json:"actions,omitempty"`
	Error *struct {
		Code    int
		Message string
	} `json:"error,omitempty"`
}

// action is a request that the hub wants.
type action struct {
	Href   string
	Header map[string]string
}

// store sends the large files that the hub does not have.
//
// Protocol: the batch API of Git LFS, with the hub's transfer "multipart".
func (h *hub) store(ctx context.Context, files []*upload) error {
	byOID := map[string]*upload{}
	objects := []object{}
	for _, f := range files {
		if f.mode != large {
			continue
		}
		sum := sha256.New()
		if _, err := copyFile(sum, f.local); err != nil {
			return err
		}
		f.oid = hex.EncodeToString(sum.Sum(nil))
		if byOID[f.oid] == nil {
			objects = append(objects, object{OID: f.oid, Size: f.size})
		}
		byOID[f.oid] = f
	}
	if len(objects) == 0 {
		return nil
	}
	var answer struct{ Objects []object }
	err := h.post(ctx, h.opts.BaseURL+"/"+h.opts.Repo+".git/info/lfs/objects/batch", mediaLFS, map[string]any{
		"operation": "upload", "transfers": []string{"basic", "multipart"}, "objects": objects, "hash_algo": "sha256",
		"ref": map[string]string{"name": h.opts.Branch},
	}, &answer)
	if err != nil {
		return err
	}
	for i := range answer.Objects {
		if f := byOID[answer.Objects[i].OID]; f != nil {
			if err := h.storeObject(ctx, f, &answer.Objects[i]); err != nil {
				return fmt.Errorf("%s: %w", f.path, err)
			}
			delete(byOID, f.oid)
		}
	}
	for _, f := range byOID {
		return fmt.Errorf("the hub does not say how %s is to be sent", f.path)
	}
	return nil
}

// storeObject does what the hub wants for one file. Without actions it has the content.
func (h *hub) storeObject(ctx context.Context, f *upload, o *object) error {
	switch {
	case o.Error != nil:
		return fmt.Errorf("the hub does not take it: %d %.200s", o.Error.Code, h.web.hide(o.Error.Message))
	case o.Actions == nil || o.Actions.Upload == nil:
		return nil
	}
	file, err := os.Open(f.local)
	if err != nil {
		return err
	}
	defer file.Close()
	to := o.Actions.Upload
	if size, parts := to.Header["chunk_size"], to.Header; size != "" {
		err = h.putParts(ctx, f, file, to.Href, size, parts)
	} else {
		_, err = h.web.put(ctx, to.Href, io.NewSectionReader(file, 0, f.size), to.Header)
	}
	if err != nil || o.Actions.Verify == nil {
		return err
	}
	return h.post(ctx, o.Actions.Verify.Href, mediaJSON, object{OID: f.oid, Size: f.size}, nil)
}

// part is one of those of a file, in the request that completes it.
type part struct {
	Number int    `json:"partNumber"`
	ETag   string `json:"etag"`
}

// putParts sends a file in parts of a size, to the addresses that the header has by their numbers.
func (h *hub) putParts(
	ctx context.Context, f *upload, file io.ReaderAt, complete, size string, header map[string]string,
) error {
	length, err := strconv.ParseInt(size, 10, 64)
	if err != nil || length < 1 {
		return fmt.Errorf("the hub wants parts of %.20q bytes", size)
	}
	var numbers []int
	addresses := map[int]string{}
	for key, address := range header {
		if n, err := strconv.Atoi(key); err == nil {
			numbers = append(numbers, n)
			addresses[n] = address
		}
	}
	slices.Sort(numbers)
	if want := (f.size + length - 1) / length; int64(len(numbers)) != want {
		return fmt.Errorf("the hub wants %d parts of %d bytes of a file of %d bytes", len(numbers), length, f.size)
	}
	var parts []part
	for i, n := range numbers {
		from := int64(i) * length
		etag, err := h.web.put(ctx, addresses[n], io.NewSectionReader(file, from, min(length, f.size-from)), nil)
		if err != nil {
			return fmt.Errorf("part %d of %d: %w", i+1, len(numbers), err)
		}
		if etag == "" {
			return fmt.Errorf("part %d of %d: the store gives no ETag", i+1, len(numbers))
		}
		parts = append(parts, part{i + 1, etag})
	}
	data, err := json.Marshal(map[string]any{"oid": f.oid, "parts": parts})
	if err != nil {
		return err
	}
	r, err := request(ctx, complete, mediaLFS, data) // an address that is a secret of its own: without the token
	if err == nil {
		_, err = h.web.do(r, nil)
	}
	return err
}

// web makes requests whose errors have no secret.
type web struct {
	client *http.Client
	secret string
}

// copyFile copies a file to a writer, and returns its size.
func copyFile(to io.Writer, path string) (size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return io.Copy(to, file)
}

// put sends content to a store, which is not the server that names it and is not given the secret.
func (w *web) put(
	ctx context.Context, address string, content *io.SectionReader, header map[string]string,
) (etag string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, address, content)
	if err != nil {
		return "", errors.New("an address of the store cannot be read") // it may be a secret
	}
	r.ContentLength = content.Size()
	if r.ContentLength == 0 {
		r.Body = http.NoBody
	}
	r.GetBody = func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(content, 0, content.Size())), nil
	}
	for key, value := range header {
		r.Header.Set(key, value)
	}
	got, err := w.do(r, nil)
	return got.Get("ETag"), err
}

// hide removes the secret from what a server says: also where it is no error of HTTP, and where a store repeats what
// the hub was sent.
func (w *web) hide(text string) string { return secret.Hide(text, []string{w.secret}) }

// statusError is an answer that is no success.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 16 << 20

// do makes a request, and reads the answer into out unless it is nil.
func (w *web) do(r *http.Request, out any) (http.Header, error) {
	resp, err := w.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Host, secret.WithoutURL(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Host, err)
	}
	if resp.StatusCode/100 != 2 {
		text := fmt.Sprintf("%s %s%s: %s: %.300s", r.Method, r.URL.Host, r.URL.Path, resp.Status, w.hide(string(body)))
		return nil, &statusError{resp.StatusCode, text}
	}
	if out == nil {
		return resp.Header, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("%s %s%s: the answer cannot be read: %w", r.Method, r.URL.Host, r.URL.Path, err)
	}
	return resp.Header, nil
}
