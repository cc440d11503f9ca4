package track

import (
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
		"chat": structConfig(reflect.ValueOf(o.Chat)),
	})
}

// TrainConfig describes a training: the fields of its configuration, in snake case, and "kind", "rl",
// "sft" or "dpo".
func TrainConfig(e art.TrainStart) map[string]any {
	if e.SFT != nil {
		config := structConfig(reflect.ValueOf(*e.SFT))
		config["kind"] = "sft"
		return config
	}
	if e.DPO != nil {
		config := structConfig(reflect.ValueOf(*e.DPO))
		config["kind"] = "dpo"
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
		if value.Kind() == reflect.Slice && value.IsNil() || value.Kind() == reflect.Map && value.IsNil() {
			continue
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
