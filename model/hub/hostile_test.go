package hub

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/hubtest"
	"github.com/goart-dev/art/internal/secret/secrettest"
)

// within pulls, and fails the test when that takes long.
func within(t *testing.T, limit time.Duration, opts *Options) (*Snapshot, error) {
	t.Helper()
	began := time.Now()
	s, err := Pull(t.Context(), repo, opts)
	require.Less(t, time.Since(began), limit)
	return s, err
}

// blobs are the names of the blobs in the cache, complete and not.
func blobs(t *testing.T, opts *Options) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(opts.Cache, repoFolder(Name{Repo: repo}), "blobs", "*"))
	require.NoError(t, err)
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// TestPull_OtherHost: the token does not follow a redirect of the description, or of a file, to another host; without
// it the redirect is followed, as a hub's own to its store is.
func TestPull_OtherHost(t *testing.T) {
	for _, of := range []string{"/api/", "config.json", "model.safetensors"} {
		server, opts := start(t, modelFiles())
		opts.Token = secrettest.Key
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+secrettest.Key {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if !strings.Contains(r.URL.Path, of) || r.Method == http.MethodHead {
				pass(w, r, server.URL(), strings.Contains(r.URL.Path, of))
				return
			}
			http.Redirect(w, r, server.URL()+r.URL.Path+"?"+r.URL.RawQuery, http.StatusFound)
		}))
		defer front.Close()
		opts.Endpoint = front.URL
		s, err := Pull(t.Context(), repo, opts)
		require.NoError(t, err, of)
		checkFiles(t, server, s, plainNames...)
		for _, r := range server.Requests() {
			require.False(t, r.Token, "%s of %s got the token", r.Path, of)
		}
	}
}

// pass answers as another server does, without the token. A head of a file that is elsewhere is a redirect.
func pass(w http.ResponseWriter, r *http.Request, url string, elsewhere bool) {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, url+r.URL.Path+"?"+r.URL.RawQuery, nil)
	if err != nil {
		panic(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	status := resp.StatusCode
	if elsewhere && status == http.StatusOK {
		w.Header().Set("X-Linked-Size", resp.Header.Get("Content-Length"))
		w.Header().Set("X-Linked-Etag", resp.Header.Get("ETag"))
		w.Header().Set("Location", url+r.URL.Path)
		status = http.StatusFound
	}
	w.WriteHeader(status)
	_, _ = io.Copy(w, resp.Body)
}

// TestPull_Secret: a token that the server repeats is in no error, and neither is the signature of a store's address or
// what a terminal would obey.
func TestPull_Secret(t *testing.T) {
	_, opts := start(t, modelFiles())
	opts.Token = secrettest.Key
	for _, status := range []int{400, 401, 403, 404, 500} {
		opts.Endpoint = secrettest.Echoing(t, status)
		_, err := Pull(t.Context(), repo, opts)
		require.Error(t, err)
		require.Empty(t, secrettest.Leaks(err.Error()), err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 404 \x1b[31m"+r.Header.Get("Authorization")+"\r\nContent-Length: 0\r\n\r\n")
		conn.Close()
	}))
	defer server.Close()
	opts.Endpoint = server.URL
	_, err := Pull(t.Context(), repo, opts)
	require.ErrorContains(t, err, "404 Not Found")
	require.NotContains(t, err.Error(), "\x1b")

	hub, opts := start(t, modelFiles())
	hub.Fault = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if !strings.Contains(r.URL.RawQuery, "signature") {
			return false
		}
		panic(http.ErrAbortHandler)
	}
	_, err = Pull(t.Context(), repo, opts)
	require.ErrorContains(t, err, "cannot reach")
	require.NotContains(t, err.Error(), "signature")
}

