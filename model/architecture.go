package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/gomlx/gomlx/core/graph"
)

// architecture is how the models of one model_type are built.
type architecture struct {
	modelType string
	class     string   // its entry in "architectures"; "" where it is only within a wrapperType
	reads     []string // the forwardKeys that it builds
	windowed  bool     // without a key there is a sliding window
	// defaults sets the defaults that transformers has for keys that are absent from a file; keys are those present. nil:
	// only the defaults that all architectures share.
	defaults func(c *Config, keys map[string]json.RawMessage) error
	// describe returns the pieces of a model, and checks what is specific to this architecture.
	describe func(c *Config, check checker) *design
	rope     ropeForm
}

// architectures are all that this package builds. To add one, see docs/models.md.
func architectures() []architecture {
	return []architecture{exaone4, gemma3, granite, graniteHybrid, llama, mistral, olmo2, phi3, qwen2, qwen25VL, qwen3,
		qwen3MoE, qwen3VL, seedOSS, smolLM3}
}

func (c *Config) architecture() (*architecture, error) {
	var types, classes []string
	for _, a := range architectures() {
		fits := len(c.Architectures) == 0 || slices.Contains(c.Architectures, a.class)
		if a.modelType == c.ModelType && (c.wrapper != nil || a.class != "" && fits) {
			return &a, nil
		}
		if a.class != "" {
			types, classes = append(types, a.modelType), append(classes, a.class)
		}
	}
	if slices.Contains(types, c.ModelType) {
		return nil, fmt.Errorf("architectures %q is not supported with model_type %q: this version builds %s",
			c.Architectures, c.ModelType, strings.Join(classes, ", "))
	}
	for _, w := range wrapperTypes() {
		types = append(types, w.modelType)
	}
	return nil, fmt.Errorf("model_type %q is not supported: this version builds %s", c.ModelType,
		strings.Join(types, ", "))
}

// design is a model as its pieces. [Forward], the tensors of a checkpoint and of a GGUF file, and the layers that an
// adapter may attach to are derived from it alone, never from the name of an architecture.
type design struct {
	embedding embedding
	layers    []layer
	norm      norm // of what the last layer returns
	head      head
}

type embedding struct {
	scale  float64 // multiplies what is looked up
	frozen bool    // no adapter attaches
}

type head struct {
	scale float64 // multiplies logits
	cap   float64 // logits z become cap tanh(z / cap); 0 is no cap
}

// layer is a block: attention and a feed-forward, each joined to the residual stream. It is comparable: layers with
// equal ones take the same memory.
type layer struct {
	selfAttention
	mixing  residual
	feed    feedForward
	feeding residual
}

// feedForward is an [mlp] or [experts].
type feedForward interface {
	// build applies it to x [B, T, D]. at precedes its names.
	build(f *Forward, x *Node, at string) *Node
	list(l *tensorList, at place)
}

// plain is a design with nothing special: a Llama, with biases if configured.
func plain(c *Config, check checker) *design {
	checkActivation(c.HiddenAct, "hidden_act", check)
	d := &design{
		embedding: embedding{scale: 1}, norm: c.norm("norm", "output_norm"), head: head{scale: 1},
	}
	for range c.NumLayers {
		d.layers = append(d.layers, layer{
			selfAttention: c.selfAttention(),
			mixing:        residual{before: c.norm("input_layernorm", "attn_norm"), scale: 1},
			feed:          c.mlp(),
			feeding:       residual{before: c.norm("post_attention_layernorm", "ffn_norm"), scale: 1},
		})
	}
	return d
}

// norm returns one of hidden states.
func (c *Config) norm(name, file string) norm {
	return norm{name: name, file: file, size: c.HiddenSize}
}

func (c *Config) design() *design {
	a, err := c.architecture()
	if err != nil {
		panic(fmt.Errorf("model: %w", err))
	}
	return a.describe(c, func(bool, string, ...any) {})
}

// activations are those that there are, by their names in transformers.
var activations = map[string]activation{"silu": silu, "gelu_pytorch_tanh": geluTanh}

func checkActivation(name, key string, check checker) {
	check(activations[name] != nil, "%s %q is not supported: this version has %s", key, name,
		strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
}

// slide sets the window of the layers that LayerTypes marks as sliding.
func (d *design) slide(c *Config, check checker) {
	if c.LayerTypes == nil {
		return
	}
	for i, kind := range c.LayerTypes[:min(len(c.LayerTypes), len(d.layers))] { // checkKinds reports others
		if kind == layerSliding {
			check(c.SlidingWindow > 0, "layer_types: layer %d is %s, and there is no sliding_window", i, layerSliding)
			d.layers[i].window = c.SlidingWindow
		}
	}
}

// alternate sets the types of layers: n-1 with a window, and then one without.
func (c *Config) alternate(n int) {
	for i := range min(c.NumLayers, mostLayers) {
		c.LayerTypes = append(c.LayerTypes, map[bool]string{true: layerFull, false: layerSliding}[(i+1)%n == 0])
	}
}

// unsaid sets what a key that a file leaves out stands for; null says something.
func unsaid[T any](keys map[string]json.RawMessage, key string, to *T, value T) {
	if _, ok := keys[key]; !ok {
		*to = value
	}
}

// zeroWindow reports a window of 0, under which transformers sees no token at all.
func zeroWindow(keys map[string]json.RawMessage) error {
	if string(keys["sliding_window"]) == "0" {
		return errors.New("sliding_window is 0: want null for none")
	}
	return nil
}

// checkKinds compares the layers with LayerTypes, which some architectures do not read.
func (d *design) checkKinds(c *Config, check checker) {
	if c.LayerTypes == nil {
		return
	}
	check(len(c.LayerTypes) == len(d.layers), "layer_types has %d entries, num_hidden_layers is %d", len(c.LayerTypes),
		len(d.layers))
	for i, kind := range c.LayerTypes[:min(len(c.LayerTypes), len(d.layers))] {
		if kind != layerFull && kind != layerSliding {
			check(false, "layer_types: %q is not supported: this version has %s and %s", kind, layerFull, layerSliding)
			return
		}
		check((kind == layerSliding) == (d.layers[i].window > 0), "layer_types: layer %d is %s, which %s does not build", i,
			kind, c.ModelType)
	}
}
