package track_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/secret"
	"github.com/goart-dev/art/internal/track"
)

// A configuration has what is set, in plain values, and no functions.
func TestTrainConfig(t *testing.T) {
	cfg := &art.TrainConfig{LearningRate: 1e-3, Loss: credit.PPO, Progress: func(art.TrainProgress) {}}
	got := track.TrainConfig(art.TrainStart{Config: cfg.WithDefaults()})
	require.Equal(t, "rl", got["kind"])
	require.Equal(t, 1e-3, got["learning_rate"])
	require.Equal(t, "ppo", got["loss"])
	require.Equal(t, 0.2, got["epsilon"])
	require.Equal(t, 0.1, got["max_grad_norm"])
	require.Equal(t, 0.9, got["beta1"])
	require.NotContains(t, got, "progress")
	sft := track.TrainConfig(art.TrainStart{SFT: (&art.SFTConfig{}).WithDefaults()})
	require.Equal(t, "sft", sft["kind"])
	require.Equal(t, 8, sft["batch_size"])
}

// A model's configuration has its options; Flatten joins the keys.
func TestModelConfig(t *testing.T) {
	m := art.NewModel("player", &art.ModelOptions{Base: "tiny", Seed: 3, Chat: art.ChatOptions{
		Temperature: new(0.5), TemplateArgs: json.RawMessage(`{"enable_thinking":true,"api_key":"k"}`)}})
	got := track.Flatten(secret.Redact(track.ModelConfig(m)))
	require.Equal(t, map[string]any{
		"name": "player", "project": "default", "base": "tiny", "seed": uint64(3),
		"lora/rank": 8, "lora/alpha": 16.0, "chat/temperature": 0.5,
		"chat/template_args/enable_thinking": true, "chat/template_args/api_key": secret.Redacted,
	}, got)
}
