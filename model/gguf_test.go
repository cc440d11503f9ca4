package model

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/gguf"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
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
		got := map[string]string{}
		for _, x := range declared(t, m).tensors() {
			if x.bias || strings.HasPrefix(x.Name, "model.layers.") && !strings.HasPrefix(x.Name, "model.layers.11.") {
				continue
			}
			require.Equal(t, strings.Contains(x.Name, ".experts."), x.merged, x.Name)
			name := regexp.MustCompile(`experts\.\d+\.`).ReplaceAllString(x.Name, "experts.")
			require.Contains(t, []string{"", name}, got[x.file], "two tensors have the name %s", x.file)
			got[x.file] = name
		}
		require.Equal(t, names, got, arch)
	}
}

// declared is a configuration of twelve layers, with experts if any.
func declared(t testing.TB, m ggufModel) *Config {
	t.Helper()
	for _, a := range architectures() {
		if a.modelType == m.modelType {
			c := smallConfig(false)
			c.NumLayers, c.ModelType, c.Architectures, c.TieEmbeddings = 12, a.modelType, []string{a.class}, false
			if a.modelType == qwen3MoE.modelType {
				c.NumExperts, c.ExpertsPerToken, c.MoEIntermediateSize = 3, 2, 4
			}
			return c
		}
	}
	require.Fail(t, "no architecture", m.modelType)
	return nil
}

// ggufValues describes c in a GGUF file.
func ggufValues(arch string, c *Config) []gguftest.Value {
	v := []gguftest.Value{{Key: "general.architecture", Value: arch}}
	for key, n := range map[string]int{
		"block_count": c.NumLayers, "context_length": c.MaxPositions, "embedding_length": c.HiddenSize,
		"feed_forward_length":  c.IntermediateSize,
		"attention.head_count": c.NumHeads, "attention.head_count_kv": c.NumKVHeads, "attention.key_length": c.HeadDim,
		"attention.value_length": c.HeadDim,
	} {
		v = append(v, gguftest.Value{Key: arch + "." + key, Value: uint32(n)})
	}
	return append(v,
		gguftest.Value{Key: arch + ".attention.layer_norm_rms_epsilon", Value: float32(c.RMSNormEps)},
		gguftest.Value{Key: arch + ".rope.freq_base", Value: float32(c.RopeTheta)})
}

// ggufTensors are weights as llama.cpp names them.
func ggufTensors(t testing.TB, w *Weights) []gguftest.Tensor {
	t.Helper()
	var list []gguftest.Tensor
	for _, x := range w.Tensors {
		list = append(list, gguftest.Tensor{Name: fileName(t, w.Config, x.Name), Shape: x.Shape, Data: x.Data})
	}
	return list
}

func fileName(t testing.TB, c *Config, name string) string {
	t.Helper()
	list := c.tensors()
	i := slices.IndexFunc(list, func(x tensor) bool { return x.Name == name })
	require.GreaterOrEqual(t, i, 0, "no tensor %s", name)
	require.NotEmpty(t, list[i].file, name)
	return list[i].file
}

