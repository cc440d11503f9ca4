// Package hubtest is a hub for tests: it serves one model by the protocol of the Hugging Face hub, on this machine.
//
// The description of a revision and small files come from the hub itself. Large files, those that end in .safetensors,
// are answered with a redirect to a second server, which knows ranges and nothing of tokens.
package hubtest

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's name of a small file
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is a running hub. The fields may be changed between requests.
type Server struct {
	Model  string            // ORG/NAME
	Commit string            // of main, 40 hexadecimal digits
	Files  map[string][]byte // by name
	Token  string            // demanded, when it is not empty
	Gated  bool              // nobody was granted access
	// Fault, when it is not nil, may answer a request for the content of a file in place of the server.
	Fault func(w http.ResponseWriter, r *http.Request, content []byte) (answered bool)
	// Listing, when it is not nil, changes the description of the revision.
	Listing func(map[string]any)

	hub, store *httptest.Server
	mu         sync.Mutex
	requests   []Request
}

// Request is one that the server got.
type Request struct {
	Method, Path, Range string
	Token               bool // it carried one
	Store               bool // it came to the server of large files
}

// New starts a hub with one model. Close ends it.
func New(model string, files map[string][]byte) *Server {
	s := &Server{Model: model, Commit: strings.Repeat("0123456789", 4), Files: files}
	s.hub = httptest.NewServer(s.record(false, s.serveHub))
	s.store = httptest.NewServer(s.record(true, s.serveStore))
	return s
}

// URL is the endpoint.
func (s *Server) URL() string { return s.hub.URL }

// Close ends the hub.
func (s *Server) Close() {
	s.hub.Close()
	s.store.Close()
}

// Requests returns what was asked since the last call.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

func (s *Server) record(store bool, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, Request{
			r.Method, r.URL.Path, r.Header.Get("Range"), r.Header.Get("Authorization") != "", store,
		})
		s.mu.Unlock()
		next(w, r)
	})
}

// serveHub answers what the hub itself answers.
func (s *Server) serveHub(w http.ResponseWriter, r *http.Request) {
	revision, describe := strings.CutPrefix(r.URL.Path, "/api/models/"+s.Model+"/revision/")
	commitAndFile, resolve := strings.CutPrefix(r.URL.Path, "/"+s.Model+"/resolve/")
	commit, file, _ := strings.Cut(commitAndFile, "/")
	switch {
	case s.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.Token:
		refuse(w, http.StatusUnauthorized, "RepoNotFound", "Repository not found")
	case !describe && !resolve:
		refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
	case describe && revision != "main" && revision != s.Commit, resolve && commit != "main" && commit != s.Commit:
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+revision)
	case describe:
		s.describe(w)
	case s.Gated:
		refuse(w, http.StatusForbidden, "GatedRepo", "Access to model is restricted")
	default:
		s.serveFile(w, r, file)
	}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Error-Code", code)
	w.Header().Set("X-Error-Message", message)
	w.WriteHeader(status)
}

// describe lists the files of the commit.
func (s *Server) describe(w http.ResponseWriter) {
	var siblings []any
	for name, content := range s.Files {
		sibling := map[string]any{"rfilename": name, "size": len(content), "blobId": SHA1(content)}
		if isLarge(name) {
			sibling["lfs"] = map[string]any{"sha256": SHA256(content), "size": len(content), "pointerSize": 134}
		}
		siblings = append(siblings, sibling)
	}
	listing := map[string]any{
		"id": s.Model, "modelId": s.Model, "sha": s.Commit, "private": false, "gated": s.Gated, "siblings": siblings,
		"cardData": map[string]any{"license": []string{"mit", "other"}},
	}
	if s.Listing != nil {
		s.Listing(listing)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(listing)
}

// serveFile answers for a file: with its content, or with where that is.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	content, ok := s.Files[name]
	if !ok {
		refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	w.Header().Set("X-Repo-Commit", s.Commit)
	if !isLarge(name) {
		w.Header().Set("ETag", `"`+SHA1(content)+`"`)
		s.serveContent(w, r, content)
		return
	}
	w.Header().Set("X-Linked-Etag", `"`+SHA256(content)+`"`)
	w.Header().Set("X-Linked-Size", fmt.Sprint(len(content)))
	w.Header().Set("ETag", `"not the digest of the content"`)
	w.Header().Set("Location", s.store.URL+"/"+SHA256(content)+"?signature=abc")
	w.WriteHeader(http.StatusFound)
}

// serveStore answers for the content of a large file.
func (s *Server) serveStore(w http.ResponseWriter, r *http.Request) {
	for name, content := range s.Files {
		if isLarge(name) && r.URL.Path == "/"+SHA256(content) {
			w.Header().Set("ETag", `"0123456789abcdef-2"`)
			s.serveContent(w, r, content)
			return
		}
	}
	w.WriteHeader(http.StatusForbidden)
}

func (s *Server) serveContent(w http.ResponseWriter, r *http.Request, content []byte) {
	if s.Fault != nil && r.Method == http.MethodGet && s.Fault(w, r, content) {
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// Cut returns a fault: each answer breaks off after n bytes, as long as times lasts.
func Cut(n int, times int) func(http.ResponseWriter, *http.Request, []byte) bool {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, content []byte) bool {
		mu.Lock()
		times--
		over := times < 0
		mu.Unlock()
		if over {
			return false
		}
		http.ServeContent(&cutWriter{w, n}, r, "", time.Time{}, bytes.NewReader(content))
		return true
	}
}

// cutWriter breaks the connection after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b[:min(len(b), c.left)])
	if c.left -= n; c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

func isLarge(name string) bool { return strings.HasSuffix(name, ".safetensors") }

// SHA1 is git's name of a content.
func SHA1(content []byte) string {
	return fmt.Sprintf("%x",
		sha1.Sum(slices.Concat([]byte(fmt.Sprintf("blob %d\x00", len(content))), content))) //nolint:gosec // see the import
}

// SHA256 is the name of the content of a large file.
func SHA256(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }
