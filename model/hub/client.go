package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	hfhub "github.com/gomlx/go-huggingface/hub"

	"github.com/goart-dev/art/internal/secret"
)

// Limits of a repository's description, and the time that it may take to arrive.
const (
	maxListing = 32 << 20 // bytes
	maxFiles   = 100_000
)

// maxListingTime is how long a description may take to arrive. Tests shorten it.
var maxListingTime = 2 * time.Minute

type client struct {
	Options
	name Name
}

type listing struct {
	Commit string   `json:"sha"`
	Files  fileList `json:"siblings"`
}

// fileList is a list of at most maxFiles files, which is checked before there is memory for more.
type fileList []hfhub.FileInfo

func (l *fileList) UnmarshalJSON(data []byte) error {
	in := json.NewDecoder(bytes.NewReader(data))
	if start, err := in.Token(); err != nil || start != json.Delim('[') {
		return errors.New("siblings is not a list")
	}
	*l = nil
	for in.More() {
		if len(*l) == maxFiles {
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
		var f hfhub.FileInfo
		if err := in.Decode(&f); err != nil {
			return err
		}
		*l = append(*l, f)
	}
	return nil
}

type remoteFile struct {
	name   string
	size   int64
	digest digest
}

// defaultClient has timeouts for connecting and for the response header.
func defaultClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	transport.ResponseHeaderTimeout = 30 * time.Second
	return &http.Client{Transport: transport}
}

var errSlowListing = errors.New("the hub does not finish its description of the model")

func (c *client) list(ctx context.Context) (listing, error) {
	var l listing
	address := fmt.Sprintf("%s/api/models/%s/revision/%s?blobs=true", c.Endpoint, c.name.Repo,
		url.PathEscape(c.name.Revision))
	err := c.retry(ctx, func() error {
		ctx, cancel := context.WithTimeoutCause(ctx, maxListingTime, errSlowListing)
		defer cancel()
		resp, err := c.do(ctx, http.MethodGet, address, 0, followAll)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return c.refused(resp)
		}
		content, err := io.ReadAll(io.LimitReader(resp.Body, maxListing+1))
		if err != nil {
			return temporary(cmp.Or(context.Cause(ctx), err))
		}
		if len(content) > maxListing {
			return fmt.Errorf("%s describes the model in more than %d MiB", c.Endpoint, maxListing>>20)
		}
		l = listing{}
		if err := json.Unmarshal(content, &l); err != nil {
			return fmt.Errorf("%s is not a hub: its response is not the description of a model: %w", c.Endpoint, err)
		}
		return nil
	}, nil)
	if err == nil && !isCommit(l.Commit) {
		err = fmt.Errorf("%s gives %q as the commit of %s, which is not 40 hexadecimal digits", c.Endpoint, l.Commit,
			c.name.Revision)
	}
	return l, err
}

func (l listing) names() []string {
	names := make([]string, len(l.Files))
	for i, f := range l.Files {
		names[i] = f.Name
	}
	return names
}

func (c *client) address(commit, file string) string {
	return fmt.Sprintf("%s/%s/resolve/%s/%s", c.Endpoint, c.name.Repo, commit, (&url.URL{Path: file}).EscapedPath())
}

// describe requests the digest and the size of a file, and compares the digest with that of the listing, if any.
func (c *client) describe(ctx context.Context, commit string, file hfhub.FileInfo) (remoteFile, error) {
	out := remoteFile{name: file.Name}
	err := c.retry(ctx, func() error {
		resp, err := c.do(ctx, http.MethodHead, c.address(commit, file.Name), 0, followRelative)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK && !isRedirect(resp.StatusCode) {
			return c.refused(resp)
		}
		out.digest, out.size, err = readHead(resp)
		return err
	}, nil)
	if err != nil {
		return out, fmt.Errorf("%s: %w", file.Name, err)
	}
	if err := checkSize(file.Name, out.size); err != nil {
		return out, err
	}
	sum, size := listed(file)
	if size > 0 && size != out.size {
		return out, fmt.Errorf("%s: the hub lists %d bytes and sends %d: its responses contradict each other",
			file.Name, size, out.size)
	}
	if sum != "" && sum != string(out.digest) {
		return out, fmt.Errorf("%s: the hub lists the checksum %s and sends %s: its responses contradict each other",
			file.Name, sum, out.digest)
	}
	return out, nil
}

