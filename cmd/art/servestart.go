package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"strings"
)

// start is what a server says of itself when it can be called.
type start struct {
	address     net.Addr
	certificate *tls.Certificate // nil: there is no TLS
	file        string           // of the certificate
	models      []string
	tinker      bool   // the models are bases of the Tinker API
	generated   bool   // the key is new, and not known to anyone
	page        string // link to the page of the runs
	tenants     bool   // clients have the keys of tenants
	operator    string // the operator's key, if it is new
}

// text has the address, the models, the key if it is new, and a command to try it. A key that was given is not
// repeated: the text may go into a log.
func (s *start) text(key string) string {
	var b strings.Builder
	root := s.root()
	names := strings.Join(s.models, ", ")
	if s.tinker {
		fmt.Fprintf(&b, "training %s for clients of Tinker at %s and of W&B Training at %s/v1\n", names, root, root)
	} else {
		fmt.Fprintf(&b, "serving %s at %s/v1, for Anthropic's clients at %s\n", names, root, root)
	}
	switch {
	case s.generated:
		fmt.Fprintf(&b, "key: %s (a new one; choose your own with $%s)\n", key, keyVariable)
	case s.tenants:
		key = "KEY_OF_A_TENANT"
	default:
		key = "$" + keyVariable
	}
	if s.operator != "" {
		fmt.Fprintf(&b, "operator's key: %s (a new one; choose your own with $%s)\n", s.operator, operatorVariable)
	}
	if s.certificate == nil && !s.loopback() {
		b.WriteString("warning: without --tls-cert the key and all texts cross the network in the clear\n")
	}
	if s.page != "" {
		fmt.Fprintf(&b, "runs at %s\n", s.page)
	}
	if s.tinker {
		fmt.Fprintf(&b, "try it:\nTINKER_BASE_URL=%s TINKER_API_KEY=%s python your_program.py\n", root, key)
		return b.String()
	}
	b.WriteString("try it:\ncurl ")
	if s.certificate != nil {
		b.WriteString("--cacert " + shellQuote(s.file) + " ")
	}
	body, _ := json.Marshal(map[string]any{ // strings can always be encoded
		"model": s.models[0], "messages": []map[string]string{{"role": "user", "content": "Hello"}}, "max_tokens": 64,
	})
	fmt.Fprintf(&b, "%s/v1/chat/completions -H \"Authorization: Bearer %s\" \\\n", root, key)
	fmt.Fprintf(&b, "  -H 'Content-Type: application/json' -d %s\n", shellQuote(string(body)))
	return b.String()
}

// root is the URL under which this machine reaches the server.
func (s *start) root() string {
	host, port, _ := net.SplitHostPort(s.address.String()) // the address of a listener has both
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if s.certificate == nil {
		return "http://" + net.JoinHostPort(host, port)
	}
	return "https://" + net.JoinHostPort(s.certifiedHost(host), port)
}

// certifiedHost returns a name that the certificate is valid for, preferably that of the address.
func (s *start) certifiedHost(host string) string {
	leaf := s.certificate.Leaf
	for _, name := range append([]string{host, "localhost"}, leaf.DNSNames...) {
		if leaf.VerifyHostname(name) == nil {
			return name
		}
	}
	return host
}

// loopback reports whether only this machine reaches the server.
func (s *start) loopback() bool {
	host, _, _ := net.SplitHostPort(s.address.String())
	return net.ParseIP(host).IsLoopback()
}

// plainWord is what no shell reads as anything else.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shellQuote quotes a word for a POSIX shell, if it has to be quoted.
func shellQuote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
