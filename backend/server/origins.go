package server

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/wire"
)

// hosts are the accepted values of the Host header.
type hosts struct {
	listed []hostPort
	any    bool
}

// hostPort is a host in lower case, and a port; "" is any.
type hostPort struct{ host, port string }

// newHosts parses [art.HandlerOptions].Hosts.
func newHosts(p *[]string, list []string) hosts {
	var h hosts
	for _, entry := range list {
		parsed, ok := parseHost(entry)
		switch {
		case entry == "*":
			h.any = true
		case !ok:
			*p = append(*p, fmt.Sprintf("Hosts has %q, want a name or an address, with or without a port", entry))
		default:
			h.listed = append(h.listed, parsed)
		}
	}
	return h
}

// parseHost parses "name", "name:port", "1.2.3.4", "::1", "[::1]" and "[::1]:port".
func parseHost(text string) (hostPort, bool) {
	host, port, err := net.SplitHostPort(text)
	if err != nil { // no port
		host, port = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), ""
	}
	if strings.Trim(port, "0123456789") != "" {
		return hostPort{}, false
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	const never = "/:*@[]?# \t" // in a name, or the zone of an address
	if addr, err := netip.ParseAddr(host); err == nil {
		return hostPort{addr.Unmap().String(), port}, !strings.ContainsAny(addr.Zone(), never)
	}
	return hostPort{host, port}, host != "" && !strings.HasSuffix(host, ".") && !strings.ContainsAny(host, never)
}

// check refuses requests to other hosts, which protects against DNS rebinding.
func (h hosts) check(r *http.Request) error {
	if got, ok := parseHost(r.Host); ok && (h.any || h.isListed(got) || isLocal(r, got.host)) {
		return nil
	}
	return refused(http.StatusForbidden, "host_not_allowed",
		"the host %s is not served, for a web site could have let its name point here; "+
			"list it in Hosts of HandlerOptions, or use localhost", wire.Quote(r.Host))
}

// isListed reports whether a host is in the list, with its port or without one.
func (h hosts) isListed(got hostPort) bool {
	return slices.ContainsFunc(h.listed, func(entry hostPort) bool {
		return entry.host == got.host && (entry.port == "" || entry.port == got.port)
	})
}

// isLocal reports whether a host is a loopback name or address, or the local address of the request's connection. No
// name that can be registered is local.
func isLocal(r *http.Request, host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if addr.IsLoopback() {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap().WithZone("") == addr.WithZone("")
}

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
	host.port = cmp.Or(host.port, defaultPorts[u.Scheme])
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
		return refused(http.StatusForbidden, "origin_not_allowed",
			"pages of the origin %s are not served; list it in Origins of HandlerOptions",
			wire.Quote(sent[0]))
	}
	w.Header().Set("Access-Control-Allow-Origin", sent[0])
	w.Header().Set("Access-Control-Expose-Headers", "Retry-After, X-Should-Retry")
	return nil
}

// sameHost reports whether a page comes from the server itself. The scheme is not compared: the server does not know
// that of a proxy in front of it.
func sameHost(from origin, host string) bool {
	to, ok := parseHost(host)
	to.port = cmp.Or(to.port, defaultPorts[from.scheme])
	return ok && to == from.hostPort
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

func answerPreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	if requested := r.Header.Get("Access-Control-Request-Headers"); requested != "" {
		h.Set("Access-Control-Allow-Headers", requested)
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}
