package gguftest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/safetensors"
)

// Folder writes the model of a folder, which must be a Qwen3 with a byte-level tokenizer, as a GGUF file, and returns
// its path. The file cuts text as Qwen2 does, whatever the folder's tokenizer does.
func Folder(t testing.TB, dir string) string {
	t.Helper()
	values, err := folderValues(dir)
	if err != nil {
		t.Fatal(err)
	}
	tensors, err := folderTensors(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Write(t, values, tensors)
}

// Quantized is Folder with matrices in Q8_0, whose numbers are near those of the folder.
func Quantized(t testing.TB, dir string) string {
	t.Helper()
	values, tensors := QuantizedParts(t, dir)
	return Write(t, values, tensors)
}

// QuantizedParts are the parts of the file of [Quantized].
func QuantizedParts(t testing.TB, dir string) ([]Value, []Tensor) {
	t.Helper()
	values, err := folderValues(dir)
	if err != nil {
		t.Fatal(err)
	}
	tensors, err := folderTensors(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range tensors {
		if len(x.Shape) == 2 {
			tensors[i].Type, tensors[i].Data, tensors[i].Blocks = ggml.Q8_0, nil, blocksOf(x.Data)
		}
	}
	return values, tensors
}

// blocksOf are blocks of Q8_0. Their scales are powers of two, which float16 has.
func blocksOf(data []float32) (b []byte) {
	for block := range slices.Chunk(data, 32) {
		largest := 0.0
		for _, v := range block {
			largest = max(largest, math.Abs(float64(v)))
		}
		_, exponent := math.Frexp(largest / 127)
		exponent = min(max(exponent, -14), 15)
		b = binary.LittleEndian.AppendUint16(b, uint16(exponent+15)<<10)
		for _, v := range block {
			b = append(b, byte(int8(math.RoundToEven(math.Ldexp(float64(v), -exponent)))))
		}
	}
	return b
}

func folderValues(dir string) ([]Value, error) {
	var c struct {
		Layers  uint32  `json:"num_hidden_layers"`
		Context uint32  `json:"max_position_embeddings"`
		Hidden  uint32  `json:"hidden_size"`
		MLP     uint32  `json:"intermediate_size"`
		Heads   uint32  `json:"num_attention_heads"`
		KVHeads uint32  `json:"num_key_value_heads"`
		HeadDim uint32  `json:"head_dim"`
		Eps     float32 `json:"rms_norm_eps"`
		Theta   float32 `json:"rope_theta"`
		EOS     uint32  `json:"eos_token_id"`
	}
	if err := readJSON(dir, "config.json", &c); err != nil {
		return nil, err
	}
	vocabulary, err := vocabularyValues(dir)
	return append(vocabulary,
		Value{"general.architecture", "qwen3"}, Value{"general.name", "Tiny GGUF"},
		Value{"qwen3.block_count", c.Layers}, Value{"qwen3.context_length", c.Context},
		Value{"qwen3.embedding_length", c.Hidden},
		Value{"qwen3.feed_forward_length", c.MLP}, Value{"qwen3.attention.head_count", c.Heads},
		Value{"qwen3.attention.head_count_kv", c.KVHeads}, Value{"qwen3.attention.key_length", c.HeadDim},
		Value{"qwen3.attention.value_length", c.HeadDim},
		Value{"qwen3.attention.layer_norm_rms_epsilon", c.Eps}, Value{"qwen3.rope.freq_base", c.Theta},
		Value{"tokenizer.ggml.eos_token_id", c.EOS},
	), err
}

// vocabularyValues are the tokenizer and its chat template.
func vocabularyValues(dir string) ([]Value, error) {
	var config struct {
		Template string `json:"chat_template"`
	}
	var file struct {
		Model struct {
			Vocab  map[string]int `json:"vocab"`
			Merges [][2]string    `json:"merges"`
		} `json:"model"`
		Added []struct {
			ID      int    `json:"id"`
			Content string `json:"content"`
			Special bool   `json:"special"`
		} `json:"added_tokens"`
	}
	if err := errors.Join(readJSON(dir, "tokenizer_config.json", &config),
		readJSON(dir, "tokenizer.json", &file)); err != nil {
		return nil, err
	}
	n := len(file.Model.Vocab) + len(file.Added)
	tokens, kinds := make([]string, n), make([]int32, n)
	for token, id := range file.Model.Vocab {
		tokens[id], kinds[id] = token, 1 // normal
	}
	for _, a := range file.Added {
		if tokens[a.ID], kinds[a.ID] = a.Content, 4; a.Special { // user defined
			kinds[a.ID] = 3 // control
		}
	}
	merges := make([]string, len(file.Model.Merges))
	for i, pair := range file.Model.Merges {
		merges[i] = strings.Join(pair[:], " ")
	}
	return []Value{
		{"tokenizer.ggml.model", "gpt2"}, {"tokenizer.ggml.pre", "qwen2"}, {"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", kinds}, {"tokenizer.ggml.merges", merges}, {"tokenizer.chat_template", config.Template},
	}, nil
}

func readJSON(dir, name string, value any) error {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, value)
}

// names turns the names of a checkpoint into llama.cpp's.
var names = strings.NewReplacer(
	"model.embed_tokens", "token_embd", "model.norm", "output_norm", "lm_head", "output", "model.layers.", "blk.",
	"input_layernorm", "attn_norm", "post_attention_layernorm", "ffn_norm", "self_attn.q_proj", "attn_q",
	"self_attn.k_proj", "attn_k",
	"self_attn.v_proj", "attn_v", "self_attn.o_proj", "attn_output", "self_attn.q_norm", "attn_q_norm", "self_attn.k_norm",
	"attn_k_norm",
	"mlp.gate_proj", "ffn_gate", "mlp.up_proj", "ffn_up", "mlp.down_proj", "ffn_down",
)

func folderTensors(dir string) ([]Tensor, error) {
	set, err := safetensors.OpenIndex(dir)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	var list []Tensor
	for _, name := range set.Names() {
		t, _ := set.Tensor(name)
		data, err := t.Float32s()
		if err != nil {
			return nil, err
		}
		list = append(list, Tensor{Name: names.Replace(name), Shape: t.Shape, Data: data})
	}
	return list, nil
}
