package hosted

import (
	"fmt"
	"io"
	"net/http"

	"github.com/goart-dev/art/internal/secret"
)

// MaxBody bounds the body of a response, in bytes.
const MaxBody = 32 << 20

// errTooLarge is the error of a body beyond MaxBody.
var errTooLarge = fmt.Errorf("the response is larger than %d MiB", MaxBody>>20)

// newClient copies a client, nil being the default, for requests with keys, and adds the bounds of package hosted.
func newClient(from *http.Client) *http.Client {
	client := secret.Client(from)
	client.Transport = bounded{client.Transport}
	return client
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
