package local

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/gguf"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/model"
)

// qwen7B is the shape of Qwen2.5-7B-Instruct.
var qwen7B = &model.Config{
	ModelType: "qwen2", HiddenAct: "silu", VocabSize: 152064, HiddenSize: 3584, IntermediateSize: 18944,
	NumLayers: 28, NumHeads: 28, NumKVHeads: 4, HeadDim: 128, MaxPositions: 32768, RMSNormEps: 1e-6, RopeTheta: 1e6,
	AttentionBias: true,
}

// TestLarge_Memory: a model of 7B in Q4_K_M, of random weights, is sampled from and trained one step within the memory
// that is planned, which 24 GB have. It prints both, and the seconds.
//
//	ART_LARGE=FOLDER go test ./backend/local -run TestLarge_Memory -v -timeout 60m
//
// with 5 GB free in FOLDER, where the file is removed at the end.
func TestLarge_Memory(t *testing.T) {
	dir := os.Getenv("ART_LARGE")
	if dir == "" {
		t.Skip("ART_LARGE is not set")
	}
	path := filepath.Join(dir, "large.gguf")
	t.Cleanup(func() { _ = os.Remove(path) })
	size := writeLarge(t, path, qwen7B)
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0), "the peak begins anew")
	began := time.Now()
	phase := func(name string) float64 {
		now, peak, known := machine.Resident(os.DirFS("/"))
		require.True(t, known)
		t.Logf("%-10s %6.1f s, memory %.2f GB, at most %.2f", name, time.Since(began).Seconds(), float64(now)/1e9,
			float64(peak)/1e9)
		began = time.Now()
		return float64(peak)
	}
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Slots: 4, Context: 128, CacheTokens: 512, Weights: "stored",
		Progress: io.Discard})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	m := art.NewModel("run", &art.ModelOptions{Base: path, Chat: art.ChatOptions{MaxTokens: new(8)}})
	require.NoError(t, m.Register(t.Context(), b))
	phase("loaded")
	var n atomic.Int32
	groups, err := art.GatherGroups(t.Context(), []int{1}, func(ctx context.Context, _ int) (*art.Trajectory, error) {
		x := art.NewTrajectory(art.User("Say something."))
		_, err := m.Chat(ctx, x, nil)
		x.Reward = float64(n.Add(1) % 2)
		return x, err
	}, &art.GatherOptions{GroupSize: 4})
	require.NoError(t, err)
	phase("sampled")
	result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-4})
	require.NoError(t, err)
	peak := phase("trained")
	require.Zero(t, result.Metrics["train/logprob_gap_max"])
	e, err := b.stored("test", m)
	require.NoError(t, err)
	p := e.base.booking
	planned := p.Least() + p.Training
	t.Logf("file %.2f GB; planned %.2f: weights %.2f, cache %.2f, work %.2f, programs %.2f, training %.2f, process %.2f; "+
		"peak %.2f GB", size/1e9, planned/1e9, p.Weights/1e9, p.Cache/1e9, p.Work/1e9, p.Programs/1e9, p.Training/1e9,
		plan.ProcessBytes/1e9, peak/1e9)
	require.LessOrEqual(t, peak, planned)
	require.LessOrEqual(t, planned, 24e9)
	require.Less(t, p.Weights, 1.15*size)
}

// writeLarge writes a model of random blocks in the types of Q4_K_M, and returns the bytes of the file.
func writeLarge(t *testing.T, path string, c *model.Config) float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var tensors []gguf.Source
	for _, s := range c.Specs() {
		kind, name := ggml.F32, strings.NewReplacer("model.norm", "output_norm", "model.layers.", "blk.", "input_layernorm",
			"attn_norm", "post_attention_layernorm", "ffn_norm", "self_attn.", "attn_", "q_proj", "q", "k_proj", "k", "v_proj",
			"v").Replace(s.Name)
		if len(s.Shape) == 2 {
			var err error
			_, name, _, err = c.GGUFTensor(s.Name)
			require.NoError(t, err)
			if kind = ggml.Q4_K; name == "output.weight" || moreBits(name, c.NumLayers) {
				kind = ggml.Q6_K
			}
		}
		tensors = append(tensors, gguf.Source{Name: name, Type: kind, Shape: s.Shape, Write: func(w io.Writer) error {
			if kind == ggml.F32 {
				ones := make([]float32, s.Shape[0])
				for i := range ones {
					ones[i] = 1
				}
				return binary.Write(w, binary.LittleEndian, ones)
			}
			return writeBlocks(w, rng, kind, s.Shape[0]*s.Shape[1])
		}})
	}
	f, err := os.Create(path)
	require.NoError(t, err)
	out := bufio.NewWriterSize(f, 1<<20)
	require.NoError(t, gguf.Write(out, largeValues(c), tensors))
	require.NoError(t, out.Flush())
	info, err := f.Stat()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return float64(info.Size())
}

