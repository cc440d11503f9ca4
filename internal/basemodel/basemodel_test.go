package basemodel

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
)

const tinyDir = "../../model/tiny"

// TestOpen_Vocabulary: a tokenizer with ids that the model has no embedding for is refused, in a folder and in a file.
func TestOpen_Vocabulary(t *testing.T) {
	c, err := tiny.Open()
	require.NoError(t, err)
	w := c.Weights()
	size := w.Config.VocabSize
	w.Config.VocabSize = 700
	w.Tensors[0].Shape = []int{700, w.Config.HiddenSize}
	w.Tensors[0].Data = w.Tensors[0].Data[:700*w.Config.HiddenSize]
	dir := t.TempDir()
	require.NoError(t, w.Save(dir))
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		content, err := os.ReadFile(filepath.Join(tinyDir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	for _, path := range []string{dir, gguftest.Folder(t, dir)} {
		_, err = Open(path)
		require.ErrorContains(t, err,
			fmt.Sprintf("the tokenizer has %d ids, the model 700: they do not belong together", size))
	}
}

// TestOpen_Errors: what is missing is named.
func TestOpen_Errors(t *testing.T) {
	_, err := Open(t.TempDir())
	require.ErrorContains(t, err, "config.json")
	_, err = Open("nowhere")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open("basemodel.go")
	require.ErrorContains(t, err, "basemodel.go")
	require.ErrorContains(t, err, "does not begin with GGUF")
}

// TestExport_Files: everything of the tokenizer goes along, and nothing else.
func TestExport_Files(t *testing.T) {
	from := t.TempDir()
	require.NoError(t, os.CopyFS(from, os.DirFS(tinyDir)))
	more := []string{"chat_template.jinja", "generation_config.json", "additional_chat_templates/tool_use.jinja"}
	require.NoError(t, os.Mkdir(filepath.Join(from, "additional_chat_templates"), 0o755))
	for _, name := range append(more, "README.md") {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte(name), 0o644))
	}
	base, err := Open(from)
	require.NoError(t, err)
	defer base.Close()
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, base.Export(dir, nil, nil))
	for _, name := range more {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, name, string(content))
	}
	require.NoFileExists(t, filepath.Join(dir, "README.md"))
	again, err := model.Load(dir)
	require.NoError(t, err)
	w, err := tiny.Load()
	require.NoError(t, err)
	require.Equal(t, w.Tensors, again.Tensors)
	require.ErrorContains(t, base.Export(dir, nil, nil), "is not empty")
}

// TestExport_OtherModel: an adapter of another model is refused before anything is written.
func TestExport_OtherModel(t *testing.T) {
	base, err := Open(tiny.Name)
	require.NoError(t, err)
	defer base.Close()
	a, err := lora.New(lora.Config{Targets: []string{"x"}}, []lora.LayerShape{{Name: "model.x", In: 1, Out: 1}}, 1)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "new")
	require.ErrorContains(t, base.Export(dir, a, nil), "model.x")
	require.NoDirExists(t, dir)
}
