package track

import (
	"encoding/json"
	"maps"

	"github.com/goart-dev/art"
)

// ModelConfig describes a model: its options, and "chat" and "lora" below it.
func ModelConfig(m *art.Model) map[string]any {
	o := m.Options()
	return withoutZeros(map[string]any{
		"name": m.Name(), "project": o.Project, "base": o.Base, "adapter": o.Adapter, "fork": o.Fork,
		"frozen": o.Frozen, "tool_format": o.ToolFormat, "seed": o.Seed,
		"lora": withoutZeros(map[string]any{"rank": o.LoRA.Rank, "alpha": o.LoRA.Alpha}),
		"chat": chatConfig(o.Chat),
	})
}

// chatConfig has what is set.
func chatConfig(o art.ChatOptions) map[string]any {
	config := map[string]any{}
	put(config, "temperature", o.Temperature)
	put(config, "top_p", o.TopP)
	put(config, "top_k", o.TopK)
	put(config, "max_tokens", o.MaxTokens)
	var args map[string]any
	if json.Unmarshal(o.TemplateArgs, &args) == nil && len(args) > 0 {
		config["template_args"] = args
	}
	return config
}

// TrainConfig describes a training.
func TrainConfig(e art.TrainStart) map[string]any {
	if c := e.SFT; c != nil {
		config := map[string]any{
			"kind": "sft", "learning_rate": c.LearningRate, "batch_size": c.BatchSize, "epochs": c.Epochs,
			"warmup": c.Warmup, "max_grad_norm": c.MaxGradNorm, "weight_decay": c.WeightDecay, "seed": c.Seed,
		}
		put(config, "decay", c.Decay)
		return config
	}
	if e.DPO != nil {
		return dpoConfig(e.DPO)
	}
	c := e.Config
	config := map[string]any{
		"kind": "rl", "learning_rate": c.LearningRate, "loss": string(c.Loss), "baseline": string(c.Baseline),
		"scale": string(c.Scale), "epochs": c.Epochs, "mini_batches": c.MiniBatches, "max_grad_norm": c.MaxGradNorm,
		"beta1": c.Beta1, "beta2": c.Beta2, "eps": c.Eps,
	}
	put(config, "epsilon", c.Epsilon)
	put(config, "epsilon_high", c.EpsilonHigh)
	put(config, "normalize_advantages", c.NormalizeAdvantages)
	put(config, "weight_decay", c.WeightDecay)
	return config
}

// dpoConfig describes a training on preferences.
func dpoConfig(c *art.DPOConfig) map[string]any {
	config := map[string]any{
		"kind": "dpo", "beta": c.Beta, "label_smoothing": c.LabelSmoothing, "length_normalized": c.LengthNormalized,
		"reference_base": c.ReferenceBase, "learning_rate": c.LearningRate, "batch_size": c.BatchSize, "epochs": c.Epochs,
		"warmup": c.Warmup, "max_grad_norm": c.MaxGradNorm, "weight_decay": c.WeightDecay, "seed": c.Seed,
	}
	put(config, "decay", c.Decay)
	return config
}

// put sets key to what p points to, if it points to something.
func put[T any](config map[string]any, key string, p *T) {
	if p != nil {
		config[key] = *p
	}
}

// withoutZeros deletes what is empty, false or 0, seeds excepted.
func withoutZeros(config map[string]any) map[string]any {
	maps.DeleteFunc(config, func(key string, value any) bool {
		switch v := value.(type) {
		case string:
			return v == ""
		case bool:
			return !v
		case int:
			return v == 0
		case float64:
			return v == 0
		case map[string]any:
			return len(v) == 0
		}
		return false
	})
	return config
}

// Flatten returns nested maps as one, with "/" between keys.
func Flatten(config map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range config {
		inner, ok := value.(map[string]any)
		if !ok {
			out[key] = value
			continue
		}
		for below, v := range Flatten(inner) {
			out[key+"/"+below] = v
		}
	}
	return out
}
