package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/lora"
)

// TestRegister_GGUF: the built-in model as a GGUF file computes what the built-in model computes, and a run on it is
// resumed with the same file, wherever it is then. Such a file names a known way to cut words, and the built-in model
// has its own, so that the ids are given.
func TestRegister_GGUF(t *testing.T) {
	b, path := open(t, t.TempDir()), gguftest.Folder(t, "../../model/tiny")
	logprobs := func(name, base string) []float32 {
		m := art.NewModel(name, &art.ModelOptions{Base: base, Frozen: true})
		require.NoError(t, m.Register(t.Context(), b))
		scores, _, err := b.Logprobs(t.Context(), m, []int32{72, 101, 108, 108, 111, 10, 65})
		require.NoError(t, err)
		return scores
	}
	require.Equal(t, logprobs("builtin", "tiny"), logprobs("file", path))

	dir := t.TempDir()
	register := func(base string) error {
		b := open(t, dir)
		defer func() { require.NoError(t, b.Close()) }()
		return art.NewModel("run", &art.ModelOptions{Base: base}).Register(t.Context(), b)
	}
	require.NoError(t, register(path))
	moved := filepath.Join(t.TempDir(), "moved.gguf")
	require.NoError(t, os.Rename(path, moved))
	require.NoError(t, register(moved))

	content, err := os.ReadFile(moved)
	require.NoError(t, err)
	content[len(content)-1] ^= 1 // a weight
	require.NoError(t, os.WriteFile(moved, content, 0o600))
	err = register(moved)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "was made with")
}

// TestRegister_GGUFErrors: a file that cannot be used is named, with what is wrong.
func TestRegister_GGUFErrors(t *testing.T) {
	b := open(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "model.gguf")
	require.NoError(t, os.WriteFile(path, []byte("GGUF"), 0o600))
	err := art.NewModel("run", &art.ModelOptions{Base: path}).Register(t.Context(), b)
	require.ErrorIs(t, err, art.ErrBaseModel)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "truncated")
}

// TestRegister_GGUFThreats: a file that is cut, mislabelled or absurd is refused with what is wrong, before memory is
// taken for what it claims; nothing is loaded, booked or stored then.
func TestRegister_GGUFThreats(t *testing.T) {
	values, tensors := gguftest.QuantizedParts(t, "../../model/tiny")
	content := gguftest.Encode(values, tensors)
	matrix := slices.IndexFunc(tensors, func(x gguftest.Tensor) bool { return x.Name == "blk.1.ffn_up.weight" })
	embedding := slices.IndexFunc(tensors, func(x gguftest.Tensor) bool { return x.Name == "token_embd.weight" })
	changed := func(i int, change func(x *gguftest.Tensor)) []byte {
		list := slices.Clone(tensors)
		list[i].Blocks = slices.Clone(list[i].Blocks)
		change(&list[i])
		return gguftest.Encode(values, list)
	}
	with := func(key string, value any) []byte {
		list := slices.DeleteFunc(slices.Clone(values), func(v gguftest.Value) bool { return v.Key == key })
		return gguftest.Encode(append(list, gguftest.Value{Key: key, Value: value}), tensors)
	}
	scale := func(bits uint16) []byte {
		return changed(matrix, func(x *gguftest.Tensor) {
			binary.LittleEndian.PutUint16(x.Blocks[5*ggml.Q8_0.Bytes(x.Shape[1]):], bits)
		})
	}
	relabelled := func(name string, dimension int, size uint64, kind uint32) []byte { // in the header alone
		out := slices.Clone(content)
		at := bytes.Index(out, []byte(name)) + len(name)
		rank := int(binary.LittleEndian.Uint32(out[at:]))
		if size > 0 {
			binary.LittleEndian.PutUint64(out[at+4+8*(rank-1-dimension):], size)
		}
		binary.LittleEndian.PutUint32(out[at+4+8*rank:], kind)
		return out
	}
	const up, q8 = "blk.1.ffn_up.weight", uint32(ggml.Q8_0)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"header cut":   {content[:1000], "truncated"},
		"data cut":     {content[:len(content)-100], "truncated"},
		"other blocks": {relabelled(up, 0, 0, uint32(ggml.Q5_1)), "begins at"},
		"long blocks":  {relabelled(up, 0, 0, uint32(ggml.Q4_K)), "not whole blocks of 256"},
		"type we lack": {changed(len(tensors)-1, func(x *gguftest.Tensor) {
			x.Type, x.Blocks = 27, make([]byte, 8*x.Shape[0])
		}), "is I64, which cannot be converted"},
		"unknown type": {relabelled(up, 0, 0, 99), "unknown type 99"},
		"absurd rows":  {relabelled(up, 0, 1<<40, q8), "truncated"},
		"overflow":     {relabelled(up, 0, 1<<62, q8), "overflows"},
		"other shape": {changed(matrix, func(x *gguftest.Tensor) {
			x.Shape = []int{x.Shape[0] / 2, 2 * x.Shape[1]}
		}), "the configuration requires"},
		"broken row": {relabelled(up, 1, uint64(tensors[matrix].Shape[1])/32, q8), "not whole blocks of 32"},
		"fewer tokens": {changed(embedding, func(x *gguftest.Tensor) {
			x.Shape, x.Blocks = []int{32, x.Shape[1]}, x.Blocks[:ggml.Q8_0.Bytes(32*x.Shape[1])]
		}), "they do not belong together"},
		"layers":         {with("qwen3.block_count", uint32(1<<31)), "num_hidden_layers is 2147483648"},
		"context":        {with("qwen3.context_length", uint32(1<<31)), "max_position_embeddings is 2147483648"},
		"heads":          {with("qwen3.attention.head_count", uint32(1<<31)), "num_attention_heads is 2147483648"},
		"infinite scale": {scale(0x7c00), "row 5 has a scale that is infinite or NaN"},
		"NaN scale":      {scale(0xfe01), "row 5 has a scale that is infinite or NaN"},
	} {
		path, dir := filepath.Join(t.TempDir(), "model.gguf"), t.TempDir()
		require.NoError(t, os.WriteFile(path, c.file, 0o600))
		for _, weights := range []string{"", "float32", "bfloat16"} {
			b, _ := weightsBackend(t, dir, Options{Weights: weights})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := art.NewModel("run", &art.ModelOptions{Base: path}).Register(t.Context(), b)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, art.ErrBaseModel, name)
			require.ErrorContains(t, err, c.want, name)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), name)
			require.Empty(t, b.bases, name)
			require.Zero(t, booked(t, b.memory), name)
			require.NoError(t, b.Close())
		}
		stored, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, stored, name)
	}
}