// TestOpen_GGUF: a file is the model that a folder with the same weights is, bit for bit, on the device too.
func TestOpen_GGUF(t *testing.T) {
	for _, tied := range []bool{true, false} {
		w := testWeights(t, smallConfig(tied))
		path := gguftest.Write(t, ggufValues("qwen3", w.Config), ggufTensors(t, w))
		c, err := Open(path)
		require.NoError(t, err)
		got := c.Weights()
		require.Equal(t, []string{"Qwen3ForCausalLM"}, got.Config.Architectures)
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

// quantizedGGUF opens a file with matrices of many types.
func quantizedGGUF(t *testing.T, arch string) (*Checkpoint, []gguftest.Tensor) {
	types := []ggml.Type{ggml.Q4_K, ggml.Q6_K, ggml.Q4_0, ggml.Q5_1, ggml.Q8_0, ggml.Q5_K, ggml.IQ4_XS, ggml.Q3_K,
		ggml.Q2_K, ggml.Q4_1, ggml.Q5_0, ggml.IQ4_NL, ggml.BF16, ggml.F16}
	rng := rand.New(rand.NewPCG(1, 2))
	c := smallConfig(false)
	c.HiddenSize, c.IntermediateSize, c.HeadDim, c.VocabSize = 256, 512, 64, 75
	c.NumHeads, c.NumKVHeads = 4, 4
	c.ModelType = ggufModels[arch].modelType
	if arch == "qwen3moe" {
		c.NumExperts, c.ExpertsPerToken, c.MoEIntermediateSize = 4, 2, 256
	}
	list := fixtureTensors(t, arch, testWeights(t, c))
	for i, x := range list {
		if len(x.Shape) == 1 {
			continue
		}
		kind := types[i%len(types)]
		list[i].Type, list[i].Blocks, list[i].Data = kind, randomBlocks(rng, kind, len(x.Data)), nil
	}
	file, err := Open(gguftest.Write(t, fixtureValues(arch, c), list))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	return file, list
}

// TestOpen_GGUFStored: a model whose matrices stay as a file has them computes what their numbers in float32 do, to the
// bit, whatever the types, with rows that llama.cpp reordered and with experts; and takes no more memory than it says.
func TestOpen_GGUFStored(t *testing.T) {
	for _, arch := range []string{"qwen3", "llama", "qwen3moe"} {
		device := graphtest.Device(t)
		file, list := quantizedGGUF(t, arch)
		f := newForward(t, file.Weights(), nil, nil)
		ids := []int32{1, 4, 2, 0, 3, 74}
		want := f.logprobs(t, ids, 1)
		var err error
		f.params, err = file.ParamsAs(device, Stored)
		require.NoError(t, err)
		sameBits(t, want, f.logprobs(t, ids, 1), "logprobs of %s", arch)
		held, full := file.WeightBytes(device, Stored), file.WeightBytes(device, dtypes.Float32)
		require.Less(t, held, 0.4*full)
		rest := len(gguftest.Encode(nil, list)) - len(gguftest.Encode(nil, emptied(list)))
		for _, x := range file.TensorBytes(device, Stored) {
			rest -= x.File
		}
		require.True(t, rest >= 0 && rest < 32*len(list), "%d bytes are of no tensor", rest) // padding
	}
}

// TestOpen_GGUFInt8Activations: with rounded activations a model computes about the same, the bits of a row do not
// depend on the other rows, and a file without quantized matrices that stay so is refused.
func TestOpen_GGUFInt8Activations(t *testing.T) {
	for _, arch := range []string{"qwen3", "llama", "qwen3moe"} {
		device := graphtest.Device(t)
		file, _ := quantizedGGUF(t, arch)
		f := newForward(t, file.Weights(), nil, nil)
		ids := []int32{1, 4, 2, 0, 3, 74}
		exact := f.logprobs(t, ids, 1)
		file.Int8Activations = true
		var err error
		f.params, err = file.ParamsAs(device, Stored)
		require.NoError(t, err)
		one := f.logprobs(t, ids, 1)
		require.NotEqual(t, exact, one)
		require.InDeltaSlice(t, exact, one, 0.2)
		many := f.logprobs(t, slices.Repeat(ids, 20), 20)
		sameBits(t, one, many[19*len(one):], "logprobs of %s", arch)
		_, err = file.ParamsAs(device, dtypes.Float32)
		require.ErrorContains(t, err, "activations of int8 need a file with quantized matrices")
	}
}

// emptied are tensors of the same names and ranks without elements.
func emptied(list []gguftest.Tensor) (out []gguftest.Tensor) {
	for _, x := range list {
		x.Shape, x.Data, x.Blocks = make([]int, len(x.Shape)), nil, []byte{}
		x.Type = ggml.F32
		out = append(out, x)
	}
	return out
}

// TestOpen_GGUFStoredScale: a scale that is NaN is refused with its tensor and row, whether blocks are kept or not.
func TestOpen_GGUFStoredScale(t *testing.T) {
	c := smallConfig(true)
	c.HiddenSize, c.HeadDim, c.NumHeads, c.NumKVHeads = 32, 16, 2, 2
	list := ggufTensors(t, testWeights(t, c))
	rng := rand.New(rand.NewPCG(1, 2))
	for i, x := range list {
		if strings.HasSuffix(x.Name, "attn_k.weight") {
			list[i].Type, list[i].Data, list[i].Blocks = ggml.Q8_0, nil, randomBlocks(rng, ggml.Q8_0, len(x.Data))
			copy(list[i].Blocks[3*ggml.Q8_0.Bytes(32):], []byte{1, 0x7c})
		}
	}
	file, err := Open(gguftest.Write(t, ggufValues("qwen3", c), list))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	_, err = file.ParamsAs(graphtest.Device(t), Stored)
	require.ErrorContains(t, err, "self_attn.k_proj.weight: cpu: row 3 has a scale that is infinite or NaN")
	_, err = file.ParamsAs(graphtest.Device(t), dtypes.Float32)
	require.ErrorContains(t, err, "self_attn.k_proj.weight: row 3 has a scale that is infinite or NaN")
}

// randomBlocks are n numbers of a type, whose scales are small and finite.
func randomBlocks(rng *rand.Rand, kind ggml.Type, n int) []byte {
	data := make([]byte, kind.Bytes(n))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	halves := map[ggml.Type][]int{ggml.Q2_K: {80, 82}, ggml.Q3_K: {108}, ggml.Q6_K: {208}, ggml.Q4_K: {0, 2},
		ggml.Q5_K: {0, 2}, ggml.Q4_1: {0, 2}, ggml.Q5_1: {0, 2}}[kind]
	if halves == nil {
		halves = []int{0}
	}
	size := kind.Bytes(kind.Block())
	for at := 0; at < len(data); at += size {
		for _, h := range halves {
			data[at+h+1] = data[at+h+1]&0x83 | 0x08 // of float16 about 1e-4; of bfloat16 too small to matter
			if kind == ggml.BF16 {
				data[at+h+1] = data[at+h+1]&0x80 | 0x3c
			}
		}
	}
	return data
}

// TestOpen_GGUFArchitectures: each model of internal/dev/testdata/architectures that llama.cpp can express says the
// same as a GGUF file, in which its tensors are changed as llama.cpp changes them.
func TestOpen_GGUFArchitectures(t *testing.T) {
	seen := map[string]bool{}
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		if m.Name == "gemma3-caps" || m.Name == "qwen2-window" {
			t.Skip("GGUF files do not hold these caps and windows")
		}
		c := w.Config
		if c.RopeScaling != nil && c.RopeScaling.Type == ropeLlama3 {
			c.RopeScaling.OriginalPositions = 8192 // of the released models, which are known
		}
		if c.ModelType == "gemma3_text" { // what llama.cpp takes for granted
			c.QueryScalar, c.LayerTypes = float64(c.HeadDim), []string{layerSliding, layerSliding, layerSliding}
		}
		arch := map[string]string{"qwen3_moe": "qwen3moe", "gemma3_text": "gemma3",
			"mistral": "llama"}[c.ModelType]
		arch = cmp.Or(arch, c.ModelType)
		if _, ok := ggufModels[arch]; !ok {
			t.Skip("llama.cpp's form of it is not read")
		}
		seen[arch] = true
		file, err := Open(gguftest.Write(t, fixtureValues(arch, c), fixtureTensors(t, arch, w)))
		require.NoError(t, err)
		defer func() { require.NoError(t, file.Close()) }()
		want := newForward(t, w, nil, nil).logprobs(t, m.Flat(), len(m.IDs))
		got := newForward(t, file.Weights(), nil, nil).logprobs(t, m.Flat(), len(m.IDs))
		if m.Adapter != "" && c.wrapper == nil { // PEFT's, of the checkpoint
			a, err := lora.Load(m.Adapter)
			require.NoError(t, err)
			sameBits(t, withLogits(t, w, a).logprobs(t, m.Flat(), len(m.IDs)),
				withLogits(t, file.Weights(), a).logprobs(t, m.Flat(), len(m.IDs)), "logits with an adapter")
		}
		if arch != "gemma3" {
			sameBits(t, want, got, "logprobs")
			return
		}
		for i := range want { // 1 was added to norms and taken off again, with two roundings
			require.InDelta(t, want[i], got[i], 1e-5)
		}
	})
	require.Len(t, seen, len(ggufModels), "%v", seen)
}

