package main

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// loraFlags are the flags of an adapter. Zero values are the defaults of [art.LoRA].
type loraFlags struct {
	lora    art.LoRA
	targets string
}

// define adds the flags. ranks says which rank 0 is.
func (l *loraFlags) define(flags *flag.FlagSet, ranks string) {
	flags.IntVar(&l.lora.Rank, "rank", 0, "rank of the adapter; 0 is "+ranks)
	flags.StringVar(&l.targets, "targets", "",
		"`layers` of the adapter by the last part of their names, a comma-separated list")
	flags.StringVar(&l.lora.TargetPattern, "target-pattern", "",
		"`regexp` of Python for full names of layers, in place of --targets")
	flags.Var(layerNumbers[int]{&l.lora.Ranks, strconv.Atoi}, "rank-of",
		"`LAYER=RANK` by the end of names, or a regexp; may be given again")
	flags.BoolVar(&l.lora.DoRA, "dora", false, "an adapter with magnitudes: DoRA")
}

// chosen returns the adapter of the flags.
func (l *loraFlags) chosen() art.LoRA {
	l.lora.Targets = splitList(l.targets)
	return l.lora
}

// empty reports whether no flag was given.
func (l *loraFlags) empty() bool {
	c := l.lora
	return c.Rank == 0 && c.Alpha == 0 && l.targets == "" && c.TargetPattern == "" && !c.RankStabilized && !c.DoRA &&
		len(c.Ranks)+len(c.Alphas) == 0
}

// layerNumbers is the value of a flag that is given once for each pattern.
type layerNumbers[T any] struct {
	list  *map[string]T
	parse func(string) (T, error)
}

// String implements flag.Value.
func (n layerNumbers[T]) String() string {
	if n.list == nil {
		return ""
	}
	var parts []string
	for _, pattern := range sortedKeys(*n.list) {
		parts = append(parts, fmt.Sprintf("%s=%v", pattern, (*n.list)[pattern]))
	}
	return strings.Join(parts, " ")
}

// Set implements flag.Value. The number stands behind the last equals sign: a regexp may have others.
func (n layerNumbers[T]) Set(text string) error {
	i := strings.LastIndexByte(text, '=')
	if i < 1 {
		return fmt.Errorf("want LAYER=NUMBER, such as down_proj=16")
	}
	pattern, number := text[:i], text[i+1:]
	value, err := n.parse(number)
	if err != nil {
		return fmt.Errorf("%q is not a number; want LAYER=NUMBER, such as down_proj=16", number)
	}
	if _, ok := (*n.list)[pattern]; ok {
		return fmt.Errorf("%q is given twice", pattern)
	}
	if *n.list == nil {
		*n.list = map[string]T{}
	}
	(*n.list)[pattern] = value
	return nil
}

// trainedFlags say what is trained of a model: an adapter, a new one or one to begin with, or all weights.
type trainedFlags struct {
	loraFlags
	full          bool
	adapter, fork string
}

// trainedHelp is the part of the help of a verb that has these flags.
const trainedHelp = `
What is trained is an adapter of --rank on the linear layers, or on those of --targets or
--target-pattern, which embed_tokens and lm_head may be among; --dora trains magnitudes beside it.
--adapter and --fork begin with one that is there. --full trains all weights instead: each step is
then a whole model on the disk. docs/tuning.md says when to take which, and art model inspect what
memory each needs. A run goes on with the flags that it began with.`

// define adds the flags.
func (t *trainedFlags) define(flags *flag.FlagSet) {
	t.loraFlags.define(flags, "8")
	// What the adapter is multiplied by does not change the memory that it needs, so art model inspect lacks these.
	parse := func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
	flags.Float64Var(&t.lora.Alpha, "alpha", 0, "alpha of the adapter; 0 is twice the rank")
	flags.Var(layerNumbers[float64]{&t.lora.Alphas, parse}, "alpha-of", "`LAYER=ALPHA`, as --rank-of")
	flags.BoolVar(&t.lora.RankStabilized, "rslora", false, "divide alpha by the root of the rank: rsLoRA")
	flags.BoolVar(&t.full, "full", false, "train all weights, in place of an adapter")
	flags.StringVar(&t.adapter, "adapter", "", "`folder` of an adapter that a new run begins with, as PEFT writes it")
	flags.StringVar(&t.fork, "fork", "", "[PROJECT/]NAME[@STEP|@best]: the `step` of a run that a new run begins with")
}

// set writes the flags into the options of a model.
func (t *trainedFlags) set(o *art.ModelOptions) error {
	starts := map[string]bool{"--full": t.full, "--adapter": t.adapter != "", "--fork": t.fork != ""}
	given := slices.DeleteFunc(sortedKeys(starts), func(name string) bool { return !starts[name] })
	switch {
	case len(given) > 1:
		return badUsage("%s: each says what is trained; give one", strings.Join(given, " and "))
	case len(given) == 1 && !t.empty():
		return badUsage("%s says what is trained: leave the flags of a new adapter out (--rank, --alpha, --targets, "+
			"--target-pattern, --rank-of, --alpha-of, --rslora, --dora)", given[0])
	}
	o.LoRA, o.Full, o.Adapter, o.Fork = t.chosen(), t.full, t.adapter, t.fork
	return nil
}
