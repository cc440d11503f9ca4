package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/hubtest"
)

func TestMain(m *testing.M) {
	firstPause = time.Millisecond
	for _, name := range []string{
		"HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
		"HF_HOME",
		"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "XDG_CACHE_HOME",
	} {
		os.Unsetenv(name)
	}
	os.Exit(m.Run())
}

const repo = "acme/robot-0.1B"

// content returns bytes that differ from place to place.
func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>16 ^ i>>8 ^ i)
	}
	return b
}

func modelFiles() map[string][]byte {
	return map[string][]byte{
		"config.json":           []byte(`{"model_type":"qwen3"}`),
		"tokenizer.json":        content(100_000),
		"tokenizer_config.json": []byte(`{}`),
		"chat_template.jinja":   []byte(`{{ messages }}`),
		"model.safetensors":     content(3_000_000),
		"pytorch_model.bin":     content(1000),
		"README.md":             []byte("# robot"),
		"onnx/model.onnx":       content(1000),
	}
}

// TestPull_Check: the configuration is checked before anything else is fetched, also when it is in the cache already.
func TestPull_Check(t *testing.T) {
	s, opts := start(t, modelFiles())
	var checked [][]byte
	refused := errors.New("no such blocks")
	opts.Check = func(config []byte) error {
		checked = append(checked, config)
		return refused
	}
	for range 2 {
		_, err := Pull(t.Context(), repo, opts)
		require.ErrorIs(t, err, refused)
		require.ErrorContains(t, err, "its weights were not fetched")
		for _, r := range s.Requests() {
			require.False(t, r.Store, r.Path)
			require.NotContains(t, r.Path, "tokenizer")
		}
	}
	refused = nil
	snapshot, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	require.Contains(t, snapshot.Files, "model.safetensors")
	require.Equal(t, slices.Repeat([][]byte{modelFiles()["config.json"]}, 3), checked)
}

// shardedFiles is a model of two shards, with a third that the index does not name.
func shardedFiles() map[string][]byte {
	files := modelFiles()
	delete(files, "model.safetensors")
	files[indexFile] = []byte(`{"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}}`)
	files["model-1.safetensors"], files["model-2.safetensors"] = content(1000), content(2000)
	files["other.safetensors"] = content(3000)
	return files
}

// start returns a hub, and options for a cache of its own and no token of the user.
func start(t *testing.T, files map[string][]byte) (*hubtest.Server, *Options) {
	t.Helper()
	s := hubtest.New(repo, files)
	t.Cleanup(s.Close)
	home := t.TempDir()
	t.Setenv("HF_HOME", home)
	return s, &Options{Endpoint: s.URL(), Cache: filepath.Join(home, "hub")}
}

