package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// memoryPlan are the sizes that memory is computed for.
type memoryPlan struct {
	lengths        []int
	slots, workers int
	tokens         int          // of the cache; 0: the length for each slot
	adapter        lora.Config  // without targets and rank: that of the run
	full           bool         // all weights are trained
	on             string       // the device that programs are listed for; "" for none
	matrices       dtypes.DType // of its weights
	weights        float64      // what they take on the CPU device, bytes
	cacheType      dtypes.DType
}

// layout is the adapter that memory is computed for; run is nil without a run. Of a run, what is not chosen is kept.
func (p memoryPlan) layout(c *model.Config, run *adapterReport) (*lora.Adapter, error) {
	cfg := p.adapter
	chosen := cfg.Pattern != "" || cfg.Targets != nil
	if run != nil {
		if !chosen && cfg.Rank == 0 && cfg.Ranks == nil && !cfg.DoRA {
			return run.adapter, nil
		}
		cfg.Rank, cfg.DoRA = cmp.Or(cfg.Rank, run.Rank), cfg.DoRA || run.adapter.Config().DoRA
	}
	if run != nil && !chosen {
		var layers []lora.LayerShape
		for _, l := range run.adapter.Layers() {
			layers = append(layers, l.LayerShape)
		}
		cfg.Targets = run.adapter.Config().Targets
		if kept := run.adapter.Config(); cfg.Ranks == nil { // with the order of its patterns
			kept.Rank, kept.DoRA, kept.Alphas = cfg.Rank, cfg.DoRA, nil
			cfg = kept
		}
		return lora.New(cfg, layers, 0)
	}
	return lora.New(cfg, layersOf(c), 0)
}

// memory returns the memory of a model at each length.
func (p memoryPlan) memory(c *model.Config, run *adapterReport) ([]lengthMemory, error) {
	device, err := cpu.New(nil)
	if err != nil {
		return nil, err
	}
	defer device.Finalize()
	layout, err := p.layout(c, run)
	if err != nil {
		return nil, err
	}
	trained := layout
	if p.full {
		trained = nil
	}
	var list []lengthMemory
	for _, length := range p.of(c) {
		if length > c.MaxPositions {
			return list, fmt.Errorf("length %d: the model has a context of %d tokens: use --lengths", length, c.MaxPositions)
		}
		m := lengthMemory{
			Length: length, Slots: p.slots, Tokens: cmp.Or(p.tokens, p.slots*length), Process: plan.ProcessBytes,
		}
		if m.Tokens < length {
			return list, fmt.Errorf("length %d: a cache of %d tokens does not hold it: raise --cache-tokens", length, m.Tokens)
		}
		serving := engine.Options{Device: device, Config: c, Slots: p.slots, Context: length, CacheTokens: m.Tokens}
		if m.Inference, err = engine.Plan(serving, layout); err != nil {
			return list, err
		}
		m.Inference.Weights = p.weights
		opts := trainer.Options{Device: device, Workers: p.workers}
		if m.Training, err = trainer.Plan(c, trained, length, opts); err != nil {
			return list, err
		}
		opts.Recompute = true
		if m.Recomputed, err = trainer.Plan(c, trained, length, opts); err != nil {
			return list, err
		}
		held := m.Process + m.Inference.Weights + m.Inference.Cache
		m.Infer = held + m.Inference.Programs + m.Inference.Work
		m.Train = held + training(m.Inference, m.Training)
		m.Least = held + training(m.Inference, m.Recomputed)
		list = append(list, m)
	}
	return list, nil
}

// training is what a training adds to what is held. Its work shares the memory of that of inference.
func training(inference, m plan.Memory) float64 {
	return m.Adapter + inference.Programs + m.Programs + max(inference.Work, m.Work)
}

// of returns the lengths for a model: those of --lengths, or usual ones within its context.
func (p memoryPlan) of(c *model.Config) []int {
	if p.lengths != nil {
		return p.lengths
	}
	if c.MaxPositions < 2048 {
		return []int{c.MaxPositions}
	}
	return []int{512, 2048}
}

// trainingReport is what a training takes on a device beside the weights, in bytes.
type trainingReport struct {
	Full       bool  `json:"full"`       // all weights are trained
	Adapter    int64 `json:"adapter"`    // its copies, or those of all weights
	Work       int64 `json:"work"`       // at most, of the micro-batches that are computed at once
	Recomputed int64 `json:"recomputed"` // the same with layers that are computed again
	Workers    int   `json:"workers"`    // micro-batches at once
	// Layouts are those of micro-batches whose sequences share nothing, where few occur. Each has a program for a loss,
	// and one for logprobs.
	Layouts []trainingLayout `json:"layouts,omitempty"`
	// Kept is how many programs are kept, at most; 0 where they are bounded by their bytes.
	Kept     int   `json:"programs_kept,omitempty"`
	Programs int64 `json:"programs,omitempty"` // bytes of those that are kept, at most, where the device says them
}

