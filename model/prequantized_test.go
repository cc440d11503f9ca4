package model

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLoadConfig_Quantized: weights that were quantized for another library are refused once, by the name of the
// method, with what to use. The values are those of published configurations.
func TestLoadConfig_Quantized(t *testing.T) {
	type object = map[string]any
	mlx := object{"group_size": 64, "bits": 4, "mode": "affine"}
	for want, keys := range map[string]object{
		"quantized by bitsandbytes, which": {"quantization_config": object{"quant_method": "bitsandbytes",
			"load_in_4bit": true, "bnb_4bit_quant_type": "nf4", "_load_in_4bit": true, "bnb_4bit_use_double_quant": true}},
		"by bitsandbytes": {"quantization_config": object{"load_in_8bit": true, "llm_int8_threshold": 6.0}},
		"by GPTQ with 4 bits": {"quantization_config": object{"quant_method": "gptq", "bits": 4, "group_size": 128,
			"desc_act": false, "sym": true}},
		"by AWQ with 4 bits": {"quantization_config": object{"quant_method": "awq", "bits": 4, "group_size": 128,
			"version": "gemm", "zero_point": true}},
		"by compressed-tensors (float-quantized)": {"quantization_config": object{"quant_method": "compressed-tensors",
			"format": "float-quantized", "config_groups": object{"group_0": object{"weights": object{"num_bits": 8}}}}},
		"by compressed-tensors (pack-quantized), which is not supported (compression_config)": {
			"compression_config": object{"quant_method": "compressed-tensors", "format": "pack-quantized"}},
		"by FP8 of FBGEMM": {"quantization_config": object{"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}},
		"by fine-grained FP8": {"quantization_config": object{"quant_method": "fp8", "activation_scheme": "dynamic",
			"weight_block_size": []int{128, 128}, "fmt": "e4m3"}},
		"by MLX with 4 bits, which is not supported (quantization_config, quantization)": {"quantization": mlx,
			"quantization_config": mlx},
		"by MLX with 4 bits, which is not supported (quantization)": {"quantization": mlx},
		"by novel-q":           {"quantization_config": object{"quant_method": "novel-q"}},
		"quantized, which is ": {"quantization_config": object{"quant_method": 7, "x": 1}},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, ConfigFile), withKeys(t, keys), 0o600))
		_, err := LoadConfig(dir)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "use a GGUF file of the model, or the checkpoint in bfloat16")
		require.Equal(t, 1, strings.Count(err.Error(), "not supported"), err)
	}
}
