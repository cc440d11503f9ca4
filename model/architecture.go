package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// architecture is how the models of one model_type are built.
type architecture struct {
	modelType string
	class     string   // its entry in "architectures"
	reads     []string // the forwardKeys that it builds
	// defaults sets the defaults that transformers has for keys that are absent from a file; keys are those present. nil:
	// only the defaults that all architectures share.
	defaults func(c *Config, keys map[string]json.RawMessage) error
	// describe returns the blocks of a model, and checks what is specific to this architecture.
	describe func(c *Config, check checker) *design
}

// architectures are all that this package builds. To add one, see docs/models.md.
func architectures() []architecture {
	return []architecture{gemma3, granite, llama, mistral, qwen2, qwen3, qwen3MoE}
}

func (c *Config) architecture() (*architecture, error) {
	var types, classes []string
	for _, a := range architectures() {
		if a.modelType == c.ModelType && (len(c.Architectures) == 0 || slices.Contains(c.Architectures, a.class)) {
			return &a, nil
		}
		types, classes = append(types, a.modelType), append(classes, a.class)
	}
	if slices.Contains(types, c.ModelType) {
		return nil, fmt.Errorf("architectures %q is not supported with model_type %q: this version builds %s",
			c.Architectures, c.ModelType, strings.Join(classes, ", "))
	}
	return nil, fmt.Errorf("model_type %q is not supported: this version builds %s", c.ModelType,
		strings.Join(types, ", "))
}

// design holds everything in which the models that this package builds differ: [Forward] and the list of tensors depend
// on it alone, never on the name of an architecture.
type design struct {
	qkvBias, outBias, mlpBias bool
	// headNorm normalises queries and keys, head by head.
	headNorm bool
	// normOffset is added to the weights of norms.
	normOffset float64
	// postNorm normalises the outputs of attention and MLP too.
	postNorm bool
	// sparse says that some layers have experts.
	sparse     bool
	activation activation

	embedScale    float64 // multiplies the embedding
	queryScale    float64 // multiplies queries
	residualScale float64 // multiplies what a layer adds to the residual stream
	logitScale    float64 // multiplies logits
	scoreCap      float64 // attention scores s become cap tanh(s / cap); 0 is no cap
	logitCap      float64 // the same for logits

	layers []layer
}

type layer struct {
	window  int // tokens that a token attends to, itself included; 0 is no window
	rope    rope
	experts bool // the MLP is a mixture of experts
}

// plain is a design with nothing special: a Llama without biases.
func plain(c *Config, check checker) *design {
	d := &design{activation: activationOf(c.HiddenAct, "hidden_act", check), queryScale: 1 / math.Sqrt(float64(c.HeadDim)),
		embedScale: 1, residualScale: 1, logitScale: 1}
	for range c.NumLayers {
		d.layers = append(d.layers, layer{rope: c.rope()})
	}
	return d
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

func activationOf(name, key string, check checker) activation {
	a := activations[name]
	check(a != nil, "%s %q is not supported: this version has %s", key, name,
		strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
	return a
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
