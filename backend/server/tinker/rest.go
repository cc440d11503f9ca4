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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/tinkerwire"
)

// page reads limit and offset of a list of n.
func page(r *http.Request, n, limit int) (from, to int, c tinkerwire.Cursor) {
	number := func(key string, fallback int) int {
		if x, err := strconv.Atoi(r.URL.Query().Get(key)); err == nil && x >= 0 {
			return x
		}
		return fallback
	}
	c = tinkerwire.Cursor{Offset: number("offset", 0), Limit: number("limit", limit), Total: n}
	from = min(c.Offset, n)
	return from, from + min(c.Limit, n-from), c
}

// showSampler serves GET samplers/ID.
func (s *Server) showSampler(w http.ResponseWriter, r *http.Request, t *user) error {
	sm, err := s.findSampler(t, r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, tinkerwire.SamplerInfo{
		ID: sm.record.ID, BaseModel: sm.record.Base, ModelPath: sm.record.Tinker,
	})
}

func trainingRun(rec *runRecord) tinkerwire.TrainingRun {
	out := tinkerwire.TrainingRun{
		ID: rec.ID, BaseModel: rec.Base, Owner: rec.Tenant, IsLoRA: true, Corrupted: rec.Corrupted != "",
		Rank: rec.LoRA.Rank, LastRequest: rec.LastRequest.UTC(), UserMetadata: rec.Metadata,
	}
	for i := range rec.Checkpoints {
		switch c := &rec.Checkpoints[i]; {
		case c.Weights == "" || c.expired():
		case c.Type == tinkerwire.Training:
			out.Last = &c.Checkpoint
		case c.Type == tinkerwire.Sampler:
			out.LastSampler = &c.Checkpoint
		}
	}
	return out
}

// listRuns serves GET training_runs.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request, t *user) error {
	all := s.tenantRecords(t)
	from, to, cursor := page(r, len(all), 20)
	list := []tinkerwire.TrainingRun{}
	for _, rec := range all[from:to] {
		list = append(list, trainingRun(rec))
	}
	return sendJSON(w, http.StatusOK, map[string]any{"training_runs": list, "cursor": cursor})
}

// showRun serves GET training_runs/ID.
func (s *Server) showRun(w http.ResponseWriter, r *http.Request, t *user) error {
	rec, err := s.findRecord(t, r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, trainingRun(rec))
}

// checkpoints lists what a run has saved.
func (rec *runRecord) checkpoints() []tinkerwire.Checkpoint {
	list := []tinkerwire.Checkpoint{}
	for i := range rec.Checkpoints {
		if c := &rec.Checkpoints[i]; c.Weights != "" && !c.expired() {
			list = append(list, c.Checkpoint)
		}
	}
	return list
}

// listCheckpoints serves GET training_runs/ID/checkpoints.
func (s *Server) listCheckpoints(w http.ResponseWriter, r *http.Request, t *user) error {
	rec, err := s.findRecord(t, r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, map[string]any{"checkpoints": rec.checkpoints()})
}

// listAllCheckpoints serves GET checkpoints, the newest first.
func (s *Server) listAllCheckpoints(w http.ResponseWriter, r *http.Request, t *user) error {
	all := []tinkerwire.Checkpoint{}
	for _, rec := range s.tenantRecords(t) {
		all = append(all, rec.checkpoints()...)
	}
	slices.SortStableFunc(all, func(a, b tinkerwire.Checkpoint) int { return b.Time.Compare(a.Time) })
	from, to, cursor := page(r, len(all), 100)
	return sendJSON(w, http.StatusOK, map[string]any{"checkpoints": all[from:to], "cursor": cursor})
}

// checkpointOf is the id of the checkpoint in a path.
func checkpointOf(r *http.Request) string { return r.PathValue("kind") + "/" + r.PathValue("name") }

// deleteCheckpoint serves DELETE training_runs/ID/checkpoints/KIND/NAME.
func (s *Server) deleteCheckpoint(w http.ResponseWriter, r *http.Request, t *user) error {
	if err := s.deleteWeights(r.Context(), t, r.PathValue("id"), checkpointOf(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// setTTL serves PUT training_runs/ID/checkpoints/KIND/NAME/ttl.
func (s *Server) setTTL(w http.ResponseWriter, r *http.Request, t *user, req *tinkerwire.Request) error {
	if ttl := req.TTLSeconds; ttl != nil && (*ttl < 3600 || *ttl > 10*366*24*3600) {
		return failf(http.StatusBadRequest, "ttl_seconds is %v, want an hour to ten years, or null", *ttl)
	}
	err := s.change(t, r.PathValue("id"), checkpointOf(r), func(rec *runRecord, at int) error {
		rec.Checkpoints[at].ExpiresAt = expiry(req.TTLSeconds)
		return nil
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// weightsInfo serves POST weights_info.
func (s *Server) weightsInfo(w http.ResponseWriter, _ *http.Request, t *user, req *tinkerwire.Request) error {
	rec, _, err := s.findWeights(t, req.TinkerPath)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, tinkerwire.WeightsInfo{
		BaseModel: rec.Base, IsLoRA: true, Rank: rec.LoRA.Rank, TrainUnembed: new(false), TrainMLP: &rec.MLP,
		TrainAttn: &rec.Attention, Optimizer: &tinkerwire.Optimizer{Type: tinkerwire.AdamW},
	})
}

// listSessions serves GET sessions.
func (s *Server) listSessions(w http.ResponseWriter, r *http.Request, t *user) error {
	s.mu.Lock()
	list := []*sessionRecord{}
	for _, live := range s.sessions {
		if live.tenant == t.tenant && live.visible(t.key) == nil {
			list = append(list, &live.record)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *sessionRecord) int { return b.Created.Compare(a.Created) })
	ids := []string{}
	from, to, _ := page(r, len(list), 20)
	for _, rec := range list[from:to] {
		ids = append(ids, rec.ID)
	}
	return sendJSON(w, http.StatusOK, map[string]any{"sessions": ids})
}

// showSession serves GET sessions/ID.
func (s *Server) showSession(w http.ResponseWriter, r *http.Request, t *user) error {
	live, err := s.findSession(t, r.PathValue("id"))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	samplers, runs := []string{}, append([]string{}, live.record.Runs...)
	for _, sm := range live.record.Samplers {
		samplers = append(samplers, sm.ID)
	}
	return sendJSON(w, http.StatusOK, map[string]any{
		"training_run_ids": runs, "sampler_ids": samplers, "user_metadata": live.record.Metadata,
		"display_name": live.record.DisplayName,
	})
}

// baseURL is the address under which a client has reached the server.
func baseURL(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https://"
	}
	return scheme + r.Host
}

// linkTime is how long the address of a download is valid.
const linkTime = time.Hour

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
	for _, e := range entries { // the adapter, and not the optimizer
		adapter := []string{"adapter_config.json", "adapter_model.safetensors", "README.md"}
		if e.Type().IsRegular() && slices.Contains(adapter, e.Name()) {
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
	if slices.Contains(l.files, name) {
		http.ServeFile(w, r, filepath.Join(l.dir, name))
		return
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
