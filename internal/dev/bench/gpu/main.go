// Command gpu measures models of random weights on a device of XLA, one job a run, and prints a line of JSON for each
// figure:
//
//	gpu -device xla:cuda -shape qwen3-0.6b -weights bfloat16 -batch 16 decode
//	gpu table results.jsonl
//
// It needs neither files nor Go: gpu.sh builds it on one machine and runs it, next to peers.py, on another. Jobs are
// parity (with the CPU device), forward, prefill, decode, train, grpo and gap (of sampler and trainer).
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
	name, shape          string // name is the device's
	weights, cache       string
	lock, card           string
	batch, tokens, steps int
	runs, devices        int
	budget               time.Duration
	recompute            bool
}

func main() {
	if err := runJob(); err != nil {
		fmt.Fprintln(os.Stderr, "gpu:", err)
		os.Exit(1)
	}
}

func runJob() error {
	var o options
	flag.StringVar(&o.name, "device", "xla:cuda", "device to measure")
	flag.StringVar(&o.shape, "shape", "tiny", "shape of the model: "+shapeNames())
	flag.StringVar(&o.weights, "weights", "bfloat16", "type of the matrices: float32, bfloat16 or int8")
	flag.StringVar(&o.cache, "cache", "bfloat16", "type of the KV cache: float32 or bfloat16")
	flag.IntVar(&o.batch, "batch", 1, "sequences")
	flag.IntVar(&o.tokens, "tokens", 512,
		"tokens of a prompt, or of a sequence that is trained on; for decode, tokens to make; "+
			"for grpo, of a prompt and of its reply each; for gap, of both together")
	flag.IntVar(&o.steps, "steps", 32, "tokens per call of decode")
	flag.IntVar(&o.runs, "runs", 5, "runs after the first, which compiles")
	flag.DurationVar(&o.budget, "budget", time.Minute, "time after which no further run begins")
	flag.BoolVar(&o.recompute, "recompute", false,
		"train, grpo and gap: keep only the inputs of layers, and compute them again")
	flag.StringVar(&o.lock, "lock", "", "a file: programs that are given the same one measure one after the other")
	flag.StringVar(&o.card, "card", "", "name of the GPU by nvidia-smi, for the table")
	flag.IntVar(&o.devices, "devices", 1,
		"grpo and gap: devices that sample and train; those after the first are DEVICE,device=1 and so on")
	flag.Parse()
	job := flag.Arg(0)
	steps := job == "grpo" || job == "gap"
	if o.recompute && job != "train" && !steps {
		return fmt.Errorf("-recompute is for the jobs train, grpo and gap, and this is %q", job)
	}
	if o.devices != 1 && !steps || o.devices < 1 {
		return fmt.Errorf("-devices is at least 1, and above 1 for grpo and gap; this is %q with %d", job, o.devices)
	}
	switch job {
	case "table":
		return table(os.Stdout, flag.Args()[1:])
	case "parity":
		return parity(o)
	case "forward", "prefill", "decode", "train", "grpo", "gap":
		return measureJob(job, o)
	default:
		return fmt.Errorf("%q is no job: want parity, forward, prefill, decode, train, grpo, gap or table", job)
	}
}

// result is one line of the output. The table computes from it what must be computed and read: see cost.go.
type result struct {
	Who       string      `json:"who"`           // "art"; peers.py writes its own
	How       string      `json:"how,omitempty"` // of peers.py: "generate" of transformers, or its own "loop"
	Job       string      `json:"job"`
	Device    string      `json:"device"`
	Card      string      `json:"card,omitempty"` // the GPU's name
	Devices   int         `json:"devices,omitempty"`
	Shape     string      `json:"shape"`
	Weights   string      `json:"weights"`
	Cache     string      `json:"cache,omitempty"` // of sampling
	Batch     int         `json:"batch"`
	Prompt    int         `json:"prompt,omitempty"` // tokens of each prompt, for steps of GRPO
	Tokens    int         `json:"tokens"`           // of each sequence, or of each reply where Prompt is set
	Steps     int         `json:"steps,omitempty"`  // tokens of a call
	First     float64     `json:"first_s"`          // the first run, with compilation
	Best      float64     `json:"best_s"`
	Median    float64     `json:"median_s"`
	Rollouts  float64     `json:"rollouts_s,omitempty"` // of the median step of GRPO
	Training  float64     `json:"training_s,omitempty"` // the rest of it
	Rate      float64     `json:"tokens_per_s"`         // of all sequences, in the median run
	Gap       *gapFigures `json:"gap,omitempty"`        // of all steps that count
	Programs  int         `json:"programs"`             // that were compiled or read, those that draw weights included
	Kept      int         `json:"kept_programs"`        // those of them that were read, from the folder of ART_XLA_CACHE
	Compile   float64     `json:"compile_s"`            // time that all took
	Recompute bool        `json:"recompute,omitempty"`
	Go        string      `json:"go,omitempty"`
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