// readHead returns the digest and size in the header of a file. A file on another server has them in separate fields.
func readHead(resp *http.Response) (digest, int64, error) {
	size := resp.ContentLength
	if linked := resp.Header.Get(hfhub.HeaderXLinkedSize); linked != "" || isRedirect(resp.StatusCode) {
		n, err := strconv.ParseInt(linked, 10, 64)
		if err != nil {
			return "", 0, fmt.Errorf("the server gives no size for it (%s %q): use another HF_ENDPOINT", hfhub.HeaderXLinkedSize,
				linked)
		}
		size = n
	}
	if size < 0 {
		return "", 0, fmt.Errorf("the server gives no size for it: use another HF_ENDPOINT")
	}
	d, err := parseDigest(cmp.Or(resp.Header.Get(hfhub.HeaderXLinkedETag), resp.Header.Get("ETag")))
	return d, size, err
}

// listed returns the digest and the size in a listing, "" and 0 where the hub gives none.
func listed(file hfhub.FileInfo) (digest string, size int64) {
	if file.LFS != nil {
		return file.LFS.SHA256, file.LFS.Size
	}
	return file.BlobID, file.Size
}

func (c *client) do(
	ctx context.Context, method, address string, offset int64, follow redirectPolicy,
) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "goart-dev/art")
	req.Header.Set("Accept-Encoding", "identity") // sizes and ranges are those of the file
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	own := secret.Client(c.Client)
	own.CheckRedirect = follow // a large file is at another host, which does not get the token
	resp, err := own.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, temporary(fmt.Errorf("cannot reach the hub: %s: %w; set HF_HUB_OFFLINE=1 to use the cache only",
			c.Endpoint, secret.WithoutURL(err)))
	}
	return resp, nil
}

type redirectPolicy = func(req *http.Request, via []*http.Request) error

// followAll follows every redirect, and drops the token for servers other than the hub.
func followAll(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) >= 10:
		return fmt.Errorf("the server redirects 10 times")
	case first.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("the hub redirects from https to %s, which is not protected in transit", req.URL.Scheme)
	case !secret.SameOrigin(req.URL, first) && req.URL.Host != first.Host: // from http to https of a host is fine
		req.Header.Del("Authorization")
	}
	return nil
}

// followRelative follows redirects within the hub, such as those of renamed models. Others point to the storage of a
// large file, which the hub's own response describes.
func followRelative(req *http.Request, via []*http.Request) error {
	location, err := url.Parse(req.Response.Header.Get("Location"))
	if err != nil || location.Host != "" {
		return http.ErrUseLastResponse
	}
	return followAll(req, via)
}

func isRedirect(status int) bool { return status >= 300 && status < 400 }

// refused explains a status other than success, and says what to do.
func (c *client) refused(resp *http.Response) error {
	code := resp.Header.Get("X-Error-Code")
	err := fmt.Errorf("%s answers %d %s%s", resp.Request.URL.Host, resp.StatusCode, http.StatusText(resp.StatusCode),
		quoted(resp.Header.Get("X-Error-Message")))
	page := c.Endpoint + "/" + c.name.Repo
	switch status := resp.StatusCode; {
	case status == http.StatusTooManyRequests || status >= 500 || status == http.StatusRequestTimeout:
		return temporary(err)
	case code == "GatedRepo":
		return fmt.Errorf("%w: access must be granted: ask for it on %s, and set HF_TOKEN to a token of the same account",
			err, page)
	case code == "RevisionNotFound":
		return fmt.Errorf("%w: there is no revision %q; %s/tree/main lists the branches and tags", err, c.name.Revision, page)
	case code == "EntryNotFound":
		return fmt.Errorf("%w: the file is gone; try again", err)
	case status == http.StatusUnauthorized && c.Token != "":
		return fmt.Errorf("%w: the name is wrong, or the token (HF_TOKEN, or the token file) "+
			"is not valid or may not read the model", err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound:
		return fmt.Errorf("%w: there is no such model, or it is private: "+
			"check the name, and set HF_TOKEN to a token that may read it", err)
	}
	return err
}

// quoted quotes a message of a server for an error, shortened and without control characters.
func quoted(message string) string {
	if message == "" {
		return ""
	}
	if len(message) > 200 {
		message = strings.ToValidUTF8(message[:200], "") + "..."
	}
	return " " + strconv.Quote(message)
}

// tries bounds the attempts of a request without progress.
const tries = 5

// firstPause is the time before the second attempt; it doubles each time. Tests shorten it.
var firstPause = time.Second

type temporaryError struct{ error }

func (e temporaryError) Unwrap() error { return e.error }

func temporary(err error) error { return temporaryError{err} }

// retry repeats a request while it fails with a temporary error. Progress, if there may be any, resets the count.
func (c *client) retry(ctx context.Context, request func() error, progressed func() bool) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := request()
		if !errors.As(err, new(temporaryError)) {
			return err
		}
		if progressed != nil && progressed() {
			try, pause = 1, firstPause
		}
		if try == tries {
			return err
		}
		if c.Retry != nil {
			c.Retry(Retry{Err: err, Pause: pause, Try: try, Tries: tries})
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
			pause *= 2
		}
	}
}
