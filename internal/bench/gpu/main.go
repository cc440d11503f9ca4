// Command gpu measures models of random weights on a device of XLA, one job a run, and prints a line of JSON for each
// figure:
//
//	gpu -device xla:cuda -shape qwen3-0.6b -weights bfloat16 -batch 16 decode
//	gpu table results.jsonl
//
// It needs neither files nor Go: gpu.sh builds it on one machine and runs it, next to peers.py, on another. Jobs are
// parity (with the CPU device), forward, prefill, decode, train and grpo.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	_ "github.com/goart-dev/art/backend/device/cpu" // offers "cpu"
	_ "github.com/goart-dev/art/backend/device/xla" // offers "xla:cuda" and others
	"github.com/goart-dev/art/internal/graphx"
)

// options are the flags.
type options struct {
	device, shape        string
	weights, cache       string
	lock                 string
	batch, tokens, steps int
	runs                 int
	budget               time.Duration
	recompute            bool
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gpu:", err)
		os.Exit(1)
	}
}

func run() error {
	var o options
	flag.StringVar(&o.device, "device", "xla:cuda", "device to measure")
	flag.StringVar(&o.shape, "shape", "tiny", "shape of the model: "+shapeNames())
	flag.StringVar(&o.weights, "weights", "bfloat16", "type of the matrices: float32, bfloat16 or int8")
	flag.StringVar(&o.cache, "cache", "bfloat16", "type of the KV cache: float32 or bfloat16")
	flag.IntVar(&o.batch, "batch", 1, "sequences")
	flag.IntVar(&o.tokens, "tokens", 512,
		"tokens of a prompt, or of a sequence that is trained on; for decode, tokens to make; for grpo, both")
	flag.IntVar(&o.steps, "steps", 32, "tokens per call of decode")
	flag.IntVar(&o.runs, "runs", 5, "runs after the first, which compiles")
	flag.DurationVar(&o.budget, "budget", time.Minute, "time after which no further run begins")
	flag.BoolVar(&o.recompute, "recompute", false,
		"train and grpo: keep only the inputs of layers, and compute them again")
	flag.StringVar(&o.lock, "lock", "", "a file: programs that are given the same one measure one after the other")
	flag.Parse()
	job := flag.Arg(0)
	if o.recompute && job != "train" && job != "grpo" {
		return fmt.Errorf("-recompute is for the jobs train and grpo, and this is %q", job)
	}
	switch job {
	case "table":
		return table(os.Stdout, flag.Args()[1:])
	case "parity":
		return parity(o)
	case "forward", "prefill", "decode", "train", "grpo":
		return measureJob(job, o)
	default:
		return fmt.Errorf("%q is no job: want parity, forward, prefill, decode, train, grpo or table", job)
	}
}

// result is one line of the output.
type result struct {
	Who       string  `json:"who"` // "art"; peers.py writes its own
	Job       string  `json:"job"`
	Device    string  `json:"device"`
	Shape     string  `json:"shape"`
	Weights   string  `json:"weights"`
	Cache     string  `json:"cache"` // of sampling
	Batch     int     `json:"batch"`
	Tokens    int     `json:"tokens"`          // of each sequence
	Steps     int     `json:"steps,omitempty"` // tokens of a call
	First     float64 `json:"first_s"`         // the first run, with compilation
	Best      float64 `json:"best_s"`
	Median    float64 `json:"median_s"`
	Rate      float64 `json:"tokens_per_s"`           // of all sequences, in the median run
	TFLOPs    float64 `json:"tflop_per_s,omitempty"`  // of matmuls with weights
	GBs       float64 `json:"weights_gb_s,omitempty"` // weights read
	Programs  int     `json:"programs"`               // that were compiled, those that draw weights included
	Compile   float64 `json:"compile_s"`              // time that took
	Recompute bool    `json:"recompute,omitempty"`
	Go        string  `json:"go,omitempty"`
}

func emit(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

// openDevice opens a device of GoMLX's registry.
func openDevice(name string) (device compute.Backend, err error) {
	if caught := graphx.Try(func() { device, err = compute.NewWithConfig(name) }); caught != nil {
		return nil, caught // some devices panic
	}
	return device, err
}

// typeOf reads the type of matrices or of a cache.
func typeOf(weights string) (dtypes.DType, error) {
	switch weights {
	case "float32":
		return dtypes.Float32, nil
	case "bfloat16":
		return dtypes.BFloat16, nil
	case "int8":
		return dtypes.Int8, nil
	}
	return 0, fmt.Errorf("type %q: want float32, bfloat16 or int8", weights)
}
