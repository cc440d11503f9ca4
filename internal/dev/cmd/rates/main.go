// Command rates measures which learning rates suit which base models, for the rule of trainer.DefaultRate.
//
//	go run ./internal/dev/cmd/rates -seeds 3 -out rates.json               # the built-in model, and random ones
//	go run ./internal/dev/cmd/rates -bases FOLDER -rates 1e-4,3e-4,1e-3    # a model of one's own
//
// Each trial trains one base for a few steps at one rate of a ladder. The built-in model, and a folder, learn to say
// yes, no or maybe (internal/dev/learning); a random model of some width learns to prefer one half of the vocabulary,
// which any model can. The table has the mean value over the last third of the steps and over seeds, for each rate, and
// the range of rates whose value is within a tenth of what can be gained of the best one. Trials that are in -out are
// not run again.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
)

func main() {
	var o options
	bases := flag.String("bases", "tiny,64,256", "tiny, widths of random models and folders, with commas between them")
	rates := flag.String("rates", "1e-5,3e-5,1e-4,3e-4,1e-3,3e-3,1e-2,3e-2", "the ladder, with commas between its rungs")
	kinds := flag.String("kinds", "lora,full", "what is trained: lora, dora, full")
	tasks := flag.String("tasks", "reward,examples", "how it is trained: by reward (Train), by examples (TrainSFT)")
	flag.IntVar(&o.seeds, "seeds", 1, "so many seeds, from 1 on")
	flag.IntVar(&o.steps, "steps", 12, "steps of a trial")
	flag.StringVar(&o.out, "out", "rates.json", "file of the trials")
	flag.Parse()
	o.bases, o.kinds, o.tasks = strings.Split(*bases, ","), strings.Split(*kinds, ","), strings.Split(*tasks, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := o.parse(*rates)
	if err == nil {
		err = o.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rates:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	bases, kinds, tasks []string
	rates               []float64
	seeds, steps        int
	out                 string
}

// parse reads the ladder, and checks the names.
func (o *options) parse(rates string) error {
	for _, text := range strings.Split(rates, ",") {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil || !(rate > 0) {
			return fmt.Errorf("-rates: %q is not a rate above 0", text)
		}
		o.rates = append(o.rates, rate)
	}
	if o.seeds < 1 || o.steps < 3 {
		return fmt.Errorf("-seeds %d -steps %d: want at least one seed and three steps", o.seeds, o.steps)
	}
	for _, kind := range o.kinds {
		if _, ok := kindOptions[kind]; !ok {
			return fmt.Errorf("-kinds: %q is not lora, dora or full", kind)
		}
	}
	for _, task := range o.tasks {
		if task != byReward && task != byExamples {
			return fmt.Errorf("-tasks: %q is not %s or %s", task, byReward, byExamples)
		}
	}
	return nil
}

// run makes the trials that are not there yet, and prints the table.
func (o *options) run(ctx context.Context) error {
	done, err := readTrials(o.out)
	if err != nil {
		return err
	}
	for _, t := range o.trials() {
		if _, ok := done.find(t); ok {
			continue
		}
		if err := t.run(ctx); err != nil {
			return fmt.Errorf("%+v: %w", t.key(), err)
		}
		done = append(done, t)
		if err := done.write(o.out); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s %s %s rate %g seed %d: %.3f\n", t.Base, t.Kind, t.Task, t.Rate, t.Seed, t.Value)
	}
	fmt.Print(o.table(done))
	return nil
}

// trials are those of the flags.
func (o *options) trials() (list []trial) {
	for _, base := range o.bases {
		for _, kind := range o.kinds {
			for _, task := range o.tasks {
				for _, rate := range o.rates {
					for seed := 1; seed <= o.seeds; seed++ {
						list = append(list, trial{Base: base, Kind: kind, Task: task, Rate: rate, Seed: uint64(seed), Steps: o.steps})
					}
				}
			}
		}
	}
	return list
}