// fixtureValues describes all architectures.
func fixtureValues(arch string, c *Config) []gguftest.Value {
	v := ggufValues(arch, c)
	number := func(key string, value any) { v = append(v, gguftest.Value{Key: arch + "." + key, Value: value}) }
	switch arch {
	case "qwen3moe":
		number("expert_count", uint32(c.NumExperts))
		number("expert_used_count", uint32(c.ExpertsPerToken))
		number("expert_feed_forward_length", uint32(c.MoEIntermediateSize))
	case "granite":
		number("attention.scale", float32(c.AttentionMultiplier))
		number("embedding_scale", float32(c.EmbeddingMultiplier))
		number("residual_scale", float32(c.ResidualMultiplier))
		number("logit_scale", float32(c.LogitsScaling))
	}
	if c.SlidingWindow > 0 {
		number("attention.sliding_window", uint32(c.SlidingWindow))
	}
	if c.RopeScaling != nil && c.RopeScaling.Type == ropeLinear {
		number("rope.scaling.type", "linear")
		number("rope.scaling.factor", float32(c.RopeScaling.Factor))
	}
	return v
}

// fixtureTensors are weights as llama.cpp writes them: rows of queries and keys in pairs, norms with their 1, experts
// merged, Llama 3's scaling as factors.
func fixtureTensors(t testing.TB, arch string, w *Weights) []gguftest.Tensor {
	m, c := ggufModels[arch], w.Config
	var list []gguftest.Tensor
	experts := map[string]int{} // where the merged tensor is
	for _, x := range w.Tensors {
		y := gguftest.Tensor{Shape: x.Shape, Data: slices.Clone(x.Data)}
		switch name := x.Name; {
		case strings.Contains(name, ".experts."):
			parts := strings.Split(name, ".") // model layers 0 mlp experts 7 gate_proj weight
			y.Name = "blk." + parts[2] + ".ffn_" + strings.TrimSuffix(parts[6], "_proj") + "_exps.weight"
			at, ok := experts[y.Name]
			if !ok {
				experts[y.Name] = len(list)
				y.Shape = append([]int{1}, x.Shape...)
				list = append(list, y)
				continue
			}
			list[at].Data = append(list[at].Data, x.Data...)
			list[at].Shape[0]++
			continue
		case arch == "gemma3" && strings.HasSuffix(name, "norm.weight"):
			for i := range y.Data {
				y.Data[i]++
			}
		case m.interleaved && strings.Contains(name, "q_proj"):
			y.Data = pairRows(x.Data, c.NumHeads, c.HeadDim)
		case m.interleaved && strings.Contains(name, "k_proj"):
			y.Data = pairRows(x.Data, c.NumKVHeads, c.HeadDim)
		}
		y.Name = fileName(t, c, x.Name)
		list = append(list, y)
	}
	if s := c.RopeScaling; s != nil && s.Type == ropeLlama3 {
		factors := make([]float32, c.HeadDim/2)
		for i := range factors {
			factors[i] = float32(rope{theta: c.RopeTheta, size: c.HeadDim}.frequency(i) / c.rope().frequency(i))
		}
		list = append(list, gguftest.Tensor{Name: ropeFactorsName, Shape: []int{len(factors)}, Data: factors})
	}
	return list
}

