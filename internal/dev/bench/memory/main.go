// Command memory measures the memory of a model and compares it with what art model inspect predicts: inference with
// all slots full, and one training step. It makes a checkpoint of random numbers for a config.json.
//
//	go run ./internal/dev/bench/memory -config qwen2.5-0.5b.json -length 512 -slots 4 -workers 1
//
// It prints the prediction for tensors, to which art model inspect adds 134 MB for the process, and the peak resident
// memory of each phase. The prediction is for a long run, with all compiled programs that are kept, so that as many are
// compiled first: by training on single sequences, with -full on full micro-batches, as a long run does, which takes
// minutes, and with -programs=false not at all. It needs Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/safetensors"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

var (
	config  = flag.String("config", "", "`file` of a config.json")
	length  = flag.Int("length", 512, "tokens of a sequence")
	slots   = flag.Int("slots", 4, "conversations at once")
	workers = flag.Int("workers", 1, "micro-batches at once")
	micro   = flag.Int("micro", 4096, "tokens of a micro-batch")
	train   = flag.Bool("train", true, "measure a training step too")
	again   = flag.Bool("recompute", false, "training computes layers again")
	fill    = flag.Bool("programs", true, "first compile as many programs as are kept")
	full    = flag.Bool("full", false, "compile them in training steps of full micro-batches")
	half    = flag.Bool("bfloat16", false, "matrices in bfloat16")
)

