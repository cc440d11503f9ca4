package dash

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
)

// keyHeader is where [server.Guard] finds a key.
const keyHeader = "X-Api-Key"

// session lets browsers in, which cannot send a key with a link. A one-time token or a key makes a cookie, whose secret
// is one of the keys that the guard accepts.
type session struct {
	access art.HandlerOptions
	secret string // of the cookie; "": no key is needed

	mu     sync.Mutex
	tokens map[[sha256.Size]byte]bool // that have not been used
}

func newSession(access *art.HandlerOptions) *session {
	s := &session{tokens: map[[sha256.Size]byte]bool{}}
	if access != nil {
		s.access = *access
	}
	if len(s.access.Keys) > 0 {
		s.secret = rand.Text()
		s.access.Keys = append(slices.Clone(s.access.Keys), s.secret)
	}
	if s.access.MaxBody == 0 {
		s.access.MaxBody = 1 << 20 // forms
	}
	return s
}

// guard puts the guard of the server before the pages. Requests that change something must come from a page of this
// server, also where a browser sends no Origin.
func (s *session) guard(
	next http.Handler, refuse func(http.ResponseWriter, *http.Request, error),
) (http.Handler, error) {
	cross := http.NewCrossOriginProtection()
	bounded := http.MaxBytesHandler(cross.Handler(s.signIn(next)), s.access.MaxBody)
	return server.Guard(bounded, &s.access, &server.GuardConfig{Refuse: refuse})
}

// link returns an address with a new token.
func (s *session) link(base string) string {
	if s.secret == "" {
		return base
	}
	token := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[sha256.Sum256([]byte(token))] = true
	return base + "?token=" + token
}

// admit hands a request to the guard, with the key that its cookie, its token or its form stands for.
func (s *session) admit(guard http.Handler, w http.ResponseWriter, r *http.Request) {
	if s.secret != "" && r.Header.Get(keyHeader) == "" && r.Header.Get("Authorization") == "" {
		if key := s.keyOf(r); key != "" {
			r = r.Clone(r.Context())
			r.Header.Set(keyHeader, key)
		}
	}
	guard.ServeHTTP(w, r)
}

// keyOf returns what a browser sends in place of the header.
func (s *session) keyOf(r *http.Request) string {
	cookie, err := r.Cookie(cookieName(r))
	if err == nil && subtle.ConstantTimeCompare([]byte(cookie.Value), []byte(s.secret)) == 1 {
		return s.secret
	}
	if s.isToken(r.URL.Query().Get("token")) {
		return s.secret
	}
	if r.Method == http.MethodPost && r.URL.Path == "/" {
		r.Body = http.MaxBytesReader(nil, r.Body, 4096)
		return r.PostFormValue("key")
	}
	return ""
}

// cookieName has the port: browsers send cookies to all ports of a host.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return "art_dash"
	}
	return "art_dash_" + port
}

// isToken reports whether a token has not been used.
func (s *session) isToken(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return token != "" && s.tokens[sha256.Sum256([]byte(token))]
}

// signIn gives those that came with a token or with the key in a form a cookie, and sends them to the address without
// it. The guard has admitted them.
func (s *session) signIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		isForm := r.Method == http.MethodPost && r.URL.Path == "/"
		if !query.Has("token") && !isForm {
			next.ServeHTTP(w, r)
			return
		}
		if cookie, err := r.Cookie(cookieName(r)); err != nil || cookie.Value != s.secret {
			s.mu.Lock()
			delete(s.tokens, sha256.Sum256([]byte(query.Get("token"))))
			s.mu.Unlock()
			http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: s.secret, HttpOnly: true,
				Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
		}
		query.Del("token")
		w.Header().Set("Location", localURL(r.URL.Path, query))
		w.WriteHeader(http.StatusSeeOther)
	})
}

// localURL is a relative address of a page: it stays on this server, under whatever path the handler is mounted.
func localURL(path string, query url.Values) string {
	to := "./" + strings.TrimLeft(path, "/\\")
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	return to
}

// setHeaders forbids the browser everything but files of this server.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