// TestConfig_GGUFTensor: each layer that an adapter may attach to is found in a file under the name, and its rows where
// Open reads them.
func TestConfig_GGUFTensor(t *testing.T) {
	eachFixture(t, func(t *testing.T, _ *fixtures.Model, w *Weights) {
		c := w.Config
		for _, l := range c.Adaptable() {
			name := l.Name + weightSuffix
			arch, file, row, err := c.GGUFTensor(name)
			if l.Name == headLayer && c.TieEmbeddings || !inGGUF(c) {
				require.ErrorContains(t, err, "no matrix of a "+c.ModelType+" is called "+name)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, fileName(t, c, name), file)
			heads := map[string]int{"q": c.NumHeads, "k": c.NumKVHeads}[strings.TrimSuffix(file[len(file)-8:], ".weight")]
			if !ggufModels[arch].interleaved || heads == 0 {
				require.Equal(t, 3, row(3))
				continue
			}
			rows := make([]float32, l.Out)
			for i := range rows {
				rows[i] = float32(i)
			}
			for i, from := range pairRows(rows, heads, c.HeadDim) {
				require.Equal(t, i, row(int(from)), name)
			}
		}
	})
	_, _, _, err := smallConfig(true).GGUFTensor("model.norm.weight")
	require.ErrorContains(t, err, "model.norm.weight")
}

// inGGUF reports whether llama.cpp's form of an architecture is read and written.
func inGGUF(c *Config) bool {
	for _, m := range ggufModels {
		if m.modelType == c.ModelType {
			return true
		}
	}
	return c.ModelType == mistral.modelType // as llama
}

// pairRows writes the rows i and i + size/2 of each head one behind the other.
func pairRows(x []float32, heads, size int) []float32 {
	columns := len(x) / heads / size
	var out []float32
	for h := range heads {
		for i := range size / 2 {
			for _, row := range []int{i, i + size/2} {
				at := (h*size + row) * columns
				out = append(out, x[at:at+columns]...)
			}
		}
	}
	return out
}