func main() {
	flag.Parse()
	dir, err := os.MkdirTemp("", "memory")
	check(err)
	defer os.RemoveAll(dir)
	check(write(dir))
	debug.FreeOSMemory()
	check(measure(dir))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// write makes a checkpoint of random bfloat16 numbers between 2^-9 and 2^-5, tensor by tensor.
func write(dir string) error {
	content, err := os.ReadFile(*config)
	if err != nil {
		return err
	}
	c, err := model.ParseConfig(content)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var sources []safetensors.Source
	for _, s := range c.Specs() {
		sources = append(sources, safetensors.Source{Name: s.Name, DType: safetensors.BF16, Shape: s.Shape, Write: func(
			w io.Writer,
		) error {
			n := 2
			for _, d := range s.Shape {
				n *= d
			}
			return random(w, n, rng)
		}})
	}
	f, err := os.Create(filepath.Join(dir, model.WeightsFile))
	if err != nil {
		return err
	}
	err = safetensors.WriteSources(f, sources, nil)
	return errors.Join(err, f.Close(), c.Save(dir))
}

// random writes n bytes of numbers.
func random(w io.Writer, n int, rng *rand.Rand) error {
	block := make([]byte, 1<<20)
	for n > 0 {
		part := block[:min(n, len(block))]
		for i := 0; i < len(part); i += 2 {
			bits := rng.Uint32()
			part[i], part[i+1] = byte(bits), 0x3b|byte(bits>>8)&0x80|byte(bits>>16)&1
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
		n -= len(part)
	}
	return nil
}

// measure runs the phases.
func measure(dir string) error {
	c, err := model.Open(dir)
	if err != nil {
		return err
	}
	device, err := cpu.New(nil)
	if err != nil {
		return err
	}
	params, err := c.ParamsAs(device, matrices())
	if err != nil {
		return err
	}
	var layers []lora.LayerShape
	for _, l := range c.Config.Linears() {
		layers = append(layers, lora.LayerShape(l))
	}
	adapter, err := lora.New(lora.Config{Rank: 8}, layers, 1)
	if err != nil {
		return err
	}
	err = predict(device, c.Config, adapter)
	debug.FreeOSMemory() // of the graphs that it has compiled
	if err := errors.Join(err, report("loaded")); err != nil {
		return err
	}
	e, err := engine.New(engine.Options{Device: device, Config: c.Config, Params: params, Slots: *slots, Context: *length})
	if err != nil {
		return err
	}
	defer e.Close()
	if err := infer(e, adapter, c.Config.VocabSize); err != nil {
		return err
	}
	if err := report("inference"); err != nil || !*train {
		return err
	}
	opts := trainerOptions(device)
	opts.Programs = graphx.NewPrograms(device, plan.TrainingPrograms(c.Config))
	t := trainer.New(trainer.AdapterTarget(c.Config, params, adapter), opts)
	if *fill {
		if err := fillPrograms(t, opts.Programs, adapter, c.Config.VocabSize); err != nil {
			return err
		}
	}
	err = step(t, adapter, batch(c.Config.VocabSize, fullest()))
	fmt.Printf("%-10s %8.1f MB kept by the device, %d programs of %.1f MB\n", "", float64(device.HeldBytes())/1e6,
		opts.Programs.Len(), float64(opts.Programs.Bytes())/1e6)
	return errors.Join(err, report("training"))
}

// step is a training step.
func step(t *trainer.Trainer, adapter *lora.Adapter, batch []grpo.Sequence) error {
	_, _, err := t.Train(context.Background(), trainer.AdapterState(adapter), batch, trainer.Run{
		Loss: grpo.PolicyLoss{}, Optimizer: grpo.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8},
		Rate: func(int) float64 { return 1e-5 }, Epochs: 1, MiniBatches: 1,
	})
	return err
}

// fillPrograms trains on sequences whose layouts all differ, until a program was dropped for another one.
func fillPrograms(t *trainer.Trainer, kept *graphx.Programs, adapter *lora.Adapter, vocabulary int) error {
	for n, most := 16, 0; n <= *length && kept.Len() >= most; n += 16 {
		most = kept.Len()
		if err := step(t, adapter, filler(vocabulary, n)); err != nil {
			return err
		}
	}
	return nil
}

// filler is one sequence of n tokens, or with -full a batch of sequences of 2n tokens less than the longest: rows above
// 256 tokens are padded to steps of 32.
func filler(vocabulary, n int) []grpo.Sequence {
	if *full {
		return batch(vocabulary, max(16, *length-2*n))
	}
	return batch(vocabulary, n)[:1]
}

// matrices is the type of the matrices of the model.
func matrices() dtypes.DType {
	if *half {
		return dtypes.BFloat16
	}
	return dtypes.Float32
}

func trainerOptions(device *cpu.Device) trainer.Options {
	return trainer.Options{Device: device, Workers: *workers, MicroTokens: *micro, Recompute: *again}
}

// predict prints the prediction of art model inspect.
func predict(device *cpu.Device, c *model.Config, layout *lora.Adapter) error {
	inference, err := engine.Plan(engine.Options{Device: device, Config: c, Slots: *slots, Context: *length}, layout)
	if err != nil {
		return err
	}
	inference.Weights = plan.WeightBytes(c, matrices())
	training, err := trainer.Plan(c, layout, *length, trainerOptions(device))
	held := inference.Weights + inference.Cache
	held += inference.Programs
	fmt.Printf("planned: inference %.1f MB %+.0f, training %.1f MB %+.0f\n", (held+inference.Work)/1e6, inference,
		(held+training.Adapter+training.Programs+max(inference.Work, training.Work))/1e6, training)
	return err
}

// infer fills all slots.
func infer(e *engine.Engine, adapter *lora.Adapter, vocabulary int) error {
	a, err := e.NewAdapter(adapter)
	if err != nil {
		return err
	}
	if *fill {
		if err := errors.Join(e.Warm(context.Background(), nil), e.Warm(context.Background(), a)); err != nil {
			return err
		}
	}
	errs := make([]error, *slots)
	var wg sync.WaitGroup
	for i := range *slots {
		wg.Go(func() {
			_, errs[i] = e.Complete(context.Background(), engine.Request{
				Prompt: ids(vocabulary, *length-2, uint64(i)), MaxTokens: 2, Adapter: a,
			})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ids are n random tokens.
func ids(vocabulary, n int, seed uint64) []int32 {
	rng := rand.New(rand.NewPCG(seed, 3))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(rng.IntN(vocabulary))
	}
	return out
}

// fullest is the length, up to that of the flag, of which a group has the most tokens.
func fullest() int {
	best, most := *length, 0
	for n := *length; n > *length/2; n -= 32 {
		if tokens := (1 + largestGroup(n)) * n / 2; tokens > most {
			best, most = n, tokens
		}
	}
	return best
}

func largestGroup(length int) int { return plan.Sizes{MicroTokens: *micro}.LargestGroup(length) }

// batch returns the sequences of a length that take the most: as many as fill the micro-batches of all workers, or
// those that share their first half and fill a micro-batch together. Their tokens are all trained on.
func batch(vocabulary, length int) []grpo.Sequence {
	rows, half := *workers*max(1, *micro/length), length/2
	group := largestGroup(length)
	shared := group > max(1, *workers)
	if shared {
		rows = group
	}
	out := make([]grpo.Sequence, rows)
	for i := range out {
		s := &out[i]
		s.IDs = append(ids(vocabulary, length-2, uint64(i)), 1, 2)
		if shared {
			copy(s.IDs[:half], out[0].IDs)
		}
		s.Trained, s.Logprobs = make([]bool, len(s.IDs)), make([]float32, len(s.IDs))
		for j := 1; j < len(s.IDs); j++ {
			s.Trained[j], s.Logprobs[j] = true, -10
		}
		s.Advantage, s.Weight, s.Trajectory = float64(i%2*2-1), 1, i
	}
	return out
}

var peak = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// report prints the peak of resident memory since the last report.
func report(phase string) error {
	content, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	found := peak.FindSubmatch(content)
	if found == nil {
		return errors.New("/proc/self/status has no VmHWM")
	}
	kB, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		return err
	}
	fmt.Printf("%-10s %8.1f MB\n", phase, float64(kB)*1024/1e6)
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak begins anew
}