// moreBits reports whether Q4_K_M has six bits for a tensor: in the first and last eighth of the layers, and every
// third of the others.
func moreBits(name string, layers int) bool {
	if !strings.Contains(name, "ffn_down") && !strings.Contains(name, "attn_v") {
		return false
	}
	var l int
	if _, err := fmt.Sscanf(name, "blk.%d.", &l); err != nil {
		return false
	}
	return l < layers/8 || l >= 7*layers/8 || (l-layers/8)%3 == 2
}

// writeBlocks writes n numbers of about 1/50. Their scales are small float16 numbers, other bits are random.
func writeBlocks(w io.Writer, rng *rand.Rand, kind ggml.Type, n int) error {
	size := kind.Bytes(kind.Block())
	part := make([]byte, 4096*size)
	for left := kind.Bytes(n); left > 0; left -= len(part) {
		part = part[:min(left, len(part))]
		for i := 0; i+8 <= len(part); i += 8 {
			binary.LittleEndian.PutUint64(part[i:], rng.Uint64())
		}
		for at := 0; at < len(part); at += size {
			if block := part[at:][:size]; kind == ggml.Q4_K {
				binary.LittleEndian.PutUint16(block, 1000)     // 6e-5
				binary.LittleEndian.PutUint16(block[2:], 3923) // 7.5 of that: the mean is 0
			} else {
				binary.LittleEndian.PutUint16(block[208:], 250) // 1.5e-5
			}
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// largeValues describe the model and a byte-level tokenizer of as many tokens.
func largeValues(c *model.Config) []gguf.Pair {
	tokens, kinds := make([]string, c.VocabSize), make([]int32, c.VocabSize)
	next := rune(0x100)
	for b := range 256 {
		r := rune(b) // printable bytes stand for themselves
		if b < 0x21 || b > 0x7e && b < 0xa1 || b == 0xad {
			r, next = next, next+1
		}
		tokens[b], kinds[b] = string(r), 1
	}
	for i := 256; i < len(tokens); i++ {
		tokens[i], kinds[i] = fmt.Sprintf("word%d", i), 1
	}
	tokens[256] = "ab"
	last := len(tokens) - 1
	tokens[last-1], tokens[last], kinds[last-1], kinds[last] = "<|im_start|>", "<|im_end|>", 3, 3
	const arch = "qwen2."
	return []gguf.Pair{
		{Key: "general.architecture", Value: "qwen2"}, {Key: arch + "block_count", Value: uint32(c.NumLayers)},
		{Key: arch + "context_length", Value: uint32(c.MaxPositions)},
		{Key: arch + "embedding_length", Value: uint32(c.HiddenSize)},
		{Key: arch + "feed_forward_length", Value: uint32(c.IntermediateSize)},
		{Key: arch + "attention.head_count", Value: uint32(c.NumHeads)},
		{Key: arch + "attention.head_count_kv", Value: uint32(c.NumKVHeads)},
		{Key: arch + "attention.layer_norm_rms_epsilon", Value: float32(c.RMSNormEps)},
		{Key: arch + "rope.freq_base", Value: float32(c.RopeTheta)},
		{Key: "tokenizer.ggml.model", Value: "gpt2"}, {Key: "tokenizer.ggml.pre", Value: "qwen2"},
		{Key: "tokenizer.ggml.tokens", Value: tokens}, {Key: "tokenizer.ggml.token_type", Value: kinds},
		{Key: "tokenizer.ggml.merges", Value: []string{tokens['a'] + " " + tokens['b']}},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(last)},
		{Key: "tokenizer.chat_template", Value: "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n" +
			"{% endfor %}<|im_start|>assistant\n"},
	}
}
