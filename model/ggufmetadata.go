package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/goart-dev/art/internal/gguf"
)

// ggufModel returns the architecture under which llama.cpp has the model. What it would compute otherwise is an error.
func (c *Config) ggufModel() (arch string, m ggufModel, err error) {
	kind := c.ModelType
	if kind == mistral.modelType {
		kind = llama.modelType
	}
	for name, candidate := range ggufModels {
		if candidate.modelType == kind {
			arch, m = name, candidate
		}
	}
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("model: GGUF: llama.cpp does not build %s: "+format,
				append([]any{cmp.Or(arch, kind)}, args...)...))
		}
	}
	check(arch != "", "at all")
	dense := slices.ContainsFunc(c.design().layers, func(l layer) bool { _, sparse := l.feed.(experts); return !sparse })
	check(c.NumExperts == 0 || c.NormTopKProb && !dense,
		"with layers without experts, or weights of experts that do not add up to 1")
	if s := c.RopeScaling; s != nil {
		check(s.Type != ropeLlama3 || m.interleaved, "with Llama 3's scaling of RoPE")
		check(s.Type != ropeLong || m.interleaved, "with LongRoPE")
		check(s.Type != ropeYarn || arch != "gemma3", "with YaRN")
		fast, slow := s.betas()
		check(s.Type != ropeYarn || s.Truncate == nil && fast == usualFast && slow == usualSlow,
			"with YaRN whose truncate is false, or whose beta_fast and beta_slow are not %d and %d", usualFast, usualSlow)
	}
	if arch != "gemma3" {
		check(!slices.ContainsFunc(c.design().layers, func(l layer) bool { return l.window > 0 }), "with a sliding window")
		return arch, m, errors.Join(problems...)
	}
	const pattern, layersOf27B = 6, 62
	for i, l := range c.design().layers {
		check((l.window == 0) == (i%pattern == pattern-1), "whose layer %d has a window, or has none", i)
	}
	scalar := c.HeadDim
	if c.NumLayers == layersOf27B {
		scalar = c.HiddenSize / c.NumHeads
	}
	check(c.QueryScalar == float64(scalar), "with query_pre_attn_scalar %v", c.QueryScalar)
	check(c.AttentionSoftCap == 0, "with attn_logit_softcapping")
	return arch, m, errors.Join(problems...)
}

// ggufMetadata returns what ggufHeader reads.
func (c *Config) ggufMetadata(arch, name string) []gguf.Pair {
	out := []gguf.Pair{{Key: "general.architecture", Value: arch}, {Key: "general.type", Value: "model"}}
	if name != "" {
		out = append(out, gguf.Pair{Key: "general.name", Value: name})
	}
	number := func(key string, n int) {
		if n != 0 {
			out = append(out, gguf.Pair{Key: arch + "." + key, Value: uint32(n)}) //nolint:gosec // not negative
		}
	}
	decimal := func(key string, x float64) {
		if x != 0 {
			out = append(out, gguf.Pair{Key: arch + "." + key, Value: float32(x)})
		}
	}
	number("block_count", c.NumLayers)
	number("context_length", c.MaxPositions)
	number("embedding_length", c.HiddenSize)
	number("feed_forward_length", c.IntermediateSize)
	number("attention.head_count", c.NumHeads)
	number("attention.head_count_kv", c.NumKVHeads)
	number("attention.key_length", c.HeadDim)
	number("attention.value_length", c.HeadDim)
	if arch == "llama" || arch == "granite" {
		number("rope.dimension_count", c.HeadDim)
		number("vocab_size", c.VocabSize)
	}
	decimal("attention.layer_norm_rms_epsilon", c.RMSNormEps)
	decimal("rope.freq_base", c.RopeTheta)
	if s := c.RopeScaling; s != nil && s.Type != ropeLlama3 && s.Type != ropeDynamic { // which is none up to MaxPositions
		out = append(out, gguf.Pair{Key: arch + ".rope.scaling.type", Value: s.Type})
		number("rope.scaling.original_context_length", s.OriginalPositions)
		switch s.Type {
		case ropeLong: // its factors are tensors
			decimal("rope.scaling.attn_factor", c.rope().attention())
		case ropeYarn: // llama.cpp multiplies by the usual attention factor itself
			decimal("rope.scaling.attn_factor", c.rope().attention()/s.mscale(1))
			fallthrough
		default:
			decimal("rope.scaling.factor", s.Factor)
		}
	}
	number("expert_count", c.NumExperts)
	number("expert_used_count", c.ExpertsPerToken)
	number("expert_feed_forward_length", c.MoEIntermediateSize)
	switch arch {
	case "gemma3":
		number("attention.sliding_window", c.SlidingWindow)
		decimal("rope.freq_base_swa", c.RopeLocalTheta)
		decimal("final_logit_softcapping", c.FinalSoftCap)
	case "granite":
		decimal("attention.scale", cmp.Or(c.AttentionMultiplier, 1))
		decimal("embedding_scale", cmp.Or(c.EmbeddingMultiplier, 1))
		decimal("residual_scale", cmp.Or(c.ResidualMultiplier, 1))
		decimal("logit_scale", cmp.Or(c.LogitsScaling, 1))
	}
	return out
}
