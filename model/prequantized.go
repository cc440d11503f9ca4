package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goart-dev/art/internal/brief"
)

// quantizationKeys describe quantized weights. The last one is MLX's, which copies it to the first.
var quantizationKeys = []string{"quantization_config", "compression_config", "quantization"}

// quantizers are the names of methods by their quant_method.
// Source: QuantizationMethod in transformers/utils/quantization_config.py, and vLLM's list
var quantizers = map[string]string{
	"aqlm": "AQLM", "auto-round": "AutoRound", "awq": "AWQ", "bitnet": "BitNet", "bitsandbytes": "bitsandbytes",
	"eetq": "EETQ", "fbgemm_fp8": "FP8 of FBGEMM", "fp8": "fine-grained FP8", "gptq": "GPTQ", "higgs": "HIGGS",
	"hqq": "HQQ", "modelopt": "ModelOpt", "mxfp4": "MXFP4", "quanto": "Quanto", "spqr": "SpQR", "vptq": "VPTQ",
}

// checkQuantized reports weights that were quantized for another library, and the keys that say so.
func checkQuantized(keys map[string]json.RawMessage) (said []string, err error) {
	method := ""
	for _, key := range quantizationKeys {
		var q struct {
			Method string `json:"quant_method"`
			Format string `json:"format"`       // of compressed-tensors
			Bits   int    `json:"bits"`         // of GPTQ, AWQ and MLX
			Four   bool   `json:"load_in_4bit"` // of bitsandbytes
			Eight  bool   `json:"load_in_8bit"`
		}
		if !changesForward(key, keys[key]) || keys[key][0] != '{' {
			continue
		}
		_ = json.Unmarshal(keys[key], &q) // what has another type stays zero
		said = append(said, key)
		name := quantizers[q.Method]
		switch {
		case q.Four, q.Eight:
			name = quantizers["bitsandbytes"]
		case name != "":
		case q.Method != "":
			name = brief.Text(q.Method)
		case key == "quantization":
			name = "MLX"
		}
		if q.Format != "" && name != "" && q.Format != q.Method {
			name += " (" + brief.Text(q.Format) + ")"
		}
		if q.Bits > 0 && name != "" {
			name += fmt.Sprintf(" with %d bits", q.Bits)
		}
		if name != "" {
			method = " by " + name
		}
	}
	if said == nil {
		return nil, nil
	}
	return said, fmt.Errorf("model: config: the weights are quantized%s, which is not supported (%s): use a GGUF file of "+
		"the model, or the checkpoint in bfloat16 that was quantized", method, strings.Join(said, ", "))
}