// TestRegister_GGUFOriginal: the adapter of a run on a GGUF file names the checkpoint that the file says it was made
// from, not the path of the file, which the run records.
func TestRegister_GGUFOriginal(t *testing.T) {
	b, path := open(t, t.TempDir()), gguftest.Folder(t, "../../model/tiny")
	m := art.NewModel("run", &art.ModelOptions{Base: path})
	require.NoError(t, m.Register(t.Context(), b))
	dir, err := b.Dir(m)
	require.NoError(t, err)
	for file, want := range map[string]string{
		"model.json": path, filepath.Join("checkpoints", "0000", "adapter_config.json"): "Tiny",
	} {
		content, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		var c struct {
			Base    string `json:"base"`
			Adapter string `json:"base_model_name_or_path"`
		}
		require.NoError(t, json.Unmarshal(content, &c))
		require.Equal(t, want, c.Base+c.Adapter, file)
	}
}

// TestRegister_Quantized: weights that were quantized for another library are refused, by the name of the method.
func TestRegister_Quantized(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../model/tiny")))
	content, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	for want, config := range map[string]string{
		"bitsandbytes": `"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}`,
		"GPTQ":         `"quantization_config": {"quant_method": "gptq", "bits": 4}`,
		"AWQ":          `"quantization_config": {"quant_method": "awq", "bits": 4}`,
		"compressed-tensors (float-quantized)": `"quantization_config": {"quant_method": "compressed-tensors",
			"format": "float-quantized"}`,
		"FP8 of FBGEMM":    `"quantization_config": {"quant_method": "fbgemm_fp8"}`,
		"fine-grained FP8": `"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}`,
		"MLX with 4 bits":  `"quantization": {"group_size": 64, "bits": 4}`,
	} {
		quantized := append([]byte("{"+config+","), content[1:]...)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), quantized, 0o600))
		err := art.NewModel("run", &art.ModelOptions{Base: dir}).Register(t.Context(), open(t, t.TempDir()))
		require.ErrorIs(t, err, art.ErrBaseModel)
		require.ErrorContains(t, err, "quantized by "+want)
		require.ErrorContains(t, err, "use a GGUF file of the model")
	}
}

// outcome is what a run on a base model samples and learns.
type outcome struct {
	ids      []int32
	loss     float64
	logprobs []float32
}