// checkFiles checks that a snapshot has exactly these files, with the content of the server.
func checkFiles(t *testing.T, server *hubtest.Server, s *Snapshot, names ...string) {
	t.Helper()
	require.ElementsMatch(t, names, s.Files)
	entries, err := os.ReadDir(s.Dir)
	require.NoError(t, err)
	require.Len(t, entries, len(names))
	for _, name := range names {
		have, err := os.ReadFile(filepath.Join(s.Dir, name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(server.Files[name], have), name)
	}
}

var plainNames = []string{"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
	"model.safetensors"}

func TestPull_Layout(t *testing.T) {
	server, opts := start(t, modelFiles())
	server.Token, opts.Token = "secret", "secret"
	s, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	checkFiles(t, server, s, plainNames...)
	require.Equal(t, server.Commit, s.Commit)
	require.Equal(t, Name{repo, "main"}, s.Name)

	dir := filepath.Join(opts.Cache, "models--acme--robot-0.1B")
	require.Equal(t, filepath.Join(dir, "snapshots", server.Commit), s.Dir)
	ref, err := os.ReadFile(filepath.Join(dir, "refs", "main"))
	require.NoError(t, err)
	require.Equal(t, server.Commit, string(ref))
	for name, digest := range map[string]string{
		"config.json":       hubtest.SHA1(server.Files["config.json"]),
		"model.safetensors": hubtest.SHA256(server.Files["model.safetensors"]),
	} {
		target, err := os.Readlink(filepath.Join(s.Dir, name))
		require.NoError(t, err)
		require.Equal(t, filepath.Join("..", "..", "blobs", digest), target)
		require.FileExists(t, filepath.Join(opts.Cache, ".locks", "models--acme--robot-0.1B", digest+".lock"))
	}
	require.FileExists(t, filepath.Join(dir, ".no_exist", server.Commit, "generation_config.json"))
	require.NoFileExists(t, filepath.Join(dir, ".no_exist", server.Commit, "chat_template.jinja"))
	blobs, err := os.ReadDir(filepath.Join(dir, "blobs"))
	require.NoError(t, err)
	require.Len(t, blobs, len(plainNames), "nothing is left of the downloads")

	for _, r := range server.Requests() {
		require.Equal(t, !r.Store, r.Token, "the token goes to the hub and nowhere else: %+v", r)
	}
}

// TestPull_Again: what is there is not fetched again, and the cache serves without the hub.
func TestPull_Again(t *testing.T) {
	server, opts := start(t, shardedFiles())
	first, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	names := []string{"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", indexFile,
		"model-1.safetensors", "model-2.safetensors"}
	checkFiles(t, server, first, names...)
	server.Requests()
	second, err := Pull(t.Context(), repo+"@main", opts)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Len(t, server.Requests(), 1, "which commit is it?")

	for _, name := range []string{repo, repo + "@" + server.Commit} {
		s, err := Cached(name, opts)
		require.NoError(t, err)
		require.Equal(t, first.Files, s.Files)
		require.Equal(t, first.Dir, s.Dir)
	}
	opts.Offline = true
	s, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	require.Equal(t, first, s)
	require.Empty(t, server.Requests())
}

// TestPull_NewCommit: a branch that moved shares the blobs that did not change.
func TestPull_NewCommit(t *testing.T) {
	server, opts := start(t, modelFiles())
	first, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	server.Requests()
	old := server.Commit
	server.Commit, server.Files["config.json"] = strings.Repeat("ab", 20), []byte(`{"model_type":"other"}`)
	second, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	checkFiles(t, server, second, plainNames...)
	require.Len(t, downloads(server.Requests()), 1)
	before, err := Cached(repo+"@"+old, opts)
	require.NoError(t, err)
	require.Equal(t, first.Dir, before.Dir)
	now, err := Cached(repo, opts)
	require.NoError(t, err)
	require.Equal(t, second.Dir, now.Dir)
}

// downloads are the requests for content, without those that are redirected.
func downloads(requests []hubtest.Request) []hubtest.Request {
	return slices.DeleteFunc(requests, func(r hubtest.Request) bool {
		return r.Method != http.MethodGet || strings.HasPrefix(r.Path, "/api/") || !r.Store &&
			strings.HasSuffix(r.Path, ".safetensors")
	})
}

// TestPull_Cut: a download whose connection breaks again and again continues where it stopped.
func TestPull_Cut(t *testing.T) {
	server, opts := start(t, modelFiles())
	server.Fault = hubtest.Cut(40_000, 12)
	var last Progress
	opts.Progress = func(p Progress) {
		require.LessOrEqual(t, p.Done, p.Total)
		last = p
	}
	s, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	checkFiles(t, server, s, plainNames...)
	require.Equal(t, last.Total, last.Done)
	var ranges []string
	for _, r := range downloads(server.Requests()) {
		if r.Range != "" {
			ranges = append(ranges, r.Range)
		}
	}
	require.Contains(t, ranges, "bytes=40000-")
	require.Contains(t, ranges, "bytes=80000-")
	require.Contains(t, ranges, "bytes=120000-")
}

// TestPull_CutForGood: an error keeps what is there, and the next call, of another process perhaps, continues.
func TestPull_CutForGood(t *testing.T) {
	server, opts := start(t, modelFiles())
	large := server.Files["model.safetensors"]
	cut := hubtest.Cut(1_000_000, 1)
	server.Fault = func(w http.ResponseWriter, r *http.Request, c []byte) bool {
		if len(c) != len(large) {
			return false
		}
		if !cut(w, r, c) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return true
	}
	_, err := Pull(t.Context(), repo, opts)
	require.ErrorContains(t, err, "model.safetensors: 127.0.0.1")
	require.ErrorContains(t, err, "503 Service Unavailable")
	_, err = Cached(repo, opts)
	require.ErrorIs(t, err, fs.ErrNotExist, "a part is not the model")
	incomplete := filepath.Join(opts.Cache, repoFolder(Name{Repo: repo}), "blobs", hubtest.SHA256(large)+".incomplete")
	info, err := os.Stat(incomplete)
	require.NoError(t, err)
	require.EqualValues(t, 1_000_000, info.Size())

	server.Fault = nil
	server.Requests()
	s, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	checkFiles(t, server, s, plainNames...)
	got := downloads(server.Requests())
	require.Len(t, got, 1)
	require.Equal(t, "bytes=1000000-", got[0].Range)
	require.NoFileExists(t, incomplete)
}

// TestPull_DamagedPart: what an earlier process left is checked with the rest, and fetched anew when it is wrong.
func TestPull_DamagedPart(t *testing.T) {
	for name, part := range map[string][]byte{
		"wrong": bytes.Repeat([]byte{7}, 1000), "too long": content(4_000_000),
		"all wrong": bytes.Repeat([]byte{7}, 3_000_000), "all right": content(3_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			server, opts := start(t, modelFiles())
			blobs := filepath.Join(opts.Cache, repoFolder(Name{Repo: repo}), "blobs")
			require.NoError(t, os.MkdirAll(blobs, 0o777))
			require.NoError(t,
				os.WriteFile(filepath.Join(blobs, hubtest.SHA256(server.Files["model.safetensors"])+".incomplete"), part, 0o666))
			s, err := Pull(t.Context(), repo, opts)
			require.NoError(t, err)
			checkFiles(t, server, s, plainNames...)
		})
	}
}

