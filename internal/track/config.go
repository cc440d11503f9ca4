package track

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"unicode"

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

// TrainConfig describes a training: the fields of its configuration, in snake case, and "kind", "rl" or "sft".
func TrainConfig(e art.TrainStart) map[string]any {
	if e.SFT != nil {
		config := structConfig(reflect.ValueOf(*e.SFT))
		config["kind"] = "sft"
		return config
	}
	config := structConfig(reflect.ValueOf(*e.Config))
	config["kind"] = "rl"
	return config
}

// structConfig returns the fields of a struct without functions, and what pointers point to.
func structConfig(v reflect.Value) map[string]any {
	config := map[string]any{}
	for field, value := range v.Fields() {
		for value.Kind() == reflect.Pointer && !value.IsNil() {
			value = value.Elem()
		}
		switch value.Kind() {
		case reflect.Func, reflect.Pointer, reflect.Interface, reflect.Chan:
		case reflect.Struct:
			config[snake(field.Name)] = structConfig(value)
		case reflect.String:
			config[snake(field.Name)] = value.String()
		default:
			config[snake(field.Name)] = value.Interface()
		}
	}
	return withoutZeros(config)
}

// snake writes LearningRate as learning_rate, and KLCoefficient as kl_coefficient.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		upper := unicode.IsUpper(c)
		after := i > 0 && !unicode.IsUpper(rune(name[i-1]))
		before := i > 0 && i+1 < len(name) && unicode.IsLower(rune(name[i+1]))
		if upper && (after || before) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
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
