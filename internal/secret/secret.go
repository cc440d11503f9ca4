// Package secret keeps credentials where they belong: a request that carries one stays with the host that it is for,
// and an error, a log or a bundle of files does not repeat it.
package secret

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
	check := client.CheckRedirect
	client.Transport, client.CheckRedirect = hiding{next}, func(req *http.Request, via []*http.Request) error {
		switch {
		case !SameOrigin(req.URL, via[0].URL):
			return &RedirectError{Origin(req.URL)}
		case check != nil:
			return check(req, via)
		case len(via) >= 10:
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
	return client
}

// RedirectError is a redirect to another origin, which was not followed.
type RedirectError struct{ To string }

// Error says where the redirect leads.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("the server redirects to %s, which does not get the key; configure that address if it is right",
		e.To)
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
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)) // one that breaks off ends where it does
	closing := response.Body.Close()
	body = []byte(Hide(string(body), secrets))
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("Content-Length")
	return response, HideError(closing, secrets)
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

func (e *hiddenError) Error() string { return e.text }

func (e *hiddenError) Unwrap() error { return e.err }

// harmless are the headers that say nothing secret, besides those that begin with Accept or Content.
var harmless = []string{"User-Agent", "Range", "Connection", "Cache-Control", "Traceparent", "Mcp-Protocol-Version"}

// OfHeader returns what a header says that must not be repeated: the values of all fields but some standard ones, since
// the name of a field does not tell which services read a key from it. The user's name and password of basic
// authentication are there as such too.
func OfHeader(header http.Header) (secrets []string) {
	for name, values := range header {
		if strings.HasPrefix(name, "Accept") || strings.HasPrefix(name, "Content") || slices.Contains(harmless, name) {
			continue
		}
		for _, value := range values {
			secrets = append(secrets, value)
			scheme, rest, ok := strings.Cut(value, " ") // "Bearer TOKEN"
			if !ok {
				continue
			}
			secrets = append(secrets, strings.TrimSpace(rest))
			if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
				_, password, _ := strings.Cut(string(plain), ":")
				secrets = append(secrets, string(plain), password)
			}
		}
	}
	return secrets
}

// Lengths of secrets, in bytes. Shorter ones than minLength cannot be told from other text; those below wordLength are
// hidden as whole words only.
const (
	minLength  = 4
	wordLength = 10
)

// Hide replaces secrets within text, also where characters are escaped as in JSON, in a URL or in HTML. Hide first and
// shorten then: what is left of a secret that is cut is not found.
func Hide(text string, secrets []string) string {
	// The longest go first: one may contain another.
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return len(s) < minLength })
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range slices.Compact(secrets) {
		text = hideOne(text, secret)
	}
	return text
}

func hideOne(text, secret string) string {
	var out strings.Builder
	from := 0
	for i := 0; i < len(text); i++ {
		if text[i] != secret[0] && text[i] != '\\' && text[i] != '%' && text[i] != '&' {
			continue
		}
		n := prefix(text[i:], secret)
		isWord := (i == 0 || !isAlphanumeric(text[i-1])) && (i+n == len(text) || !isAlphanumeric(text[i+n]))
		if n == 0 || len(secret) < wordLength && !isWord {
			continue
		}
		out.WriteString(text[from:i] + Redacted)
		from = i + n
		i = from - 1
	}
	if from == 0 {
		return text
	}
	out.WriteString(text[from:])
	return out.String()
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}

// prefix returns how many bytes of text are the secret, 0 when text does not begin with it.
func prefix(text, secret string) (n int) {
	if strings.HasPrefix(text, secret) { // which may look escaped itself
		return len(secret)
	}
	for i := range len(secret) {
		if n == len(text) {
			return 0
		}
		if c, width := unescape(text[n:]); width > 0 && c == secret[i] {
			n += width
		} else if text[n] == secret[i] {
			n++
		} else {
			return 0
		}
	}
	return n
}

// unescape reads an escaped character; width is 0 when there is none.
func unescape(text string) (c byte, width int) {
	switch {
	case len(text) >= 3 && text[0] == '%':
		return hexByte(text[1:3], 3)
	case len(text) >= 6 && text[0] == '\\' && text[1] == 'u' && text[2:4] == "00":
		return hexByte(text[4:6], 6)
	case len(text) >= 4 && text[0] == '\\' && text[1] == 'x':
		return hexByte(text[2:4], 4)
	case len(text) >= 2 && text[0] == '\\':
		return text[1], 2
	case text[0] == '&':
		end := strings.IndexByte(text[:min(len(text), 10)], ';')
		if end < 0 {
			return 0, 0
		}
		if plain := html.UnescapeString(text[:end+1]); len(plain) == 1 {
			return plain[0], end + 1
		}
	}
	return 0, 0
}

func hexByte(digits string, width int) (byte, int) {
	n, err := strconv.ParseUint(digits, 16, 8)
	if err != nil {
		return 0, 0
	}
	return byte(n), width
}
