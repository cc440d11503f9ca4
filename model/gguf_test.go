package model

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/gguf"
	"github.com/goart-dev/art/internal/gguftest"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestGGUF_Names: each tensor has the name of llama.cpp's own table. The golden file is made by testdata/ggufnames.py.
func TestGGUF_Names(t *testing.T) {
	content, err := os.ReadFile("testdata/ggufnames.json")
	require.NoError(t, err)
	var golden map[string]map[string]string
	require.NoError(t, json.Unmarshal(content, &golden))
	require.Len(t, golden, len(ggufModels))
	for arch, names := range golden {
		m, ok := ggufModels[arch]
		require.True(t, ok, arch)
		for name, want := range names {
			if before, behind, ok := expertNames(name); ok {
				require.Equal(t, strings.Replace(want, "experts.", "experts.7.", 1), before+"7"+behind, name)
				continue
			}
			got, _ := m.checkpointName(name)
			require.Equal(t, want, got, "%s: %s", arch, name)
		}
	}
	for _, name := range []string{"", "weight", "blk.weight", "blk.-1.attn_q.weight", "blk.01.attn_q.weight", "blk.1.attn_z.weight", "attn_q.weight"} {
		_, ok := ggufModels["qwen3"].checkpointName(name)
		require.False(t, ok, name)
	}
}

// ggufValues describes c in a GGUF file.
func ggufValues(arch string, c *Config) []gguftest.Value {
	v := []gguftest.Value{{Key: "general.architecture", Value: arch}}
	for key, n := range map[string]int{
		"block_count": c.NumLayers, "context_length": c.MaxPositions, "embedding_length": c.HiddenSize, "feed_forward_length": c.IntermediateSize,
		"attention.head_count": c.NumHeads, "attention.head_count_kv": c.NumKVHeads, "attention.key_length": c.HeadDim, "attention.value_length": c.HeadDim,
	} {
		v = append(v, gguftest.Value{Key: arch + "." + key, Value: uint32(n)})
	}
	return append(v,
		gguftest.Value{Key: arch + ".attention.layer_norm_rms_epsilon", Value: float32(c.RMSNormEps)},
		gguftest.Value{Key: arch + ".rope.freq_base", Value: float32(c.RopeTheta)})
}

// ggufTensors are weights as llama.cpp names them.
func ggufTensors(t *testing.T, m ggufModel, w *Weights) []gguftest.Tensor {
	t.Helper()
	var list []gguftest.Tensor
	for _, x := range w.Tensors {
		list = append(list, gguftest.Tensor{Name: ggufName(t, m, x.Name), Shape: x.Shape, Data: x.Data})
	}
	return list
}

// ggufName looks for the name of llama.cpp that stands for one of a checkpoint.
func ggufName(t *testing.T, m ggufModel, want string) string {
	t.Helper()
	var stems []string
	for stem := range ggufTop {
		stems = append(stems, stem)
	}
	for l := range 4 {
		for part := range ggufBlock {
			stems = append(stems, strings.Replace("blk.0.", "0", string(rune('0'+l)), 1)+part)
		}
	}
	for _, stem := range stems {
		for _, kind := range []string{".weight", ".bias"} {
			if got, ok := m.checkpointName(stem + kind); ok && got == want {
				return stem + kind
			}
		}
	}
	t.Fatalf("no name for %s", want)
	return ""
}

// TestOpen_GGUF: a file is the model that a folder with the same weights is, bit for bit, on the device too.
func TestOpen_GGUF(t *testing.T) {
	for _, tied := range []bool{true, false} {
		w := testWeights(t, smallConfig(tied))
		path := gguftest.Write(t, ggufValues("qwen3", w.Config), ggufTensors(t, ggufModels["qwen3"], w))
		c, err := Open(path)
		require.NoError(t, err)
		got := c.Weights()
		require.Equal(t, []string{"Qwen3ForCausalLM"}, got.Config.Architectures)
		again, err := ParseConfig(c.ConfigJSON)
		require.NoError(t, err)
		require.Equal(t, again, got.Config)
		got.Config.Architectures = w.Config.Architectures
		sameWeights(t, w, got)

		f := newForward(t, w, nil, nil)
		ids := []int32{1, 4, 2, 0, 3}
		want := f.logprobs(t, ids, 1)
		f.params, err = c.Params(graphtest.Device(t))
		require.NoError(t, err)
		sameBits(t, want, f.logprobs(t, ids, 1), "logprobs")
		require.NoError(t, c.Close())
	}
}