// TestGGUF_RopeFactors: factors that are not Llama 3's are refused.
func TestGGUF_RopeFactors(t *testing.T) {
	for _, factors := range [][]float32{{1, 2, 3, 4}, {1, 1, 8, 1}, {float32(math.NaN())}} {
		_, err := llama3Scaling(factors, 500000)
		require.ErrorContains(t, err, "not those of Llama 3", "%v", factors)
	}
}

// TestOpen_GGUFErrors: what is wrong is named.
func TestOpen_GGUFErrors(t *testing.T) {
	w := testWeights(t, smallConfig(false))
	values, tensors := ggufValues("qwen3", w.Config), ggufTensors(t, w)
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
		"an adapter, not a model: llama.cpp reads it":                                                        gguftest.Encode(with("general.type", "adapter"), nil),
		"one of 3 parts": gguftest.Encode(with("split.count", uint32(3)), tensors),
		"the metadata has no qwen3.embedding_length":                           gguftest.Encode(without("qwen3.embedding_length"), tensors),
		"qwen3.block_count is a string":                                        gguftest.Encode(with("qwen3.block_count", "two"), tensors),
		"head_count_kv is a []int32":                                           gguftest.Encode(with("qwen3.attention.head_count_kv", []int32{1, 2}), tensors),
		"qwen3.attention.value_length is 3":                                    gguftest.Encode(with("qwen3.attention.value_length", uint32(3)), tensors),
		"the checkpoint has no model.layers.0.self_attn.":                      gguftest.Encode(values, renamed),
		"the checkpoint has blk.0.attn_z.weight":                               gguftest.Encode(values, renamed),
		"model.embed_tokens.weight is [4 5], the configuration requires [4 4]": gguftest.Encode(values, append([]gguftest.Tensor{{Name: "token_embd.weight", Shape: []int{4, 5}, Data: tensors[0].Data}}, tensors[1:]...)),
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

// TestGGUF_Undo: what llama.cpp does to weights is undone, in whatever parts they are read. The rows 0 to 3 of a head
// were written as 0 2 1 3: each of the first half with its partner of the second.
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

// FuzzGGUF: any file is refused, or is a model whose weights it has, whatever its metadata claims.
func FuzzGGUF(f *testing.F) {
	for _, arch := range []string{"qwen3", "llama", "gemma3", "qwen3moe"} {
		c := &Config{HiddenSize: 2, IntermediateSize: 2, NumLayers: 1, NumHeads: 1, NumKVHeads: 1, HeadDim: 2,
			MaxPositions: 2, RMSNormEps: 1, RopeTheta: 1}
		values := append(ggufValues(arch, c), gguftest.Value{Key: arch + ".attention.sliding_window", Value: uint32(1)},
			gguftest.Value{Key: arch + ".expert_used_count", Value: uint32(1)},
			gguftest.Value{Key: arch + ".expert_feed_forward_length", Value: uint32(2)})
		c.ModelType, c.VocabSize, c.TieEmbeddings = ggufModels[arch].modelType, 2, true
		c.HiddenAct = "silu"
		switch arch {
		case "gemma3":
			c.HiddenActivation, c.RopeLocalTheta, c.QueryScalar = "gelu_pytorch_tanh", 1, 1
		case "qwen3moe":
			values = append(values, gguftest.Value{Key: arch + ".expert_count", Value: uint32(2)})
			c.NumExperts, c.ExpertsPerToken, c.MoEIntermediateSize = 2, 1, 2
		}
		w, err := Random(c, 1)
		require.NoError(f, err)
		file := gguftest.Encode(values, fixtureTensors(f, arch, w))
		parsed, err := gguf.Parse(file)
		require.NoError(f, err)
		_, err = ggufCheckpoint(parsed)
		require.NoError(f, err, "what is changed must be right at first")
		f.Add(file)
		f.Add(file[:len(file)/2])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := gguf.Parse(content)
		if err != nil {
			return
		}
		c, err := ggufCheckpoint(file)
		if err != nil {
			return
		}
		numbers := 0
		for _, s := range c.Config.Specs() {
			numbers += s.size()
		}
		require.LessOrEqual(t, numbers, 256*len(content), "no more numbers than blocks of the file can hold")
		require.Len(t, c.Weights().Tensors, len(c.Config.Specs()))
	})
}
