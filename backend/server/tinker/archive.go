package tinker

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/tinkerwire"
)

// downloads begins the paths of downloads. They need no key: the token in them is one.
const downloads = Prefix + "downloads/"

// archiveFile is the name of a whole checkpoint, as a tar file.
const archiveFile = "checkpoint.tar.gz"

// isDownload reports whether a request needs no key.
func isDownload(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, downloads) }

// link is a download that somebody may fetch, for a while.
type link struct {
	dir     string
	files   []string
	expires time.Time
}

// isWeights reports whether a file of a checkpoint is part of a download: the adapter, and not the optimizer.
func isWeights(name string) bool {
	return name == "adapter_config.json" || name == "adapter_model.safetensors" || name == "README.md"
}

// newLink makes a link to a checkpoint.
func (s *Server) newLink(t *user, r *http.Request) (token string, l *link, err error) {
	path := scheme + r.PathValue("id") + "/" + checkpointOf(r)
	_, saved, err := s.findWeights(t, path)
	if err != nil {
		return "", nil, err
	}
	if s.opts.Folder == nil {
		return "", nil, fail(http.StatusNotImplemented, "this server does not know where its backend stores weights")
	}
	l = &link{expires: time.Now().Add(linkTime)}
	if l.dir, err = s.opts.Folder(saved.Weights); err != nil {
		return "", nil, err
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return "", nil, err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && isWeights(e.Name()) {
			l.files = append(l.files, e.Name())
		}
	}
	if len(l.files) == 0 {
		return "", nil, fmt.Errorf("%s has no adapter", path)
	}
	token = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, other := range s.links {
		if time.Now().After(other.expires) {
			delete(s.links, old)
		}
	}
	s.links[token] = l
	return token, l, nil
}

// archive serves GET .../archive: the address of a tar file with the adapter in PEFT's format.
func (s *Server) archive(w http.ResponseWriter, r *http.Request, t *user) error {
	token, l, err := s.newLink(t, r)
	if err != nil {
		return err
	}
	url := baseURL(r) + downloads + token + "/" + archiveFile
	w.Header().Set("Location", url)
	w.Header().Set("Expires", l.expires.UTC().Format(http.TimeFormat))
	return sendJSON(w, http.StatusFound, map[string]any{"url": url, "expires": l.expires.UTC()})
}

// externalURLs serves GET .../external_weights_urls: an address of each file.
func (s *Server) externalURLs(w http.ResponseWriter, r *http.Request, t *user) error {
	if r.PathValue("kind") != tinkerwire.ExternalKind {
		return fail(http.StatusBadRequest, "only weights of save_weights_external have addresses")
	}
	token, l, err := s.newLink(t, r)
	if err != nil {
		return err
	}
	urls := map[string]string{}
	for _, file := range l.files {
		urls[file] = baseURL(r) + downloads + token + "/" + file
	}
	return sendJSON(w, http.StatusOK, map[string]any{"urls": urls, "expires": l.expires.UTC()})
}

// download serves a file of a link.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	l := s.links[r.PathValue("token")]
	s.mu.Unlock()
	if l == nil || time.Now().After(l.expires) {
		s.refuse(w, r, fail(http.StatusNotFound, "this address has expired; ask for another one"))
		return
	}
	name := r.PathValue("file")
	for _, file := range l.files {
		if file == name {
			http.ServeFile(w, r, filepath.Join(l.dir, file))
			return
		}
	}
	if name != archiveFile {
		s.refuse(w, r, fail(http.StatusNotFound, "there is no such file"))
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	if err := l.writeTar(r.Context(), w); err != nil {
		s.log.WarnContext(r.Context(), "archive could not be sent", "error", err)
		panic(http.ErrAbortHandler) // half an archive must not look complete
	}
}

// writeTar writes the files of a link as a compressed tar file.
func (l *link) writeTar(ctx context.Context, w io.Writer) error {
	zipped := gzip.NewWriter(w)
	out := tar.NewWriter(zipped)
	for _, name := range l.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := addFile(out, l.dir, name); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), zipped.Close())
}

func addFile(out *tar.Writer, dir, name string) error {
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: 0o644, Size: info.Size(), ModTime: info.ModTime()}
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(out, file)
	return err
}