// TestOpen_GGUFErrors: what is wrong is named.
func TestOpen_GGUFErrors(t *testing.T) {
	w := testWeights(t, smallConfig(false))
	values, tensors := ggufValues("qwen3", w.Config), ggufTensors(t, ggufModels["qwen3"], w)
	without := func(key string) []gguftest.Value {
		return slices.DeleteFunc(slices.Clone(values), func(v gguftest.Value) bool { return v.Key == key })
	}
	with := func(key string, value any) []gguftest.Value {
		return append(without(key), gguftest.Value{Key: key, Value: value})
	}
	renamed := slices.Clone(tensors)
	renamed[3].Name = "blk.0.attn_z.weight"
	for want, file := range map[string][]byte{
		`general.architecture "robot" is not supported, only gemma3, granite, llama, qwen2, qwen3, qwen3moe`: gguftest.Encode(with("general.architecture", "robot"), tensors),
		`general.architecture "" is not supported`:                                                           gguftest.Encode(nil, tensors),
		"one of 3 parts": gguftest.Encode(with("split.count", uint32(3)), tensors),
		"the metadata has no qwen3.embedding_length":                           gguftest.Encode(without("qwen3.embedding_length"), tensors),
		"qwen3.block_count is a string":                                        gguftest.Encode(with("qwen3.block_count", "two"), tensors),
		"head_count_kv is a []int32":                                           gguftest.Encode(with("qwen3.attention.head_count_kv", []int32{1, 2}), tensors),
		"qwen3.attention.value_length is 3":                                    gguftest.Encode(with("qwen3.attention.value_length", uint32(3)), tensors),
		"the checkpoint has no model.layers.0.self_attn.":                      gguftest.Encode(values, renamed),
		"the checkpoint has blk.0.attn_z.weight":                               gguftest.Encode(values, renamed),
		"model.embed_tokens.weight is [4 5], the configuration asks for [4 4]": gguftest.Encode(values, append([]gguftest.Tensor{{Name: "token_embd.weight", Shape: []int{4, 5}, Data: tensors[0].Data}}, tensors[1:]...)),
		"num_hidden_layers is 4000000000":                                      gguftest.Encode(with("qwen3.block_count", uint32(4e9)), tensors),
	} {
		f, err := gguf.Parse(file)
		require.NoError(t, err)
		_, err = ggufCheckpoint(f)
		require.ErrorContains(t, err, want)
	}
	_, err := Open("testdata/ggufnames.py")
	require.ErrorIs(t, err, gguf.ErrFormat)
	require.ErrorContains(t, err, "ggufnames.py")
}

// TestGGUF_Undo: what llama.cpp does to weights is undone, in whatever parts they are read. The rows 0 to 3 of a head were
// written as 0 2 1 3: each of the first half with its partner of the second.
func TestGGUF_Undo(t *testing.T) {
	const heads, size, columns = 3, 4, 2
	original := make([]float32, heads*size*columns)
	for i := range original {
		original[i] = float32(i)
	}
	written := make([]float32, 0, len(original))
	for head := range heads {
		for _, row := range []int{0, 2, 1, 3} {
			at := (head*size + row) * columns
			written = append(written, original[at:at+columns]...)
		}
	}
	f, err := gguf.Parse(gguftest.Encode(nil, []gguftest.Tensor{
		{Name: "q", Shape: []int{heads * size, columns}, Data: written}, {Name: "bias", Shape: []int{heads * size}, Data: written[:heads*size]},
	}))
	require.NoError(t, err)
	q, _ := f.Tensor("q")
	x := ggufTensor{Tensor: q, shape: q.Shape, heads: heads}
	for first := range original {
		for n := range len(original) - first {
			got := make([]float32, n)
			x.Read(got, first)
			require.Equal(t, original[first:first+n], got)
		}
	}
	bias, _ := f.Tensor("bias")
	got := make([]float32, 4)
	ggufTensor{Tensor: bias, shape: bias.Shape, heads: heads, shift: -1}.Read(got, 0)
	require.Equal(t, []float32{-1, 3, 0, 4}, got) // of 0 1 4 5 2 3 6 7 ...: rows 0, 2, 1 and 3
}