// sizes changes what the server says of the size of a file: in its description, and in the head of the file.
func sizes(server *hubtest.Server, file string, listed, head int64) http.Handler {
	server.Listing = func(l map[string]any) {
		for _, f := range l["siblings"].([]any) {
			f := f.(map[string]any)
			if f["rfilename"] != file {
				continue
			}
			f["size"] = listed
			if lfs, ok := f["lfs"].(map[string]any); ok {
				lfs["size"] = listed
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, "/"+file) {
			pass(&sized{w, head}, r, server.URL(), false)
			return
		}
		pass(w, r, server.URL(), false)
	})
}

// sized says another size.
type sized struct {
	http.ResponseWriter
	size int64
}

func (s *sized) WriteHeader(status int) {
	name := "Content-Length"
	if s.Header().Get("X-Linked-Size") != "" {
		name = "X-Linked-Size"
	}
	s.Header().Set(name, fmt.Sprint(s.size))
	s.ResponseWriter.WriteHeader(status)
}

// TestPull_WrongSize: whatever a server says of sizes, a pull ends soon, and a file of another content is none.
func TestPull_WrongSize(t *testing.T) {
	for _, file := range []string{"model.safetensors", "tokenizer.json"} {
		have := int64(len(modelFiles()[file]))
		for _, c := range []struct {
			listed, head int64
			want         string
		}{
			{have, have - 1, "contradict"}, {have + 1, have, "contradict"}, {have, 1 << 62, "do not use it"},
			{have - 1, have - 1, "checksum"}, {have + 1, have + 1, "cut at"}, {1, 1, "checksum"},
			{2 * have, 2 * have, "cut at"}, {0, 2 * have, "cut at"}, {1 << 62, 1 << 62, "do not use it"},
			{have, -5, "no size"},
		} {
			if c.head < 0 && file == "tokenizer.json" {
				continue // no Content-Length can be that
			}
			server, opts := start(t, modelFiles())
			lying := httptest.NewServer(sizes(server, file, c.listed, c.head))
			opts.Endpoint = lying.URL
			_, err := within(t, 20*time.Second, opts)
			require.ErrorContains(t, err, c.want, "%s: listed %d, head %d", file, c.listed, c.head)
			for _, blob := range blobs(t, opts) {
				if !strings.HasSuffix(blob, ".incomplete") {
					require.NotEqual(t, hubtest.SHA256(server.Files[file]), blob)
				}
			}
			_, err = Cached(repo, opts)
			require.Error(t, err)
			lying.Close()
		}
	}
}

// TestPull_Endless: a body without an end is read to the size that was said, and a description to a bound.
func TestPull_Endless(t *testing.T) {
	endless := func(w http.ResponseWriter, sent *atomic.Int64) {
		for piece := bytes.Repeat([]byte(" "), 1<<16); ; sent.Add(1 << 16) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}
	for _, of := range []string{"tokenizer.json", "model.safetensors"} {
		server, opts := start(t, modelFiles())
		var sent atomic.Int64
		server.Fault = func(w http.ResponseWriter, _ *http.Request, c []byte) bool {
			if len(c) != len(server.Files[of]) {
				return false
			}
			endless(w, &sent)
			return true
		}
		_, err := within(t, 20*time.Second, opts)
		require.ErrorIs(t, err, errChecksum)
		require.Less(t, sent.Load(), int64(len(server.Files[of])+32<<20), "what buffers of the network take is sent too")
	}
	server, opts := start(t, modelFiles())
	_ = server
	var sent atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { endless(w, &sent) }))
	defer front.Close()
	opts.Endpoint = front.URL
	_, err := within(t, 20*time.Second, opts)
	require.ErrorContains(t, err, "32 MiB")

	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, " ")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
	}))
	defer slow.Close()
	old := maxListingTime
	defer func() { maxListingTime = old }()
	maxListingTime, opts.Endpoint = 50*time.Millisecond, slow.URL
	_, err = within(t, 20*time.Second, opts)
	require.ErrorIs(t, err, errSlowListing)
}

