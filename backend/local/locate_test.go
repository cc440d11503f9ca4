package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/internal/dev/hubtest"
	"github.com/goart-dev/art/model/hub"
)

// tinyFiles are the files of the built-in model.
func tinyFiles(t *testing.T) map[string][]byte {
	files := map[string][]byte{}
	for _, name := range []string{"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} {
		content, err := os.ReadFile(filepath.Join("../../model/tiny", name))
		require.NoError(t, err)
		files[name] = content
	}
	return files
}

// tinyHub serves the built-in model as acme/robot.
func tinyHub(t *testing.T) *hubtest.Server {
	s := hubtest.New("acme/robot", tinyFiles(t))
	t.Cleanup(s.Close)
	t.Setenv("HF_ENDPOINT", s.URL())
	t.Setenv("HF_HOME", t.TempDir())
	return s
}

// reply is what a base says, greedily.
func reply(t *testing.T, b *Backend, name, base string) string {
	m := art.NewModel(name, &art.ModelOptions{Base: base, Frozen: true})
	require.NoError(t, m.Register(t.Context(), b))
	answer, err := m.Complete(t.Context(), ask("What is 2+2?"), &art.ChatOptions{Temperature: new(0.0), MaxTokens: new(8)})
	require.NoError(t, err)
	return answer.Message.Content
}

// TestRegister_Hub: a model of the hub is fetched once, and is the model that the hub has.
func TestRegister_Hub(t *testing.T) {
	server := tinyHub(t)
	b := open(t, t.TempDir())
	want := reply(t, b, "builtin", "tiny")
	require.NotEmpty(t, want)
	require.Equal(t, want, reply(t, b, "main", "acme/robot"))
	require.NotEmpty(t, server.Requests())
	require.Equal(t, want, reply(t, b, "commit", "acme/robot@"+server.Commit))
	require.Len(t, b.bases, 2, "one base for both names")
	server.Close()
	require.Equal(t, want, reply(t, open(t, t.TempDir()), "main", "acme/robot"), "from the cache")
}

// TestRegister_HubErrors: what cannot be had says why, and what to do.
func TestRegister_HubErrors(t *testing.T) {
	server := tinyHub(t)
	b := open(t, t.TempDir())
	register := func(base string) error {
		return art.NewModel("x", &art.ModelOptions{Base: base}).Register(t.Context(), b)
	}
	err := register("acme/unknown")
	require.ErrorIs(t, err, art.ErrBaseModel)
	require.ErrorContains(t, err, "no such model")
	require.ErrorContains(t, err, "path of a folder")
	t.Setenv("HF_HUB_OFFLINE", "1")
	require.ErrorContains(t, register("acme/robot"), "art model pull acme/robot")
	require.Empty(t, server.Requests()[1:], "offline is offline")
	require.ErrorContains(t, register("no such thing"), "neither a folder, nor a GGUF file, nor ORG/NAME")
}

// TestRegister_ConfigFirst: the weights of a model that cannot be used are not fetched, and of a file only the header
// is read before it is refused.
func TestRegister_ConfigFirst(t *testing.T) {
	server := tinyHub(t)
	server.Files["config.json"] = []byte(`{"model_type": "mixtral", "num_local_experts": 8}`)
	b := open(t, t.TempDir())
	register := func(base string) error {
		return art.NewModel("x", &art.ModelOptions{Base: base}).Register(t.Context(), b)
	}
	err := register("acme/robot")
	require.ErrorIs(t, err, art.ErrBaseModel)
	require.ErrorContains(t, err, `a text model with experts: model_type "mixtral" is not supported`)
	for _, r := range server.Requests() {
		require.False(t, r.Store, "weights were asked for: %v", r)
		require.NotContains(t, r.Path, "tokenizer")
	}
	file := filepath.Join(t.TempDir(), "mmproj.gguf")
	require.NoError(t, os.WriteFile(file, gguftest.Encode([]gguftest.Value{
		{Key: "general.architecture", Value: "clip"},
	}, nil), 0o600))
	require.ErrorContains(t, register(file), "the part of a model that reads images or sound")
}

// TestRegister_FolderFirst: a folder goes before a model of the hub of the same name.
func TestRegister_FolderFirst(t *testing.T) {
	server := tinyHub(t)
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("acme/robot", 0o777))
	files := server.Files
	server.Files = nil
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join("acme/robot", name), content, 0o666))
	}
	require.NotEmpty(t, reply(t, open(t, t.TempDir()), "x", "acme/robot"))
	require.Empty(t, server.Requests())
}

// TestRegister_HubMoved: a run continues with the commit of its base model, or not at all.
func TestRegister_HubMoved(t *testing.T) {
	server := tinyHub(t)
	dir, old := t.TempDir(), server.Commit
	register := func(base string) error {
		b, err := Open(t.Context(), &Options{Dir: dir})
		require.NoError(t, err)
		defer func() { require.NoError(t, b.Close()) }()
		return art.NewModel("x", &art.ModelOptions{Base: base, Frozen: true}).Register(t.Context(), b)
	}
	require.NoError(t, register("acme/robot"))
	server.Commit = strings.Repeat("ab", 20)
	require.NoError(t, register("acme/robot"), "the cache decides")
	_, err := hub.Pull(t.Context(), "acme/robot", nil)
	require.NoError(t, err)
	err = register("acme/robot")
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, `set Base to "acme/robot@`+old+`"`)
	require.NoError(t, register("acme/robot@"+old))
}
