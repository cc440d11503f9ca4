package lora

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/brief"
)

// peftConfig is adapter_config.json as PEFT writes it, in the fields that matter to LoRA and DoRA.
type peftConfig struct {
	PeftType      string  `json:"peft_type"`
	TaskType      string  `json:"task_type"`
	BaseModel     string  `json:"base_model_name_or_path"`
	Revision      *string `json:"revision"`
	InferenceMode bool    `json:"inference_mode"`
	R             int     `json:"r"`
	LoraAlpha     float64 `json:"lora_alpha"`
	// Which modules have an adapter: see selection. The last three are omitted when not set.
	TargetModules     json.RawMessage `json:"target_modules"`
	ExcludeModules    json.RawMessage `json:"exclude_modules,omitempty"`
	LayersToTransform json.RawMessage `json:"layers_to_transform,omitempty"`
	LayersPattern     json.RawMessage `json:"layers_pattern,omitempty"`

	LoraDropout     float64         `json:"lora_dropout"`
	Bias            string          `json:"bias"`
	FanInFanOut     bool            `json:"fan_in_fan_out"`
	InitLoraWeights bool            `json:"init_lora_weights"`
	ModulesToSave   []string        `json:"modules_to_save"`
	UseDora         bool            `json:"use_dora"`
	RankPattern     json.RawMessage `json:"rank_pattern"` // the order of their keys matters
	AlphaPattern    json.RawMessage `json:"alpha_pattern"`
	UseRSLora       bool            `json:"use_rslora"`
}

// encodePEFT returns adapter_config.json. chosen is nil when the targets of cfg say which modules have an adapter.
func encodePEFT(cfg Config, chosen *selection, baseModelName string) ([]byte, error) {
	if chosen == nil {
		targets, err := json.Marshal(cfg.Targets)
		if err != nil {
			return nil, err
		}
		chosen = &selection{fields: map[string]json.RawMessage{keyTargets: targets}}
	}
	ranks, errRanks := orderedObject(cfg.Ranks, cfg.rankOrder)
	alphas, errAlphas := orderedObject(cfg.Alphas, cfg.alphaOrder)
	if err := errors.Join(errRanks, errAlphas); err != nil {
		return nil, err
	}
	content, err := json.MarshalIndent(peftConfig{
		PeftType:      "LORA",
		TaskType:      "CAUSAL_LM",
		BaseModel:     baseModelName,
		InferenceMode: true,
		R:             cfg.Rank,
		LoraAlpha:     cfg.Alpha,
		TargetModules: chosen.fields[keyTargets],

		ExcludeModules:    chosen.fields[keyExclude],
		LayersToTransform: chosen.fields[keyLayers],
		LayersPattern:     chosen.fields[keyPatterns],

		Bias:            "none",
		InitLoraWeights: true,
		UseDora:         cfg.DoRA,
		UseRSLora:       cfg.RankStabilized,
		RankPattern:     ranks,
		AlphaPattern:    alphas,
	}, "", "  ")
	return append(content, '\n'), err
}

