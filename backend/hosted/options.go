package hosted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/secret"
)

// About describes the service of a backend.
type About struct {
	// Name is that of the backend: "openai".
	Name string
	// BaseURL is the default of [Options].BaseURL.
	BaseURL string
	// URLVariable is an environment variable with another default, whose key is that of BaseURL. May be empty.
	URLVariable string
	// KeyVariables are the environment variables with the default of [Options].Key, by the host that they are for.
	KeyVariables map[string]string
	// Prices are the default at the host of BaseURL.
	Prices Prices
}

// Connection is how a service is reached.
type Connection struct {
	BaseURL *url.URL
	Key     string // "" for none
	Headers http.Header
	// Client refuses redirects to other hosts, and bounds the bodies of responses.
	Client *http.Client
	// Extra are the fields of [Options].Extra.
	Extra map[string]json.RawMessage
	// Own is set for the service of [About].BaseURL, and not for a server that speaks the same protocol.
	Own bool
}

// complete validates the options, fills in the defaults, and returns the connection that they describe.
func (o *Options) complete(about *About) (*Connection, error) {
	var problems []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	c := &Connection{Headers: o.Headers.Clone(), Client: secret.Client(o.HTTPClient)}
	c.Client.Transport = bounded{c.Client.Transport}
	fromVariable := o.connect(c, about, check)
	check(o.Timeout >= 0 && o.Backoff >= 0 && o.MaxWait >= 0, "Timeout, Backoff or MaxWait is negative")
	check(o.MaxConcurrent >= 0 && o.RequestsPerMinute >= 0 && o.TokensPerMinute >= 0,
		"MaxConcurrent, RequestsPerMinute or TokensPerMinute is negative")
	check(o.MaxSpend >= 0 && !math.IsInf(o.MaxSpend, 0), "MaxSpend is %v, want a finite number >= 0", o.MaxSpend)
	check(o.ContextLength >= 0, "ContextLength is %d, want >= 0", o.ContextLength)
	problems = append(problems, o.Prices.problems()...)
	if extra := bytes.TrimSpace(o.Extra); len(extra) > 0 {
		err := json.Unmarshal(extra, &c.Extra)
		check(err == nil, "Extra is not a JSON object: %v", err)
	}
	if len(problems) > 0 {
		err := fmt.Errorf("%w: %s", art.ErrInvalid, strings.Join(problems, "; "))
		return nil, &art.Error{Op: "open", Err: err, Hint: "correct the Options of backend/" + about.Name}
	}
	o.Timeout = cmp.Or(o.Timeout, 5*time.Minute)
	o.Retries = max(cmp.Or(o.Retries, 5), 0)
	o.Backoff = cmp.Or(o.Backoff, time.Second/2)
	o.MaxWait = cmp.Or(o.MaxWait, time.Minute)
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, 16)
	o.Dir = cmp.Or(o.Dir, ".art")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Prices == nil && c.Own {
		o.Prices = about.Prices
	}
	if c.Key == "" && c.Own && len(o.Headers) == 0 { // the service is known to need one
		err := fmt.Errorf("%w: no key for %s", art.ErrInvalid, c.BaseURL.Host)
		return c, &art.Error{Op: "open", Err: err, Hint: keyHint(about, fromVariable)}
	}
	return c, nil
}

// connect sets the URL and the key. It returns the environment variable that the key is read from, "" for none. A
// variable is only read for its own host, so that a key does not reach another.
func (o *Options) connect(c *Connection, about *About, check func(bool, string, ...any)) string {
	text, named := o.BaseURL, false
	if text == "" && about.URLVariable != "" {
		text = os.Getenv(about.URLVariable)
		named = text != ""
	}
	text = cmp.Or(text, about.BaseURL)
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		check(false, "BaseURL is not the URL of a server: http://HOST or https://HOST, with a path")
		return ""
	}
	check(u.User == nil && u.RawQuery == "" && u.Fragment == "",
		"BaseURL has a user, a query or a fragment; put secrets in Key or Headers")
	own, err := url.Parse(about.BaseURL)
	check(err == nil, "the default URL is invalid")
	u.Path = strings.TrimRight(u.Path, "/")
	c.BaseURL, c.Own = u, err == nil && u.Host == own.Host
	variable := about.KeyVariables[u.Hostname()]
	if named {
		variable = about.KeyVariables[own.Hostname()]
	}
	c.Key = strings.TrimSpace(o.Key)
	if c.Key == "" && variable != "" {
		c.Key = strings.TrimSpace(os.Getenv(variable))
	}
	check(!strings.ContainsAny(c.Key, "\r\n"), "the key has more than one line")
	return variable
}

func keyHint(about *About, variable string) string {
	if variable == "" {
		return "set Key in the Options of backend/" + about.Name
	}
	return fmt.Sprintf("set the environment variable %s, or Key in the Options of backend/%s", variable, about.Name)
}

// maxBody bounds the body of a response, in bytes.
const maxBody = 32 << 20

// errTooLarge is the error of a body beyond maxBody.
var errTooLarge = fmt.Errorf("the response is larger than %d MiB", maxBody>>20)

type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(req)
	if err == nil {
		response.Body = &boundedBody{response.Body, maxBody}
	}
	return response, err
}

// boundedBody is a body of which at most left bytes are read.
type boundedBody struct {
	io.ReadCloser
	left int64
}

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