// TestPull_NoRanges: a server that always sends the whole is no reason for a wrong file.
func TestPull_NoRanges(t *testing.T) {
	server, opts := start(t, modelFiles())
	cut := hubtest.Cut(40_000, 1)
	server.Fault = func(w http.ResponseWriter, r *http.Request, c []byte) bool {
		if cut(w, r, c) {
			return true
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(c)))
		_, _ = w.Write(c)
		return true
	}
	s, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	checkFiles(t, server, s, plainNames...)
}

// TestPull_WrongChecksum: bytes that the hub does not name never become a file of the cache.
func TestPull_WrongChecksum(t *testing.T) {
	for _, name := range []string{"model.safetensors", "tokenizer.json"} {
		t.Run(name, func(t *testing.T) {
			server, opts := start(t, modelFiles())
			server.Fault = func(w http.ResponseWriter, _ *http.Request, c []byte) bool {
				if len(c) != len(server.Files[name]) {
					return false
				}
				c = bytes.Clone(c)
				c[len(c)/2] ^= 1
				w.Header().Set("Content-Length", fmt.Sprint(len(c)))
				_, _ = w.Write(c)
				return true
			}
			_, err := Pull(t.Context(), repo, opts)
			require.ErrorIs(t, err, errChecksum)
			require.ErrorContains(t, err, name)
			blobs, err := os.ReadDir(filepath.Join(opts.Cache, repoFolder(Name{Repo: repo}), "blobs"))
			require.NoError(t, err)
			for _, blob := range blobs {
				require.NotContains(t, blob.Name(), hubtest.SHA256(server.Files[name]))
				require.NotContains(t, blob.Name(), hubtest.SHA1(server.Files[name]))
			}
			server.Fault = nil
			s, err := Pull(t.Context(), repo, opts)
			require.NoError(t, err)
			checkFiles(t, server, s, plainNames...)
		})
	}
}

