package hosted

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// MaxBody bounds the body of a response, in bytes.
const MaxBody = 32 << 20

// errTooLarge is the error of a body beyond MaxBody.
var errTooLarge = fmt.Errorf("the response is larger than %d MiB", MaxBody>>20)

// newClient copies a client, nil being the default, and adds the bounds of package hosted.
func newClient(from *http.Client) *http.Client {
	client := &http.Client{}
	if from != nil {
		*client = *from
	}
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport = bounded{next}
	client.CheckRedirect = sameHost(client.CheckRedirect)
	return client
}

// sameHost refuses redirects that would carry keys and conversations to another host, or out of TLS.
func sameHost(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		from := via[0].URL
		switch {
		case req.URL.Host != from.Host || req.URL.Scheme != from.Scheme:
			return &redirectError{req.URL.Scheme + "://" + req.URL.Host}
		case next != nil:
			return next(req, via)
		case len(via) >= 10:
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
}

// redirectError is a redirect that was refused.
type redirectError struct{ to string }

// Error says where the redirect leads.
func (e *redirectError) Error() string {
	return fmt.Sprintf("the server redirects to %s, which does not get the key", e.to)
}

// bounded bounds the bodies of responses.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(req)
	if err == nil {
		response.Body = &boundedBody{response.Body, MaxBody}
	}
	return response, err
}

// boundedBody is a body of which at most left bytes are read.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements [io.Reader].
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n, errTooLarge
	}
	return n, err
}