// orderedObject writes a map with its keys in the order of patternOrder.
func orderedObject[T any](values map[string]T, order []string) (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range patternOrder(values, order) {
		name, errName := json.Marshal(key)
		value, err := json.Marshal(values[key])
		if err := errors.Join(errName, err); err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// decodePatterns reads rank_pattern or alpha_pattern. As in Python, a key that comes twice has its first place and its
// last value. order stays nil where it is that of the text of the keys.
func decodePatterns[T any](fields map[string]json.RawMessage, key string, values *map[string]T, order *[]string) error {
	if err := decodeField(fields, key, values); err != nil {
		return err
	}
	if len(*values) == 0 {
		*values = nil
		return nil
	}
	keys := make([]string, 0, len(*values))
	seen := map[string]bool{}
	in := json.NewDecoder(bytes.NewReader(fields[key]))
	_, err := in.Token()
	for err == nil && in.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = in.Token(); err == nil {
			err = in.Decode(&value)
		}
		if text, ok := name.(string); ok && !seen[text] {
			keys, seen[text] = append(keys, text), true
		}
	}
	if !slices.IsSorted(keys) {
		*order = keys
	}
	return err
}

// unsupported are settings of PEFT that change what an adapter computes and that this package does not support. Each is
// off when absent, null, false, 0 or empty.
var unsupported = []string{
	"alora_invocation_tokens", "arrow_config", "fan_in_fan_out", "kasa_config", "layer_replication",
	"lora_bias", "modules_to_save", "monteclora_config", "target_parameters", "trainable_token_indices",
	"use_bdlora", "use_qalora", "velora_config",
}

// baseChanging are prefixes of the values of init_lora_weights that also change the base model.
var baseChanging = []string{"pissa", "olora", "loftq", "corda", "lora_ga"}

// decodePEFT reads adapter_config.json. Targets are left empty: they depend on the layers of the file.
//
// lora_dropout is ignored: it has no effect on an adapter once trained.
func decodePEFT(content []byte) (cfg Config, chosen *selection, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(content, &fields); err != nil {
		return Config{}, nil, err
	}
	if err := checkSupported(fields); err != nil {
		return Config{}, nil, err
	}
	cfg.Rank, cfg.Alpha = 0, 8 // PEFT always writes r; 8 is its lora_alpha
	err = errors.Join(
		decodeField(fields, "r", &cfg.Rank),
		decodeField(fields, "lora_alpha", &cfg.Alpha),
		decodeField(fields, "use_dora", &cfg.DoRA),
		decodeField(fields, "use_rslora", &cfg.RankStabilized),
		decodePatterns(fields, "rank_pattern", &cfg.Ranks, &cfg.rankOrder),
		decodePatterns(fields, "alpha_pattern", &cfg.Alphas, &cfg.alphaOrder),
	)
	if err != nil {
		return Config{}, nil, err
	}
	if cfg.Rank <= 0 || cfg.Alpha <= 0 {
		return Config{}, nil, fmt.Errorf("r is %d and lora_alpha %v, both must be positive", cfg.Rank, cfg.Alpha)
	}
	chosen, err = parseSelection(fields)
	return cfg, chosen, errors.Join(err, cfg.Validate())
}

func checkSupported(fields map[string]json.RawMessage) error {
	var errs []error
	var kind, bias, initial string
	if err := decodeField(fields, "peft_type", &kind); err != nil || kind != "LORA" {
		errs = append(errs, fmt.Errorf("peft_type is %s, only \"LORA\" is supported", fields["peft_type"]))
	}
	if err := decodeField(fields, "bias", &bias); err != nil || bias != "" && bias != "none" {
		errs = append(errs, fmt.Errorf("bias is %s, only \"none\" is supported", fields["bias"]))
	}
	changesBase := func(prefix string) bool { return strings.HasPrefix(initial, prefix) }
	if decodeField(fields, "init_lora_weights", &initial) == nil && slices.ContainsFunc(baseChanging, changesBase) {
		errs = append(errs, fmt.Errorf("init_lora_weights is %q, which changes the base model: "+
			"not supported; convert the adapter to plain LoRA with PEFT", initial))
	}
	for _, key := range unsupported {
		if raw, ok := fields[key]; ok && !isOff(raw) {
			errs = append(errs, fmt.Errorf("%s is %s: not supported", key, brief.Text(compact(raw))))
		}
	}
	return errors.Join(errs...) // at most one for each key that is known
}

func isOff(raw json.RawMessage) bool {
	switch compact(raw) {
	case "null", "false", "0", `""`, "[]", "{}":
		return true
	}
	return false
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// decodeField reads one field, and leaves value unchanged when it is absent.
func decodeField(fields map[string]json.RawMessage, key string, value any) error {
	raw, ok := fields[key]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}
