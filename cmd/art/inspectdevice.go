package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/model"
)

// matrixTypes are the types of --weights.
var matrixTypes = map[string]dtypes.DType{
	"float32": dtypes.Float32, "bfloat16": dtypes.BFloat16, "int8": dtypes.Int8,
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
		m := plan.Sampling{
			Config: c, On: profile, Slots: opts.Slots, Context: length, CacheTokens: opts.CacheTokens,
			Matrices: p.matrices, CacheType: p.cacheType,
		}.Memory()
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
	lines := []string{
		fmt.Sprintf("%s, %s of %s: weights %s, cache %s, work up to %s", r.Device,
			quantity.Of(r.Slots, "reply"), quantity.Of(r.Length, "token"),
			sizeText(r.Weights), sizeText(r.Cache), sizeText(r.Work)),
		fmt.Sprintf("%s for the adapters of a layout, and those of the cache%s:", quantity.Of(len(r.Programs), "program"),
			r.kept()),
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
	return slices.Concat(lines, r.shared(), r.Training.lines())
}

// kept says how many programs are kept.
func (r deviceReport) kept() string {
	if r.Kept == 0 {
		return ""
	}
	return fmt.Sprintf("; those of the base model and of %d layouts are kept, at most %d", engine.KeptLayouts, r.Kept)
}

// shared is the line of the programs whose rows share what they begin with.
func (r deviceReport) shared() []string {
	var rows, windows, prefixes, groups []int
	for _, p := range r.Programs {
		if p.Prefix > 0 {
			rows, windows = append(rows, p.Rows), append(windows, p.Window)
			prefixes, groups = append(prefixes, p.Prefix), append(groups, p.Groups)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("decode of shared prompts: %s rows, in %s groups, prompts of %s tokens and windows of %s",
		choices(rows), choices(groups), choices(prefixes), choices(windows))}
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