// TestPull_Refused: each refusal says what to do.
func TestPull_Refused(t *testing.T) {
	without := func(names ...string) map[string][]byte {
		files := modelFiles()
		for _, name := range names {
			delete(files, name)
		}
		return files
	}
	siblings := func(f map[string]any) func(map[string]any) {
		return func(l map[string]any) { l["siblings"] = append(l["siblings"].([]any), f) }
	}
	for _, c := range []struct {
		name  string
		files map[string][]byte
		setup func(*hubtest.Server, *Options) (pull string)
		want  []string
	}{
		{"unknown", nil, func(*hubtest.Server, *Options) string { return "acme/other" }, []string{"404", "no such model", "HF_TOKEN"}},
		{"private", nil, func(s *hubtest.Server, _ *Options) string { s.Token = "x"; return repo }, []string{"401", "private", "set HF_TOKEN"}},
		{"wrong token", nil, func(s *hubtest.Server, o *Options) string { s.Token, o.Token = "x", "y"; return repo }, []string{"401", "token", "not valid"}},
		{"gated", nil, func(s *hubtest.Server, _ *Options) string { s.Gated = true; return repo }, []string{"403", "ask for it on", "/acme/robot-0.1B"}},
		{"revision", nil, func(*hubtest.Server, *Options) string { return repo + "@v9" }, []string{"404", `no revision "v9"`, "tree/main"}},
		{"no weights", without("model.safetensors"), nil, []string{"no model.safetensors", "pytorch_model.bin"}},
		{"no tokenizer", without("tokenizer.json", "tokenizer_config.json"), nil, []string{"no tokenizer.json, tokenizer_config.json"}},
		{"no shard", map[string][]byte{"config.json": nil, "tokenizer.json": nil, "tokenizer_config.json": nil, indexFile: []byte(`{"weight_map":{"a":"x.safetensors"}}`)}, nil, []string{`lists "x.safetensors", which it does not have`}},
		{"shard outside", map[string][]byte{"config.json": nil, "tokenizer.json": nil, "tokenizer_config.json": nil, indexFile: []byte(`{"weight_map":{"a":"../x.safetensors"}}`)}, nil, []string{`"../x.safetensors"`}},
		{"parent", nil, func(s *hubtest.Server, _ *Options) string {
			s.Listing = siblings(map[string]any{"rfilename": "a/../../x"})
			return repo
		}, []string{`"a/../../x"`, "not a path within"}},
		{"absolute", nil, func(s *hubtest.Server, _ *Options) string {
			s.Listing = siblings(map[string]any{"rfilename": "/etc/passwd"})
			return repo
		}, []string{`"/etc/passwd"`}},
		{"windows", nil, func(s *hubtest.Server, _ *Options) string {
			s.Listing = siblings(map[string]any{"rfilename": `..\x`})
			return repo
		}, []string{"not a path within"}},
		{"commit", nil, func(s *hubtest.Server, _ *Options) string {
			s.Listing = func(l map[string]any) { l["sha"] = "../../../../tmp" }
			return repo
		}, []string{`"../../../../tmp" as the commit`}},
		{"contradiction", nil, func(s *hubtest.Server, _ *Options) string {
			s.Listing = func(l map[string]any) {
				for _, f := range l["siblings"].([]any) {
					f.(map[string]any)["blobId"] = strings.Repeat("c", 40)
				}
			}
			return repo
		}, []string{"contradict"}},
		{"not a hub", nil, func(s *hubtest.Server, _ *Options) string {
			s.Listing = func(l map[string]any) { l["siblings"] = "none" }
			return repo
		}, []string{"is not a hub"}},
		{"no server", nil, func(s *hubtest.Server, _ *Options) string { s.Close(); return repo }, []string{"cannot reach", "HF_HUB_OFFLINE"}},
		{"offline", nil, func(_ *hubtest.Server, o *Options) string { o.Offline = true; return repo }, []string{"not in the cache", "art model pull acme/robot-0.1B@main"}},
		{"name", nil, func(*hubtest.Server, *Options) string { return "robot" }, []string{"ORG/NAME"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := c.files
			if files == nil {
				files = modelFiles()
			}
			server, opts := start(t, files)
			name := repo
			if c.setup != nil {
				name = c.setup(server, opts)
			}
			_, err := Pull(t.Context(), name, opts)
			require.Error(t, err)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			_, err = Cached(name, opts)
			require.Error(t, err, "nothing can be used afterwards")
			outside, err := filepath.Glob(filepath.Join(opts.Cache, "..", "*"))
			require.NoError(t, err)
			require.Subset(t, []string{opts.Cache}, outside)
		})
	}
}

