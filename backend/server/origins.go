package server

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/goart-dev/art/internal/wire"
)

// origins are the web origins whose pages may use the server.
type origins struct {
	listed map[string]bool // canonical forms
	any    bool
}

// newOrigins parses [art.HandlerOptions].Origins.
func newOrigins(p *[]string, list []string) origins {
	o := origins{listed: map[string]bool{}}
	for _, entry := range list {
		parsed, ok := parseOrigin(entry)
		switch {
		case entry == "*":
			o.any = true
		case !ok:
			*p = append(*p, fmt.Sprintf("Origins has %q, want a scheme and a host like https://app.example.com", entry))
		default:
			o.listed[parsed.String()] = true
		}
	}
	return o
}

// origin is the origin of a web page.
type origin struct {
	scheme string
	hostPort
}

// String returns the canonical form.
func (o origin) String() string { return o.scheme + "://" + o.host + ":" + o.port }

// defaultPorts are the ports that URLs leave out, by scheme.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// parseOrigin parses an origin. "null", which pages without an origin send, is not one.
func parseOrigin(text string) (origin, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || text[len(u.Scheme):] != "://"+u.Host { // no user, path or query
		return origin{}, false
	}
	host, ok := parseHost(u.Host)
	if host.port == "" {
		host.port = defaultPorts[u.Scheme]
	}
	return origin{u.Scheme, host}, ok
}

// check refuses requests of pages of other origins, and sets the CORS headers for the rest. Only browsers send origins.
func (o origins) check(w http.ResponseWriter, r *http.Request) error {
	w.Header().Add("Vary", "Origin")
	sent := r.Header.Values("Origin")
	if len(sent) == 0 {
		return nil
	}
	from, ok := parseOrigin(sent[0])
	if len(sent) == 1 && ok && sameHost(from, r.Host) {
		return nil
	}
	isListed := ok && o.listed[from.String()]
	if len(sent) > 1 || !o.any && !isListed {
		return &wire.Error{
			Status: http.StatusForbidden,
			Message: fmt.Sprintf("pages of the origin %s are not served; list it in Origins of HandlerOptions",
				wire.Quote(sent[0])),
			Type: wire.TypeInvalid,
			Code: "origin_not_allowed",
		}
	}
	w.Header().Set("Access-Control-Allow-Origin", sent[0])
	w.Header().Set("Access-Control-Expose-Headers", "Retry-After, X-Should-Retry")
	return nil
}

// sameHost reports whether a page comes from the server itself. The scheme is not compared: the server does not know
// that of a proxy in front of it.
func sameHost(from origin, host string) bool {
	to, ok := parseHost(host)
	if to.port == "" {
		to.port = defaultPorts[from.scheme]
	}
	return ok && to == from.hostPort
}

// isPreflight reports whether a request is a CORS preflight.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

// answerPreflight allows the served methods and any headers.
func answerPreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	if requested := r.Header.Get("Access-Control-Request-Headers"); requested != "" {
		h.Set("Access-Control-Allow-Headers", requested)
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
