package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
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
	if addr, err := netip.ParseAddr(host); err == nil {
		return hostPort{addr.Unmap().String(), port}, true
	}
	return hostPort{host, port}, host != "" && !strings.HasSuffix(host, ".") && !strings.ContainsAny(host, "/:*@[]?# \t")
}

// check refuses requests to other hosts, which protects against DNS rebinding.
func (h hosts) check(r *http.Request) error {
	if got, ok := parseHost(r.Host); ok && (h.any || h.isListed(got) || isLocal(r, got.host)) {
		return nil
	}
	return &wire.Error{
		Status: http.StatusForbidden,
		Message: fmt.Sprintf("the host %s is not served, for a web site could have let its name point here; "+
			"list it in Hosts of HandlerOptions, or use localhost", wire.Quote(r.Host)),
		Type: wire.TypeInvalid,
		Code: "host_not_allowed",
	}
}

// isListed reports whether a host is in the list, with its port or without one.
func (h hosts) isListed(got hostPort) bool {
	for _, entry := range h.listed {
		if entry.host == got.host && (entry.port == "" || entry.port == got.port) {
			return true
		}
	}
	return false
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