// trainingLayout is the shape of a micro-batch.
type trainingLayout struct {
	Rows    int `json:"rows"`
	Length  int `json:"length"`  // tokens of a row
	Trained int `json:"trained"` // tokens of all rows that can be trained
}

// training describes a training of sequences of up to length tokens: of adapters, or with no layout of all weights.
func (p memoryPlan) training(c *model.Config, layout *lora.Adapter, length int, on graphx.Profile) trainingReport {
	t := plan.TrainingOf(c, layout)
	t.On = on
	s := plan.Sizes{Workers: min(p.workers, on.RunsAtOnce())}
	kept := t.Memory(s, length)
	s.Recompute = true
	r := trainingReport{
		Full: t.Full, Adapter: int64(kept.Adapter), Work: int64(kept.Work), Recomputed: int64(t.Memory(s, length).Work),
		Workers: s.Workers, Programs: int64(kept.Programs),
	}
	if on.SlowCompile {
		r.Kept = graphx.RoomIn(plan.TrainingPrograms(c))
		for _, l := range trainer.FewLayouts(t, s, length) {
			r.Layouts = append(r.Layouts, trainingLayout{l.Rows, l.Length, l.Trained})
		}
	}
	return r
}

// lines are the report in text.
func (r trainingReport) lines() []string {
	copies := "training: adapter"
	if r.Full {
		copies = "training of all weights: copies"
	}
	lines := []string{fmt.Sprintf("%s %s, work up to %s, or %s with layers computed again; micro-batches at once: %d",
		copies, quantity.Bytes(r.Adapter), quantity.Bytes(r.Work), quantity.Bytes(r.Recomputed), r.Workers)}
	if len(r.Layouts) == 0 {
		return append(lines, fmt.Sprintf("programs of micro-batches, of layouts as they occur: up to %s are kept",
			quantity.Bytes(r.Programs)))
	}
	return append(lines,
		fmt.Sprintf("%s of micro-batches, each with a program for a loss and one for logprobs, beside three for "+
			"updates: rows of %s; a quarter or all of the tokens trained", quantity.Of(len(r.Layouts), "layout"), r.shapes()),
		fmt.Sprintf("and those of shared prompts, as they occur, with powers of two of rows and tokens; programs of a base "+
			"model that are kept: at most %d", r.Kept))
}

