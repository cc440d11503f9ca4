// Package secret keeps credentials where they belong: a request that carries one stays with the host that it is for,
// and an error, a log or a bundle of files does not repeat it.
package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Client returns a client for requests that carry credentials, in whatever header. It is a copy of from, of which nil
// is the default, with two differences:
//
//   - A redirect to another origin is refused, with a [RedirectError]: the standard library drops only Authorization
//     and cookies there, and those not for another port, for a subdomain or for http in place of https.
//   - What the headers of a request say is hidden in a response that is no success, and in the error of a request:
//     servers and proxies repeat what they were sent. At most 64 KiB of such a response are left.
func Client(from *http.Client) *http.Client {
	client := &http.Client{}
	if from != nil {
		*client = *from
	}
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport, client.CheckRedirect = hiding{next}, sameOrigin(client.CheckRedirect)
	return client
}

// RedirectError is a redirect to another origin, which was not followed.
type RedirectError struct{ To string }

// Error says where the redirect leads.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("the server redirects to %s, which does not get the key; configure that address if it is right",
		e.To)
}

func sameOrigin(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		switch {
		case !SameOrigin(req.URL, via[0].URL):
			return &RedirectError{Origin(req.URL)}
		case next != nil:
			return next(req, via)
		case len(via) >= 10:
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
}

// SameOrigin reports whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool { return Origin(a) == Origin(b) }

// Origin is the scheme, the host and the port of a URL: "https://example.com:443".
func Origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// maxErrorBody bounds the body of a response that is no success, in bytes.
const maxErrorBody = 64 << 10

// hiding hides the values of the headers of a request in what is reported of it.
type hiding struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (h hiding) RoundTrip(req *http.Request) (*http.Response, error) {
	secrets := OfHeader(req.Header)
	if req.URL.User != nil { // sent as a header by the standard library
		password, _ := req.URL.User.Password()
		secrets = append(secrets, password)
	}
	response, err := h.next.RoundTrip(req)
	if err != nil || len(secrets) == 0 || response.StatusCode/100 == 2 || response.StatusCode/100 == 1 {
		return response, HideError(err, secrets)
	}
	response.Status = Hide(response.Status, secrets)
	for name, values := range response.Header {
		for i := range values {
			response.Header[name][i] = Hide(values[i], secrets)
		}
	}
	return response, hideBody(response, secrets)
}

// hideBody reads the body of a response, and puts one without secrets in its place. A body that breaks off ends where
// it does.
func hideBody(response *http.Response, secrets []string) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	closing := response.Body.Close()
	body = []byte(Hide(string(body), secrets))
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("Content-Length")
	if closing != nil {
		return HideError(closing, secrets)
	}
	return nil
}

// WithoutURL is an error of a client without the address of its request, which may have a signature or a key.
func WithoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// HideError returns an error whose text has no secrets. What err wraps can still be found; nil stays nil.
func HideError(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	if text := Hide(err.Error(), secrets); text != err.Error() {
		return &hiddenError{text, err}
	}
	return err
}

// hiddenError is an error with another text.
type hiddenError struct {
	text string
	err  error
}

// Error implements error.
func (e *hiddenError) Error() string { return e.text }

// Unwrap returns the original.
func (e *hiddenError) Unwrap() error { return e.err }
