package hub

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/hubtest"
)

// TestOptions_Environment: the variables mean what they mean to Python's huggingface_hub.
func TestOptions_Environment(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	have := func() Options {
		var o *Options
		out, err := o.resolve()
		require.NoError(t, err)
		return out
	}
	o := have()
	require.Equal(t, "https://huggingface.co", o.Endpoint)
	require.Equal(t, filepath.Join(home, ".cache/huggingface/hub"), o.Cache)
	require.Empty(t, o.Token)
	require.False(t, o.Offline)

	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "xdg"))
	require.Equal(t, filepath.Join(home, "xdg/huggingface/hub"), have().Cache)
	t.Setenv("HF_HOME", "~/hf")
	require.Equal(t, filepath.Join(home, "hf/hub"), have().Cache)
	require.NoError(t, os.Mkdir(filepath.Join(home, "hf"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(home, "hf/token"), []byte(" of-file\r\n"), 0o600))
	require.Equal(t, "of-file", have().Token)
	t.Setenv("HF_TOKEN_PATH", "$HOME/other")
	require.Empty(t, have().Token)
	require.NoError(t, os.WriteFile(filepath.Join(home, "other"), []byte("of-other"), 0o600))
	require.Equal(t, "of-other", have().Token)
	t.Setenv("HUGGING_FACE_HUB_TOKEN", "old")
	require.Equal(t, "old", have().Token)
	t.Setenv("HF_TOKEN", "new\n")
	require.Equal(t, "new", have().Token)
	t.Setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "true")
	require.Empty(t, have().Token)
	t.Setenv("HUGGINGFACE_HUB_CACHE", "/a")
	require.Equal(t, "/a", have().Cache)
	t.Setenv("HF_HUB_CACHE", "/b")
	require.Equal(t, "/b", have().Cache)
	t.Setenv("HF_ENDPOINT", "http://localhost:1/")
	require.Equal(t, "http://localhost:1", have().Endpoint)
	t.Setenv("HF_HUB_OFFLINE", "0")
	require.False(t, have().Offline)
	t.Setenv("TRANSFORMERS_OFFLINE", "1")
	require.True(t, have().Offline)

	given := &Options{Endpoint: "http://x", Token: "t", Cache: "/c"}
	out, err := given.resolve()
	require.NoError(t, err)
	require.Equal(t, []string{"http://x", "t", "/c"}, []string{out.Endpoint, out.Token, out.Cache})
}

// TestPull_Environment: without options, the environment says where the hub is, who asks, and where the cache is.
func TestPull_Environment(t *testing.T) {
	server := hubtest.New(repo, modelFiles())
	defer server.Close()
	server.Token = "of the environment"
	t.Setenv("HF_ENDPOINT", server.URL()+"/")
	t.Setenv("HF_TOKEN", server.Token)
	t.Setenv("HF_HOME", t.TempDir())
	s, err := Pull(t.Context(), repo, nil)
	require.NoError(t, err)
	checkFiles(t, server, s, plainNames...)
	t.Setenv("HF_HUB_OFFLINE", "1")
	server.Close()
	again, err := Pull(t.Context(), repo, nil)
	require.NoError(t, err)
	require.Equal(t, s, again)
}
