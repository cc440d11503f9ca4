package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/internal/dev/hubtest"
	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
)

// tinyFolder is the built-in model as a folder.
func tinyFolder(t *testing.T) map[string][]byte {
	files := map[string][]byte{}
	for _, name := range []string{"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} {
		content, err := os.ReadFile(filepath.Join("../../model/tiny", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = content
	}
	return files
}

func tinyWeights(t *testing.T) *model.Weights {
	t.Helper()
	w, err := tiny.Load()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// numParams counts the parameters, as JSON has numbers.
func numParams(w *model.Weights) float64 {
	n := 0
	for _, t := range w.Tensors {
		n += len(t.Data)
	}
	return float64(n)
}

// TestInspect_Tiny: the folder has the same report as the built-in model, except for the stored type.
func TestInspect_Tiny(t *testing.T) {
	inspect := func(name string) map[string]any {
		status, stdout, stderr := command("model", "inspect", "--json", "--lengths", "64,256", "--slots", "4",
			"--workers", "1", name)
		if status != 0 || stderr != "" {
			t.Fatalf("status %d, standard error %q", status, stderr)
		}
		return decode(t, stdout)
	}
	a, b := inspect("tiny"), inspect("../../model/tiny")
	w := tinyWeights(t)
	for key, want := range map[string]any{"architecture": "Qwen3ForCausalLM", "parameters": numParams(w)} {
		if a[key] != want || b[key] != want {
			t.Errorf("%s is %v and %v, want %v", key, a[key], b[key], want)
		}
	}
	positive(t, b, "bytes")
	positive(t, b["template"].(map[string]any), "bytes")
	rows := b["memory"].([]any)
	if len(rows) != 2 {
		t.Fatalf("memory: %v", rows)
	}
	for i, length := range []float64{64, 256} {
		row := rows[i].(map[string]any)
		inference, training := row["inference"].(map[string]any), row["training"].(map[string]any)
		// Keys and values of float32, tokens of the slots and of the block that is not used.
		c := w.Config
		cache := float64(2*c.NumLayers*c.NumKVHeads*c.HeadDim*4) * (4*length + 32)
		if row["length"] != length || inference["weights"] != 4*numParams(w) || inference["cache"] != cache {
			t.Errorf("row %d: %v, want a cache of %v", i, row, cache)
		}
		positive(t, inference, "work", "programs")
		positive(t, training, "adapter", "work")
		if total := row["inference_total"].(float64); total != row["process"].(float64)+inference["weights"].(float64)+cache+
			inference["work"].(float64)+inference["programs"].(float64) {
			t.Errorf("inference_total is %v of %v", total, inference)
		}
		if row["training_total"].(float64) <= row["inference_total"].(float64) {
			t.Errorf("training takes no more than inference: %v", row)
		}
		if row["recomputed_total"].(float64) >= row["training_total"].(float64) {
			t.Errorf("layers that are computed again take no less: %v", row)
		}
	}
}

// TestInspect_Targets: the copies of the adapter are those of the chosen layers, of any that may have one. A head with
// an adapter keeps the logits of all tokens; if it alone has one, nothing is kept of the layers.
func TestInspect_Targets(t *testing.T) {
	inspect := func(args ...string) (copies, work float64) {
		status, stdout, stderr := command(slices.Concat(
			[]string{"model", "inspect", "--json", "--lengths", "64", "--workers", "1"},
			args, []string{"tiny"})...)
		if status != 0 || stderr != "" {
			t.Fatalf("status %d, standard error %q", status, stderr)
		}
		training := decode(t, stdout)["memory"].([]any)[0].(map[string]any)["training"].(map[string]any)
		return training["adapter"].(float64), training["work"].(float64)
	}
	const numbers = (11 + 5) * 4 // copies of a parameter with those of kept outputs, and its bytes
	w := tinyWeights(t)
	q, _ := inspect("--rank", "4", "--targets", "q_proj")
	if both, _ := inspect("--rank", "4", "--target-pattern", `.*\.(q|k)_proj`); both <= q {
		t.Errorf("q_proj takes %v, with k_proj %v", q, both)
	}
	first, _ := inspect("--rank", "4", "--target-pattern", `model\.layers\.0\..*q_proj`)
	if float64(w.Config.NumLayers)*first != q {
		t.Errorf("q_proj takes %v in %d layers, and %v in one", q, w.Config.NumLayers, first)
	}
	vocabulary, hidden := w.Config.VocabSize, w.Config.HiddenSize
	embedding, less := inspect("--rank", "4", "--targets", "embed_tokens")
	head, alone := inspect("--rank", "4", "--targets", "lm_head")
	if want := float64(numbers * 4 * (vocabulary + hidden)); embedding != want || head != want {
		t.Errorf("embedding %v, head %v, want %v", embedding, head, want)
	}
	if both, more := inspect("--rank", "4", "--targets", "embed_tokens,lm_head"); both != embedding+head || more <= less {
		t.Errorf("both take %v and work %v, the embedding alone %v and %v", both, more, embedding, less)
	}
	dora, _ := inspect("--rank", "4", "--targets", "lm_head", "--dora")
	if want := head + float64((numbers+2*4)*vocabulary); dora != want { // magnitudes, and two copies of the norms
		t.Errorf("the head with magnitudes takes %v, want %v", dora, want)
	}
	parameters := 0
	for _, s := range w.Config.Specs() {
		n := 1
		for _, d := range s.Shape {
			n *= d
		}
		parameters += n
	}
	if full, _ := inspect("--full"); full != float64(13*4*parameters) { // copies of all weights
		t.Errorf("all weights take %v, want 13 copies of %d numbers", full, parameters)
	}
	if alone >= less {
		t.Errorf("work is %v though no gradient goes below the head, with the embedding %v", alone, less)
	}
}

// TestInspect_Architectures: the memory of each covers all parameters, and both graphs compile.
func TestInspect_Architectures(t *testing.T) {
	for _, m := range fixtures.Models(t) {
		status, stdout, stderr := command("model", "inspect", "--json", "--lengths", "32", "--slots", "2",
			"--workers", "1", m.Dir)
		if status != 0 || stderr != "" {
			t.Fatalf("%s: status %d, standard error %q", m.Name, status, stderr)
		}
		report := decode(t, stdout)
		row := report["memory"].([]any)[0].(map[string]any)
		inference, training := row["inference"].(map[string]any), row["training"].(map[string]any)
		if want := 4 * report["parameters"].(float64); inference["weights"] != want {
			t.Errorf("%s: weights take %v bytes, want %v", m.Name, inference["weights"], want)
		}
		positive(t, inference, "work", "cache")
		positive(t, training, "adapter", "work")
		if _, experts := report["shape"].(map[string]any)["experts"]; experts != (m.Name == "qwen3_moe") {
			t.Errorf("%s: shape %v", m.Name, report["shape"])
		}
	}
}

// TestInspect_OtherParts: what is left alone of a model that reads images is said, and not counted.
func TestInspect_OtherParts(t *testing.T) {
	for _, m := range fixtures.Models(t) {
		if m.Name != "qwen3" && m.Name != "gemma3-vision" {
			continue
		}
		status, stdout, _ := command("model", "inspect", "--lengths", "32", "--slots", "1", m.Dir)
		c, err := model.Open(m.Dir)
		if err != nil {
			t.Fatal(err)
		}
		parts := len(c.Skipped())
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(stdout, fmt.Sprintf("%d tensors of other parts than the text model", parts))
		if status != 0 || said != (parts > 0) || strings.Contains(stdout, "left alone") != (parts > 0) {
			t.Errorf("%s: status %d, %d parts\n%s", m.Name, status, parts, stdout)
		}
	}
}

// TestInspect_Text: the text report has the same facts, in the width of a terminal.
func TestInspect_Text(t *testing.T) {
	s := hubtest.New("acme/robot", tinyFolder(t))
	defer s.Close()
	t.Setenv("HF_ENDPOINT", s.URL())
	t.Setenv("HF_HOME", t.TempDir())
	if status, _, stderr := command("model", "inspect", "acme/robot"); status != 1 ||
		!strings.Contains(stderr, "art model pull acme/robot") {
		t.Errorf("before it is fetched: status %d, %q", status, stderr)
	}
	if status, _, stderr := command("model", "pull", "acme/robot"); status != 0 {
		t.Fatal(stderr)
	}
	status, stdout, stderr := command("model", "inspect", "acme/robot")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	w := tinyWeights(t)
	for _, want := range []string{"Qwen3ForCausalLM", fmt.Sprintf("%d layers, hidden 128", w.Config.NumLayers),
		fmt.Sprintf("context       %d tokens", w.Config.MaxPositions), fmt.Sprint(numParams(w)),
		fmt.Sprintf("\n      %d", w.Config.MaxPositions)} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// TestInspect_GGUF: a file has the same report as the folder that it was made of, and one that cannot be used is
// described by its header.
func TestInspect_GGUF(t *testing.T) {
	path := gguftest.Folder(t, "../../model/tiny")
	status, stdout, stderr := command("model", "inspect", "--json", "--lengths", "64", path)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	object := decode(t, stdout)
	w := tinyWeights(t)
	if object["architecture"] != "Qwen3ForCausalLM" || object["parameters"] != numParams(w) ||
		object["shape"].(map[string]any)["context"] != float64(w.Config.MaxPositions) {
		t.Errorf("%s", stdout)
	}
	positive(t, object["template"].(map[string]any), "bytes")

	status, stdout, stderr = command("model", "inspect", "--json", "../../internal/gguf/testdata/python.gguf")
	if status != 1 || !strings.Contains(stderr, "the metadata has no llama.") {
		t.Errorf("status %d, standard error %q", status, stderr)
	}
	object = decode(t, stdout)
	if object["architecture"] != "llama" || !strings.Contains(stdout, `"type": "Q4_K"`) {
		t.Errorf("%s", stdout)
	}
	positive(t, object, "parameters", "bytes")
}

// TestInspect_Held: what tensors take in a GGUF file and on the CPU device: the sums are those of the tensors, and the
// memory is that of matrices as they are stored, or of the type that is given.
func TestInspect_Held(t *testing.T) {
	path := gguftest.Quantized(t, "../../model/tiny")
	inspect := func(args ...string) inspection {
		return output[inspection](t, slices.Concat([]string{"model", "inspect", "--json", "--lengths", "64"}, args,
			[]string{path})...)
	}
	stored := inspect("--tensors")
	w := tinyWeights(t)
	var held heldBytes
	for i, x := range stored.Tensors {
		blocks, numbers := int64(len(w.Tensors[i].Data)/32*34), float64(len(w.Tensors[i].Data))
		want := tensorReport{Name: w.Tensors[i].Name, Type: "Q8_0", Shape: w.Tensors[i].Shape, File: blocks,
			Held: heldBytes{4 * numbers, 2 * numbers, x.Held.Stored}}
		if len(x.Shape) == 1 {
			want.Type, want.File, want.Held = "F32", int64(4*numbers), heldBytes{4 * numbers, 4 * numbers, 4 * numbers}
		}
		if !reflect.DeepEqual(x, want) || x.Held.Stored < float64(x.File) || x.Held.Stored > 1.1*float64(x.File)+4096 {
			t.Errorf("%+v, want %+v", x, want)
		}
		held = *held.plus(&x.Held)
	}
	if len(stored.Tensors) != len(w.Tensors) || *stored.Held != held || stored.Weights != "stored" ||
		stored.Memory[0].Inference.Weights != held.Stored || *stored.Types[0].Held.plus(stored.Types[1].Held) != held {
		t.Errorf("%+v", stored)
	}
	for weights, want := range map[string]float64{"float32": held.Float32, "bfloat16": held.BFloat16} {
		r := inspect("--weights", weights)
		if r.Memory[0].Inference.Weights != want || r.Weights != weights || r.Tensors != nil {
			t.Errorf("%s: %+v", weights, r.Memory)
		}
	}
	if r := inspect("--full"); r.Weights != "float32" {
		t.Errorf("all weights are trained in %s", r.Weights)
	}
	if r := inspect("--device", "xla:cpu", "--weights", "bfloat16"); r.Device[0].Weights != int64(held.BFloat16) ||
		r.Memory[0].Inference.Weights != held.Float32 {
		t.Errorf("%+v", r)
	}
	if r := inspect("--device", "cpu"); r.Device[0].Weights != int64(held.Stored) {
		t.Errorf("%+v", r)
	}
}

// TestInspect_HeldText: types that take more than in the file are marked, with their tensors.
func TestInspect_HeldText(t *testing.T) {
	const hidden = 256
	tensors := []gguftest.Tensor{
		{Name: "token_embd.weight", Shape: []int{64, hidden}, Type: ggml.Q6_K},
		{Name: "blk.0.attn_q.weight", Shape: []int{hidden, hidden}, Type: ggml.Q4_K},
		{Name: "blk.0.attn_k.weight", Shape: []int{hidden, hidden}, Type: ggml.Q2_K},
		{Name: "blk.0.attn_v.weight", Shape: []int{hidden, hidden}, Type: ggml.Q3_K},
		{Name: "blk.0.attn_output.weight", Shape: []int{hidden, hidden}, Type: ggml.Q5_K},
		{Name: "blk.0.ffn_gate.weight", Shape: []int{hidden, hidden}, Type: ggml.Q8_0},
		{Name: "blk.0.ffn_up.weight", Shape: []int{hidden, hidden}, Type: ggml.F16},
		{Name: "blk.0.ffn_down.weight", Shape: []int{hidden, hidden}, Type: ggml.BF16},
	}
	for _, name := range []string{"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"} {
		tensors = append(tensors, gguftest.Tensor{Name: name + ".weight", Shape: []int{hidden}})
	}
	for i, x := range tensors {
		n := x.Shape[0]
		if len(x.Shape) == 2 {
			n *= hidden
		}
		tensors[i].Blocks = make([]byte, x.Type.Bytes(n))
	}
	path := gguftest.Write(t, []gguftest.Value{
		{Key: "general.architecture", Value: "llama"}, {Key: "llama.block_count", Value: uint32(1)},
		{Key: "llama.context_length", Value: uint32(64)}, {Key: "llama.embedding_length", Value: uint32(hidden)},
		{Key: "llama.feed_forward_length", Value: uint32(hidden)}, {Key: "llama.attention.head_count", Value: uint32(4)},
		{Key: "llama.attention.layer_norm_rms_epsilon", Value: float32(1e-6)},
	}, tensors)
	status, stdout, stderr := command("model", "inspect", "--lengths", "64", "--tensors", path)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	plain := strings.Join(strings.Fields(stdout), " ")
	for _, want := range []string{
		"weights tensors parameters file", " sum 11 ", "* stored with more bits than in the file",
		" model.layers.0.self_attn.k_proj.weight Q2_K [256 256] ",
	} {
		if !strings.Contains(plain, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	marked := map[string]int{}
	for line := range strings.Lines(stdout) {
		for _, word := range strings.Fields(line) {
			if _, ok := map[string]bool{"Q6_K": true, "Q4_K": true, "Q2_K": true, "Q3_K": true, "Q5_K": true, "Q8_0": true,
				"F16": true, "BF16": true, "F32": true}[word]; ok && strings.HasSuffix(line, "*\n") {
				marked[word]++
			}
		}
	}
	if want := map[string]int{"Q6_K": 2, "Q2_K": 2, "Q3_K": 2}; !reflect.DeepEqual(marked, want) {
		t.Errorf("marked are %v\n%s", marked, stdout)
	}
	checkWidth(t, stdout[:strings.Index(stdout, "template")])
}

// TestInspect_Quantized: what quantized the weights of a folder is named, with its tensors, whatever their types.
func TestInspect_Quantized(t *testing.T) {
	dir := t.TempDir()
	for name, content := range tinyFolder(t) {
		if name == "config.json" {
			content = slices.Concat([]byte(`{"quantization_config": {"quant_method": "awq", "bits": 4},`), content[1:])
		}
		file(t, dir, name, string(content))
	}
	status, stdout, stderr := command("model", "inspect", dir)
	if status != 1 || !strings.Contains(stderr, "quantized by AWQ with 4 bits") ||
		!strings.Contains(stderr, "use a GGUF file") || !strings.Contains(stdout, "parameters") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
}

// TestInspect_ConfigAlone: a folder with config.json alone says what the configuration tells, also of a large mixture
// of experts, whose graphs took minutes.
func TestInspect_ConfigAlone(t *testing.T) {
	dir := t.TempDir()
	config := `{"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "head_dim": 128, "hidden_size": 2048,
		"intermediate_size": 6144, "max_position_embeddings": 40960, "moe_intermediate_size": 768, "norm_topk_prob": true,
		"num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
		"num_key_value_heads": 4, "rope_theta": 1000000.0, "vocab_size": 151936}`
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config)
	status, stdout, stderr := command("model", "inspect", "--lengths", "64", "--workers", "1", "--slots", "2", dir)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	for _, want := range []string{
		"parameters    30532122624\n", "weights       none in the folder\n", "48 layers", "122.13 GB",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	write(strings.Replace(config, "qwen3_moe", "mixtral", 1))
	status, stdout, stderr = command("model", "inspect", dir)
	if status != 1 || !strings.Contains(stderr, "a text model with experts") || strings.Contains(stderr, "safetensors") {
		t.Errorf("status %d, standard error %q, output\n%s", status, stderr, stdout)
	}
}

// TestInspect_Unsupported: what is known of an unsupported architecture is printed, with an error status.
func TestInspect_Unsupported(t *testing.T) {
	dir := t.TempDir()
	files := tinyFolder(t)
	files["config.json"] = []byte(`{"architectures":["RobotForCausalLM"],"model_type":"robot"}`)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	status, stdout, stderr := command("model", "inspect", dir)
	if status != 1 || !strings.Contains(stdout, "RobotForCausalLM") ||
		!strings.Contains(stdout, fmt.Sprint(numParams(tinyWeights(t)))) || !strings.Contains(stderr, "model_type") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
}

// TestInspect_Device: the programs and the memory of a device, which need not be there. bfloat16 halves matrices,
// and the cache.
func TestInspect_Device(t *testing.T) {
	var cache float64
	inspect := func(args ...string) (weights, programs float64) {
		status, stdout, stderr := command(append(append([]string{"model", "inspect", "--json", "--lengths", "64",
			"--slots", "4",
			"--device"}, args...), "tiny")...)
		if status != 0 || stderr != "" {
			t.Fatalf("status %d, standard error %q", status, stderr)
		}
		list, _ := decode(t, stdout)["device"].([]any)
		if len(list) != 1 {
			t.Fatalf("%v", list)
		}
		d := list[0].(map[string]any)
		positive(t, d, "weights", "cache", "work")
		cache = d["cache"].(float64)
		return d["weights"].(float64), float64(len(d["programs"].([]any)))
	}
	all, few := inspect("xla:cuda")
	if want := 4 * numParams(tinyWeights(t)); all != want {
		t.Errorf("weights take %v bytes, want %v", all, want)
	}
	half, _ := inspect("xla:cuda", "--weights", "bfloat16")
	if half >= 0.6*all || half < 0.5*all {
		t.Errorf("%v bytes in bfloat16 of %v", half, all)
	}
	if quarter, _ := inspect("xla:cuda", "--weights", "int8"); quarter >= 0.4*all || quarter < 0.25*all {
		t.Errorf("%v bytes in int8 of %v", quarter, all)
	}
	whole := cache
	if inspect("xla:cuda", "--cache-type", "bfloat16"); cache != whole/2 {
		t.Errorf("the cache takes %v bytes in bfloat16, and %v in float32", cache, whole)
	}
	if _, many := inspect("cpu"); many <= few {
		t.Errorf("%v programs on the CPU device, and %v on one that compiles slowly", many, few)
	}
	_, stdout, _ := command("model", "inspect", "--lengths", "64", "--slots", "4", "--device", "xla:cuda", "tiny")
	for _, want := range []string{
		"xla:cuda, 4 replies of 64 tokens: weights ", fmt.Sprintf("%v programs for the adapters of a layout", few),
		"prompt: 4 rows, 1, 16, 64 tokens, of windows of 64",
		"decode: 4 rows, 32 tokens, of windows of 64",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	checkWidth(t, stdout[strings.Index(stdout, "xla:cuda, "):])
}

// TestInspect_DeviceTraining: what a training takes on a device, and the layouts of its micro-batches where they are
// few. A GPU computes one micro-batch at a time, whatever --workers says.
func TestInspect_DeviceTraining(t *testing.T) {
	inspect := func(device string, args ...string) map[string]any {
		status, stdout, stderr := command(append([]string{"model", "inspect", "--json", "--lengths", "64", "--device", device,
			"--workers", "2"}, append(args, "tiny")...)...)
		if status != 0 || stderr != "" {
			t.Fatalf("status %d, standard error %q", status, stderr)
		}
		list, _ := decode(t, stdout)["device"].([]any)
		return list[0].(map[string]any)
	}
	of := func(device string, args ...string) map[string]any {
		return inspect(device, args...)["training"].(map[string]any)
	}
	gpu, cpu := of("xla:cuda"), of("cpu")
	positive(t, gpu, "adapter", "work", "recomputed", "workers", "programs_kept")
	positive(t, cpu, "adapter", "work", "recomputed", "workers", "programs")
	if gpu["workers"] != 1.0 || cpu["workers"] != float64(min(2, runtime.GOMAXPROCS(0))) {
		t.Errorf("%v micro-batches at once on a GPU, %v on a CPU", gpu["workers"], cpu["workers"])
	}
	if _, ok := cpu["layouts"]; ok || inspect("cpu")["programs_kept"] != nil {
		t.Error("the CPU device has few layouts, or keeps a number of programs")
	}
	lengths := map[float64]bool{}
	layouts, _ := gpu["layouts"].([]any)
	for _, l := range layouts {
		l := l.(map[string]any)
		lengths[l["length"].(float64)] = true
		if tokens := l["rows"].(float64) * l["length"].(float64); l["trained"] != tokens && l["trained"] != tokens/4 {
			t.Errorf("%v", l)
		}
	}
	if len(lengths) != 2 || !lengths[32] || !lengths[64] {
		t.Errorf("lengths %v", lengths)
	}
	copies := func(m map[string]any) float64 { return m["adapter"].(float64) }
	if ranked := of("xla:cuda", "--rank", "16"); copies(ranked) != 2*copies(gpu) {
		t.Errorf("%v bytes of rank 16, %v of rank 8", copies(ranked), copies(gpu))
	}
	if all := of("xla:cuda", "--full"); all["full"] != true || copies(all) <= copies(gpu) {
		t.Errorf("all weights: %v", all)
	}
	if copies(cpu) != copies(gpu)*16/5 {
		t.Errorf("a GPU holds %v bytes of copies, the machine %v", copies(gpu), copies(cpu))
	}
	serving := inspect("xla:cuda")
	programs := serving["programs"].([]any)
	if kept := serving["programs_kept"].(float64); kept <= 5*float64(len(programs)) {
		t.Errorf("%v programs are kept, each layout has %d", kept, len(programs))
	}
	_, stdout, _ := command("model", "inspect", "--lengths", "64", "--device", "xla:cuda", "tiny")
	stdout = strings.Join(strings.Fields(stdout), " ")
	for _, want := range []string{
		"those of the base model and of 4 layouts are kept, at most ", " training: adapter ", "micro-batches at once: 1 ",
		fmt.Sprintf(" %d layouts of micro-batches, ", len(layouts)), ": rows of 32 tokens (1, 4, 16",
		"and those of shared prompts, as they occur",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// TestInspect_GPU: the memory of the GPU that the device is, or why it is not known; nothing of a CPU.
func TestInspect_GPU(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nvidia-smi is a script here")
	}
	folder := t.TempDir()
	script := "#!/bin/sh\necho 'NVIDIA T4, 1, 16000, 15000, GPU-a, [N/A]'\n" +
		"echo 'NVIDIA L4, 1, 24000, 8000, GPU-b, [N/A]'\n"
	file(t, folder, "nvidia-smi", script)
	if err := os.Chmod(filepath.Join(folder, "nvidia-smi"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	inspect := func(device string) string {
		_, stdout, _ := command("model", "inspect", "--lengths", "64", "--slots", "4", "--device", device, "tiny")
		return strings.Join(strings.Fields(stdout), " ")
	}
	t.Setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
	for device, want := range map[string]string{
		"xla:cuda":                     "NVIDIA T4: memory 16.78 GB, 15.73 GB free, of which a process may take 12.58 GB",
		"xla:cuda,memory_fraction=0.5": "NVIDIA T4: memory 16.78 GB, 15.73 GB free, of which a process may take 8.39 GB",
		"xla:cuda,device=1":            "NVIDIA L4: memory 25.17 GB, 8.39 GB free, of which a process may take 8.39 GB",
		"xla:cuda,device=2":            "memory of the GPU unknown: nvidia-smi lists 2 GPUs",
	} {
		if got := inspect(device); !strings.Contains(got, want) {
			t.Errorf("%s: no %q in\n%s", device, want, got)
		}
	}
	t.Setenv("CUDA_DEVICE_ORDER", "")
	if got := inspect("xla:cuda"); !strings.Contains(got, "set CUDA_DEVICE_ORDER=PCI_BUS_ID") {
		t.Error(got)
	}
	if got := inspect("xla:cpu"); strings.Contains(got, "GPU") {
		t.Error(got)
	}
}

// TestInspect_Fails: errors say what is valid.
func TestInspect_Fails(t *testing.T) {
	broken := t.TempDir()
	for name, content := range tinyFolder(t) {
		file(t, broken, name, string(content))
	}
	file(t, broken, "config.json", "{")
	context := tinyWeights(t).Config.MaxPositions
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"model inspect", 2, "one model"},
		{"model inspect --lengths 1 tiny", 2, `--lengths 1: "1" is not one of the numbers of 2 or more`},
		{"model inspect --lengths 64,x tiny", 2, `--lengths 64,x: "x" is not one of the numbers`},
		{"model inspect --slots 0 tiny", 2, "inspect: --slots 0 --rank 0"},
		{"model inspect --weights int4 tiny", 2, "--weights int4: want float32, bfloat16, int8 or stored"},
		{"model inspect --cache-type bfloat16 tiny", 2, "it is that of --device, which is not given"},
		{"model inspect --weights int8 tiny", 2, "need a device of XLA"},
		{"model inspect --weights stored tiny", 2, "tiny is no GGUF file"},
		{"model inspect --tensors tiny", 2, "tiny is no GGUF file"},
		{"model inspect --full --weights stored tiny", 2, "cannot be trained; take float32"},
		{"model inspect --device xla:cpu --weights stored tiny", 2, "kept on the CPU device alone"},
		{"model inspect --device cpu --cache-type bfloat16 tiny", 2, "need a device of XLA"},
		{"model inspect --device cpu --weights int8 tiny", 2, "need a device of XLA"},
		{"model inspect --device cuda tiny", 2, "--device cuda: want cpu, or a device of XLA such as xla:cpu or xla:cuda"},
		{"model inspect --device :cuda tiny", 2, "--device :cuda: want cpu"},
		{"model inspect --cache-type fp8 tiny", 2, "--cache-type fp8: want float32 or bfloat16"},
		{"model inspect --targets q_proj --target-pattern .* tiny", 1, "are both set"},
		{"model inspect --targets w_proj tiny", 1, `no layer is called "w_proj"; the model has down_proj, embed_tokens`},
		{fmt.Sprintf("model inspect --lengths %d tiny", context+1), 1, fmt.Sprintf("context of %d tokens", context)},
		{"model inspect nowhere", 1, "neither a folder, nor a file, nor ORG/NAME"},
		{"model inspect .", 1, "model.safetensors"},
		{"model inspect " + broken, 1, "config.json: unexpected end of JSON input (in " + broken + ")"},
	} {
		status, _, stderr := command(strings.Fields(c.args)...)
		if status != c.status || !strings.Contains(stderr, c.want) {
			t.Errorf("art %s: status %d, standard error %q", c.args, status, stderr)
		}
	}
}