// TestPull_LinkOutOfCache: links that lead out of the cache are refused, whoever made them.
func TestPull_LinkOutOfCache(t *testing.T) {
	server, opts := start(t, modelFiles())
	s, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("x"), 0o600))
	link := filepath.Join(s.Dir, "config.json")
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(outside, link))
	for range 2 {
		_, err = Pull(t.Context(), repo, opts)
		require.ErrorContains(t, err, "escapes")
		require.ErrorContains(t, err, link)
		_, err = Cached(repo, opts)
		require.ErrorContains(t, err, "escapes")
	}

	blobs := filepath.Join(opts.Cache, repoFolder(s.Name), "blobs")
	require.NoError(t, os.RemoveAll(s.Dir))
	require.NoError(t, os.RemoveAll(blobs))
	require.NoError(t, os.Symlink(t.TempDir(), blobs))
	_, err = Pull(t.Context(), repo, opts)
	require.ErrorContains(t, err, "escapes")
	_ = server
}

// TestPull_Cancel: a cancelled context ends a download soon, and what is there stays.
func TestPull_Cancel(t *testing.T) {
	server, opts := start(t, modelFiles())
	ctx, cancel := context.WithCancel(t.Context())
	server.Fault = func(w http.ResponseWriter, r *http.Request, c []byte) bool {
		if len(c) < 1_000_000 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(c)))
		_, _ = w.Write(c[:500_000])
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
		return true
	}
	_, err := Pull(ctx, repo, opts)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, errors.Unwrap(t.Context().Err()))
}

// TestPull_Concurrent: calls that want the same files at once take turns, and each file is fetched once.
func TestPull_Concurrent(t *testing.T) {
	server, opts := start(t, modelFiles())
	results := make(chan error)
	for range 4 {
		go func() {
			_, err := Pull(context.Background(), repo, opts)
			results <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-results)
	}
	counts := map[string]int{}
	for _, r := range downloads(server.Requests()) {
		counts[r.Path]++
	}
	require.Len(t, counts, len(plainNames))
	for path, n := range counts {
		require.Equal(t, 1, n, path)
	}
}

// TestCached_Incomplete: a snapshot that Python fetched in part is not taken for the model.
func TestCached_Incomplete(t *testing.T) {
	for _, missing := range slices.Sorted(maps.Keys(shardedFiles())) {
		t.Run(missing, func(t *testing.T) {
			_, opts := start(t, shardedFiles())
			s, err := Pull(t.Context(), repo, opts)
			require.NoError(t, err)
			if !slices.Contains(s.Files, missing) {
				t.Skip("it is not one of the files that are needed")
			}
			require.NoError(t, os.Remove(filepath.Join(s.Dir, missing)))
			_, err = Cached(repo, opts)
			require.ErrorIs(t, err, fs.ErrNotExist)
			opts.Offline = true
			_, err = Cached(repo, opts)
			if slices.Contains(optional, missing) {
				require.NoError(t, err, "offline, there is no way to know that it was there")
			} else {
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
			opts.Offline = false
			again, err := Pull(t.Context(), repo, opts)
			require.NoError(t, err)
			require.Equal(t, s, again)
		})
	}
}

// TestCached_BadRef: a ref that is not a commit leads nowhere, and a pull repairs it.
func TestCached_BadRef(t *testing.T) {
	_, opts := start(t, modelFiles())
	s, err := Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	ref := filepath.Join(opts.Cache, repoFolder(s.Name), "refs", "main")
	for _, text := range []string{"", "main", "../snapshots/" + s.Commit, s.Commit[:39]} {
		require.NoError(t, os.WriteFile(ref, []byte(text), 0o666))
		_, err = Cached(repo, opts)
		require.ErrorContains(t, err, "not a commit")
	}
	_, err = Pull(t.Context(), repo, opts)
	require.NoError(t, err)
	_, err = Cached(repo, opts)
	require.NoError(t, err)
}

// TestPull_Retry: each failure that may pass is told before the pause behind it, with the tries that are left; the last
// is the error.
func TestPull_Retry(t *testing.T) {
	server, opts := start(t, modelFiles())
	server.Close()
	var told []Retry
	opts.Retry = func(r Retry) { told = append(told, r) }
	_, err := Pull(t.Context(), repo, opts)
	require.ErrorContains(t, err, "cannot reach the hub")
	require.Len(t, told, tries-1)
	for i, r := range told {
		require.ErrorContains(t, r.Err, "cannot reach the hub")
		require.Equal(t, Retry{Err: r.Err, Pause: firstPause << i, Try: i + 1, Tries: tries}, r)
	}
}