// TestPull_ManyFiles: a description of millions of empty files does not become as many in memory.
func TestPull_ManyFiles(t *testing.T) {
	_, opts := start(t, modelFiles())
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"sha":"`+strings.Repeat("0", 40)+`","siblings":[{}`+strings.Repeat(",{}", 1_000_000)+`]}`)
	}))
	defer front.Close()
	opts.Endpoint = front.URL
	_, err := within(t, 20*time.Second, opts)
	require.ErrorContains(t, err, "more than 100000 files")
}

// TestPull_Names: names that lead out of the repository, that a terminal would obey, or that are not one file on every
// system are refused, in the description and in the index.
func TestPull_Names(t *testing.T) {
	for _, name := range []string{
		"../x", "a/../../x", "/etc/passwd", `..\x`, `C:\x`, "C:x", `\\host\share\x`, "a//b", "a/./b", "", ".", "a\x00b", "a\x1b[31m",
		"a\nb", "x/", strings.Repeat("../", 50) + "tmp/x",
	} {
		server, opts := start(t, modelFiles())
		server.Listing = func(l map[string]any) {
			l["siblings"] = append(l["siblings"].([]any), map[string]any{"rfilename": name})
		}
		_, err := Pull(t.Context(), repo, opts)
		require.ErrorContains(t, err, "not a path within the repository", "%q", name)
		require.NotContains(t, err.Error(), "\x1b")
	}
	for _, shard := range []string{
		"../x.safetensors", "a/x.safetensors", `a\x.safetensors`, "CON.safetensors", "nul.a.safetensors", "Com1.safetensors",
		"x?.safetensors", "config.json", "modeling.py", "x.safetensors ", ".", "/x.safetensors", "MODEL-1.safetensors",
	} {
		files := shardedFiles()
		files[shard] = content(10)
		files[indexFile] = fmt.Appendf(nil, `{"weight_map":{"a":"model-1.safetensors","b":%q}}`, shard)
		server, opts := start(t, files)
		_, err := Pull(t.Context(), repo, opts)
		require.Error(t, err, "%q", shard)
		require.NotContains(t, blobs(t, opts), hubtest.SHA256(server.Files[shard]), "%q", shard)
	}
}

// TestPull_OtherContent: a download that broke off and goes on with another content does not become a file, whether the
// server says so or not.
func TestPull_OtherContent(t *testing.T) {
	for name, told := range map[string]bool{"under the same checksum": false, "under another checksum": true} {
		server, opts := start(t, modelFiles())
		old := server.Files["model.safetensors"]
		changed := bytes.Clone(old)
		for i := range changed {
			changed[i] ^= 0x55
		}
		cut := hubtest.Cut(1_000_000, 1)
		stopped := false
		server.Fault = func(w http.ResponseWriter, r *http.Request, c []byte) bool {
			if len(c) != len(old) {
				return false
			}
			if !stopped {
				stopped = true
				return cut(w, r, c)
			}
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		_, err := Pull(t.Context(), repo, opts)
		require.Error(t, err)
		require.Contains(t, blobs(t, opts), hubtest.SHA256(old)+".incomplete")
		server.Fault = func(w http.ResponseWriter, r *http.Request, c []byte) bool {
			if len(c) != len(old) {
				return false
			}
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(changed))
			return true
		}
		if told {
			server.Fault, server.Files["model.safetensors"] = nil, changed
		}
		s, err := within(t, 20*time.Second, opts)
		if told {
			require.NoError(t, err, name)
			checkFiles(t, server, s, plainNames...)
			continue
		}
		require.ErrorIs(t, err, errChecksum, name)
		require.False(t, slices.ContainsFunc(blobs(t, opts), func(b string) bool {
			return strings.HasPrefix(b, hubtest.SHA256(old))
		}), name)
		server.Fault = nil
		s, err = Pull(t.Context(), repo, opts)
		require.NoError(t, err, name)
		checkFiles(t, server, s, plainNames...)
	}
}