// learn samples from a base model and trains an adapter on it for a step, in the run "run". The trainer's logprobs are
// the sampler's.
func learn(t *testing.T, base string, adapter art.LoRA, opts Options) (o outcome) {
	t.Helper()
	opts.Slots, opts.Context, opts.Progress = 8, 256, io.Discard
	b, err := Open(t.Context(), &opts)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	m := art.NewModel("run", &art.ModelOptions{
		Base: base, Seed: 3, LoRA: adapter, Chat: art.ChatOptions{MaxTokens: new(12)},
	})
	require.NoError(t, m.Register(t.Context(), b))
	groups, err := art.GatherGroups(t.Context(), []int{1}, func(ctx context.Context, _ int) (*art.Trajectory, error) {
		x := art.NewTrajectory(art.User("Say something."))
		reply, err := m.Chat(ctx, x, nil)
		if err == nil {
			x.Reward = float64(len(reply.Content) % 7)
			o.ids = append(o.ids, reply.Sample.IDs...)
		}
		return x, err
	}, &art.GatherOptions{GroupSize: 8, Concurrency: 1})
	require.NoError(t, err)
	result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3, KL: credit.KL{Coef: 0.1}})
	require.NoError(t, err)
	require.Zero(t, result.Metrics["train/logprob_gap_max"])
	o.loss = result.Metrics["loss/policy"]
	o.logprobs, _, err = b.Logprobs(t.Context(), m, []int32{72, 101, 108, 108, 111, 10, 65})
	require.NoError(t, err)
	return o
}

// TestWeights_Stored: sampling from a quantized file as it is stored, and training an adapter on it, have the bits of
// the same with its numbers in float32, and the trainer's logprobs are the sampler's.
func TestWeights_Stored(t *testing.T) {
	for name, adapter := range map[string]art.LoRA{
		"LoRA": {}, "DoRA": {Rank: 3, DoRA: true, Targets: append(lora.DefaultTargets(), "embed_tokens", "lm_head")},
	} {
		t.Run(name, func(t *testing.T) { testStored(t, adapter) })
	}
}

func testStored(t *testing.T, adapter art.LoRA) {
	path := gguftest.Quantized(t, "../../model/tiny")
	outcomes := map[string]outcome{}
	for _, weights := range []string{"float32", "stored"} {
		outcomes[weights] = learn(t, path, adapter, Options{Dir: t.TempDir(), Weights: weights})
	}
	require.Equal(t, outcomes["float32"], outcomes["stored"])
	require.NotZero(t, outcomes["stored"].loss)
}

// TestActivations_Int8: with rounded activations the trainer's logprobs are the sampler's too, and near those without
// rounding. A run records the option, and continues with another one, with a warning.
func TestActivations_Int8(t *testing.T) {
	path, dir := gguftest.Quantized(t, "../../model/tiny"), t.TempDir()
	var log strings.Builder
	opts := Options{Dir: dir, Weights: "stored", Activations: "int8", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	rounded := learn(t, path, art.LoRA{}, opts)
	require.NotZero(t, rounded.loss)
	exact := learn(t, path, art.LoRA{}, Options{Dir: t.TempDir(), Weights: "stored"})
	require.NotEqual(t, exact.logprobs, rounded.logprobs)
	require.InDeltaSlice(t, exact.logprobs[1:], rounded.logprobs[1:], 0.3)

	recorded := func() string {
		data, err := os.ReadFile(filepath.Join(dir, "default", "models", "run", "model.json"))
		require.NoError(t, err)
		var d description
		require.NoError(t, json.Unmarshal(data, &d))
		return d.Activations
	}
	require.Equal(t, "int8", recorded())
	learn(t, path, art.LoRA{}, opts)
	opts.Activations = ""
	learn(t, path, art.LoRA{}, opts)
	require.NotContains(t, log.String(), "another")
	opts.Activations = "float32"
	learn(t, path, art.LoRA{}, opts)
	require.Contains(t, log.String(),
		`msg="the run continues with another type of activations" model=run started=int8 now=float32`)
	require.Equal(t, "int8", recorded())
}

// TestActivations_Errors: what cannot round activations is refused.
func TestActivations_Errors(t *testing.T) {
	for want, opts := range map[string]Options{
		`Activations is "int4"`:                          {Activations: "int4", Weights: "stored"},
		`Activations is "int8", and Weights "float32": `: {Activations: "int8", Weights: "float32"},
	} {
		opts.Dir = t.TempDir()
		_, err := Open(t.Context(), &opts)
		require.ErrorIs(t, err, art.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Activations: "int8"})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	err = art.NewModel("run", nil).Register(t.Context(), b)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, `holds no quantized matrices of "tiny"`)
}
