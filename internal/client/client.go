// Package client is what backends share that train at a service.
package client

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art"
)

// Plain reports whether an adapter has nothing that the protocols cannot say: a choice of layers, ranks and alphas of
// single layers, rsLoRA and DoRA.
func Plain(l art.LoRA) bool {
	return len(l.Targets)+len(l.Ranks)+len(l.Alphas) == 0 && l.TargetPattern == "" && !l.RankStabilized && !l.DoRA
}

// ErrNoBase is the error of a model without a base: which one the service has is not known here.
var ErrNoBase = &art.Error{
	Op: "register", Err: fmt.Errorf("%w: ModelOptions.Base is empty", art.ErrInvalid),
	Hint: "name a base model of the service",
}

// Address parses the address of a service, whose path ends without a slash.
func Address(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: BaseURL is no address of a service", art.ErrInvalid)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%w: BaseURL has a user, a query or a fragment; put the key in Key", art.ErrInvalid)
	}
	return u, nil
}

// RetryAfter is the time that a response asks to wait, up to a minute; 0 when it does not ask.
func RetryAfter(h http.Header) time.Duration {
	s, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil || !(s > 0 && s <= 60) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// Wait is the time before a request is sent again after so many failures, from 0: what the service asks for, or a
// random one that grows from half a second to ten.
func Wait(failures int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	longest := min(10*time.Second, time.Second/2<<min(failures, 5))
	return longest - rand.N(longest/4)
}