// shapes lists the numbers of rows of each length.
func (r trainingReport) shapes() string {
	var texts []string
	for i := 0; i < len(r.Layouts); {
		length, rows := r.Layouts[i].Length, []int(nil)
		for ; i < len(r.Layouts) && r.Layouts[i].Length == length; i++ {
			rows = append(rows, r.Layouts[i].Rows)
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", quantity.Of(length, "token"), choices(rows)))
	}
	return strings.Join(texts, ", ")
}

// matrixTypes are the types of --weights.
var matrixTypes = map[string]dtypes.DType{
	"float32": dtypes.Float32, "bfloat16": dtypes.BFloat16, "int8": dtypes.Int8, "stored": model.Stored,
}

// deviceReport is what serving and training take on a device that is named by --device: from sizes alone, without
// opening it.
type deviceReport struct {
	Device   string           `json:"device"`
	Length   int              `json:"length"`
	Slots    int              `json:"slots"`
	Weights  int64            `json:"weights"` // in bytes, as the next two
	Cache    int64            `json:"cache"`
	Work     int64            `json:"work"`     // at most
	Programs []engine.Program `json:"programs"` // for each layout of adapters
	// Kept is how many programs are kept, at most; 0 where they are bounded by their bytes.
	Kept     int            `json:"programs_kept,omitempty"`
	Training trainingReport `json:"training"`
}

// device describes serving and training on the device of --device at each length.
func (p memoryPlan) device(c *model.Config, run *adapterReport) (list []deviceReport, err error) {
	profile := graphx.NamedProfile(p.on)
	layout, err := p.layout(c, run)
	if err != nil {
		return nil, err
	}
	if p.full {
		layout = nil
	}
	for _, length := range p.of(c) {
		opts := engine.Options{
			Config: c, Slots: p.slots, Context: length, CacheTokens: cmp.Or(p.tokens, p.slots*length),
			FewShapes: profile.SlowCompile, DecodeSteps: profile.TokensPerCall,
		}
		sampling := plan.Sampling{
			Config: c, On: profile, Slots: opts.Slots, Context: length, CacheTokens: opts.CacheTokens,
			Matrices: p.matrices, CacheType: p.cacheType,
		}
		if p.on == cpu.Name {
			sampling.WeightBytes = p.weights
		}
		m := sampling.Memory()
		r := deviceReport{
			Device: p.on, Length: length, Slots: p.slots, Weights: int64(m.Weights),
			Cache: int64(m.Cache), Work: int64(m.Work), Programs: engine.Programs(opts),
			Training: p.training(c, layout, length, profile),
		}
		if profile.SlowCompile {
			r.Kept = engine.MostPrograms(opts)
		}
		list = append(list, r)
	}
	return list, nil
}

// lines are the report in text.
func (r deviceReport) lines() []string {
	kept := ""
	if r.Kept > 0 {
		kept = fmt.Sprintf("; those of the base model and of %d layouts are kept, at most %d", engine.KeptLayouts, r.Kept)
	}
	lines := []string{
		fmt.Sprintf("%s, %s of %s: weights %s, cache %s, work up to %s", r.Device,
			quantity.Of(r.Slots, "reply"), quantity.Of(r.Length, "token"),
			quantity.Bytes(r.Weights), quantity.Bytes(r.Cache), quantity.Bytes(r.Work)),
		fmt.Sprintf("%s for the adapters of a layout, and those of the cache%s:", quantity.Of(len(r.Programs), "program"),
			kept),
	}
	for _, kind := range []string{engine.PromptProgram, engine.DecodeProgram} {
		var rows, widths, windows []int
		beginning := ""
		for _, p := range r.Programs {
			if p.Kind != kind || p.Prefix > 0 {
				continue
			}
			rows, widths = append(rows, p.Rows), append(widths, p.Width)
			if p.Window == 0 {
				beginning = ", or from the beginning"
			} else {
				windows = append(windows, p.Window)
			}
		}
		if len(rows) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s rows, %s tokens, of windows of %s%s", kind, choices(rows),
				choices(widths), choices(windows), beginning))
		}
	}
	var rows, windows, prefixes, groups []int // of programs whose rows share what they begin with
	for _, p := range r.Programs {
		if p.Prefix > 0 {
			rows, windows = append(rows, p.Rows), append(windows, p.Window)
			prefixes, groups = append(prefixes, p.Prefix), append(groups, p.Groups)
		}
	}
	if len(rows) > 0 {
		lines = append(lines, fmt.Sprintf("decode of shared prompts: %s rows, in %s groups, prompts of %s tokens and "+
			"windows of %s", choices(rows), choices(groups), choices(prefixes), choices(windows)))
	}
	return append(lines, r.Training.lines()...)
}

// choices lists different numbers, ascending.
func choices(list []int) string {
	slices.Sort(list)
	var texts []string
	for _, n := range slices.Compact(list) {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ", ")
}

// gpuReport is the memory of the GPU that --device names, in bytes.
type gpuReport struct {
	Name   string `json:"name,omitempty"`
	Total  int64  `json:"total_bytes,omitempty"`
	Free   int64  `json:"free_bytes,omitempty"`
	Usable int64  `json:"usable_bytes,omitempty"` // that a process which begins now may take
	// Problem says why nothing is known.
	Problem string `json:"problem,omitempty"`
}

// gpuOf describes the GPU of a device of this machine by its name; nil where tensors live in memory of the machine.
func gpuOf(device string) *gpuReport {
	if !graphx.NamedProfile(device).OwnMemory {
		return nil
	}
	named, err := graphx.NamedGPU(device)
	if err != nil {
		return &gpuReport{Problem: err.Error()}
	}
	gpu, err := machine.InspectGPUs(os.DirFS("/")).Device(named.Number, os.Getenv)
	if err != nil {
		return &gpuReport{Problem: err.Error()}
	}
	return &gpuReport{Name: gpu.Name, Total: gpu.Total, Free: gpu.Free, Usable: gpu.Usable(named.Fraction)}
}

// String is the report in text.
func (r gpuReport) String() string {
	if r.Problem != "" {
		return "memory of the GPU unknown: " + r.Problem
	}
	return fmt.Sprintf("%s: memory %s, %s free, of which a process may take %s", r.Name, quantity.Bytes(r.Total),
		quantity.Bytes(r.Free), quantity.Bytes(r.Usable))
}
