package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/dev/bench/trainbench"
	"github.com/goart-dev/art/internal/quantity"
)

// trainBench are the flags of bench train.
type trainBench struct {
	trainbench.Config
	json *bool
}

// define adds the flags. json is shared with the other benchmarks.
func (b *trainBench) define(flags *flag.FlagSet, json *bool) {
	b.json = json
	names := strings.Join(trainbench.Shapes(), ", ")
	flags.StringVar(&b.Shape, "shape", "small", "train: `name` of a model's shape: "+names)
	flags.IntVar(&b.Groups, "groups", 1, "train: `number` of groups in a step")
	flags.IntVar(&b.Size, "group-size", 8, "train: `number` of answers in a group")
	flags.IntVar(&b.Prompt, "shared-prompt", 384, "train: `tokens` that the answers of a group share")
	flags.IntVar(&b.Answer, "answer", 128, "train: `tokens` of an answer")
	flags.BoolVar(&b.Conversation, "conversation", false, "train: the answers of a group are turns of a conversation")
	flags.IntVar(&b.Rank, "rank", 8, "train: `rank` of the adapter")
	flags.BoolVar(&b.Recompute, "recompute", false, "train: compute layers again for their gradient")
	flags.IntVar(&b.Runs, "pairs", 3, "train: `number` of pairs of steps")
	flags.BoolVar(&b.Cold, "cold", false, "train: count the first steps too, which compile: for steps of minutes")
	flags.BoolVar(&b.OnlyShared, "only-shared", false, "train: do not measure sequences one by one")
}

// bench measures steps with shared prompts, and with each sequence alone.
func (b *trainBench) bench(stdout io.Writer, p progress) error {
	device, err := cpu.New(nil)
	if err != nil {
		return err
	}
	defer device.Finalize()
	p.say("training")
	r, err := trainbench.Measure(context.Background(), device, b.Config)
	p.say("")
	if err != nil {
		return badUsage("%v", err)
	}
	if *b.json {
		return writeJSON(stdout, struct {
			Machine platform           `json:"machine"`
			Train   *trainbench.Result `json:"train"`
		}{inspectPlatform(os.DirFS("/")), r})
	}
	head := fmt.Sprintf("%s, %s\n%-8s %10s %10s %12s\n", r.Name, quantity.Of(r.Tokens, "token"), "", "step", "computed",
		"tokens/s")
	work := fmt.Sprintf("intermediate results took %s\n", sizeText(r.WorkBytes))
	if b.OnlyShared {
		return write(stdout, head+side("shared", r.Shared)+work)
	}
	ratio := fmt.Sprintf("shared prompts are %.2f times as fast, %.2f in processor time, of %.2f\n",
		r.Speedup, r.CPUSpeedup, r.Ideal)
	return write(stdout, head+side("shared", r.Shared)+side("alone", r.Alone)+ratio+work)
}

// side is a row of the table.
func side(name string, s trainbench.Side) string {
	return fmt.Sprintf("%-8s %8.3f s %10d %12.0f\n", name, s.Median, s.Computed, s.Rate)
}
