package openai

import (
	"fmt"
	"net/http"
	"net/url"
)

// origins are the web sites whose pages may use a server.
type origins struct {
	listed map[string]bool // in canonical form
	any    bool
}

// newOrigins reads [art.HandlerOptions].Origins.
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

// origin is where a page comes from.
type origin struct {
	scheme string
	hostPort
}

// String returns the canonical form.
func (o origin) String() string { return o.scheme + "://" + o.host + ":" + o.port }

// defaultPorts are those that a URL of a scheme leaves out.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// parseOrigin reads an origin. "null", that of pages without one, is none.
func parseOrigin(text string) (origin, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || text[len(u.Scheme):] != "://"+u.Host { // nothing else
		return origin{}, false
	}
	host, ok := parseHost(u.Host)
	if host.port == "" {
		host.port = defaultPorts[u.Scheme]
	}
	return origin{u.Scheme, host}, ok
}

// check refuses requests of pages that are not allowed, and gives the others the headers of CORS. Programs that are no
// browsers send no origin.
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
		return &Error{
			Status:  http.StatusForbidden,
			Message: fmt.Sprintf("pages of the origin %s are not served; list it in Origins of HandlerOptions", quoted(sent[0])),
			Type:    typeInvalid,
			Code:    "origin_not_allowed",
		}
	}
	w.Header().Set("Access-Control-Allow-Origin", sent[0])
	w.Header().Set("Access-Control-Expose-Headers", "Retry-After, X-Should-Retry")
	return nil
}

// sameHost reports whether a page comes from the server itself. Its scheme is not compared: a server does not know that
// of a proxy before it.
func sameHost(from origin, host string) bool {
	to, ok := parseHost(host)
	if to.port == "" {
		to.port = defaultPorts[from.scheme]
	}
	return ok && to == from.hostPort
}

// isPreflight reports whether a browser asks what a page may send.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

// answerPreflight allows what there is, with whatever headers the page's client has.
func answerPreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
