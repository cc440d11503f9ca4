package engine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/model"
)

// call is a decoding call after some tokens, whose first shared ones are in blocks from first on, and the others in
// blocks of its own.
func call(number, first, shared, tokens int) decodeCall {
	c := decodeCall{token: int32(number), start: tokens, count: 32}
	for i := range (tokens + 32 + blockTokens - 1) / blockTokens {
		block := int32(1000*(number+1) + i)
		if i < shared/blockTokens {
			block = int32(first + i)
		}
		c.blocks = append(c.blocks, block)
	}
	return c
}

// planOptions are those of a device with loops over rows.
func planOptions(t testing.TB, slots int) Options {
	return Options{
		Device: graphtest.Complete(t), Config: testConfig(), Slots: slots, Context: 2048, FewShapes: true, DecodeSteps: 32,
	}.withDefaults()
}

// TestPlanDecode: rows that share a prompt read it once, of one prompt or of several, in any order; and nothing is
// shared where that would not save a quarter.
func TestPlanDecode(t *testing.T) {
	var eight, groups, several []decodeCall
	for i := range 8 {
		eight = append(eight, call(i, 1, 512, 512+5*i))
	}
	for i := range 60 { // the last four prompts have one row less
		groups = append(groups, call(i, 1+100*(i%8), 480, 500+i))
	}
	for i := range 64 {
		several = append(several, call(i, 1+100*i, 512, 540))
	}
	whole := func(rows, window int) Program {
		return Program{Kind: DecodeProgram, Rows: rows, Width: 32, Window: window}
	}
	shared := func(rows, groups, prefix, window int) Program {
		return Program{Kind: DecodeProgram, Rows: rows, Width: 32, Window: window, Prefix: prefix, Groups: groups}
	}
	for _, c := range []struct {
		name  string
		slots int
		calls []decodeCall
		want  Program
	}{
		{"one prompt", 8, eight, shared(8, 1, 512, 128)},
		{"eight prompts", 64, groups, shared(64, 8, 512, 128)},
		{"no two share", 64, several, whole(64, 1024)},
		{"short prompts", 8, []decodeCall{call(0, 1, 64, 80), call(1, 1, 64, 80)}, whole(8, 128)},
		{"one request", 8, eight[:1], whole(1, 1024)},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(testSeed, 97))
			calls := slices.Clone(c.calls)
			rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
			opts := planOptions(t, c.slots)
			plan := planDecode(opts, calls)
			require.Equal(t, c.want, plan.Program, "seed %d", testSeed)
			require.Len(t, plan.calls, plan.Rows)
			tokens := make([][]Token, plan.Rows)
			for row, call := range plan.calls {
				tokens[row] = []Token{{ID: call.token}}
				common := plan.commonOf(row)
				require.LessOrEqual(t, common, plan.Prefix)
				require.LessOrEqual(t, call.start+call.count-common, plan.Window, "row %d", row)
				if plan.Groups > 0 && call.count > 0 {
					first := plan.calls[row/(plan.Rows/plan.Groups)*(plan.Rows/plan.Groups)]
					require.Equal(t, first.blocks[:common/blockTokens], call.blocks[:common/blockTokens])
					require.LessOrEqual(t, common, call.start, "new tokens are behind it")
				}
			}
			for i, got := range plan.inOrder(tokens)[:len(calls)] {
				require.Equal(t, calls[i].token, got[0].ID)
			}
			base := plan.Program
			base.Cuts = sampling.Cuts{}
			require.Contains(t, Programs(opts), base, "it is listed")
		})
	}
}

// TestDecode_Shared: the replies of a group are the same with a prompt that each row has and with one that is read
// once.
func TestDecode_Shared(t *testing.T) {
	device := graphtest.Complete(t)
	config := *testConfig()
	config.MaxPositions = 640
	w, err := model.Random(&config, 4)
	require.NoError(t, err)
	params, err := w.Params(device)
	require.NoError(t, err)
	ask := func(steps int) ([]*Result, Stats) {
		e, err := New(Options{
			Device: device, Config: &config, Params: params, Slots: 8, FewShapes: true, DecodeSteps: steps,
			unroll: !graphtest.HasLoops(),
		})
		require.NoError(t, err)
		t.Cleanup(e.Close)
		prompt, rng := make([]int32, 9*blockTokens), rand.New(rand.NewPCG(testSeed, 98))
		for i := range prompt {
			prompt[i] = int32(rng.IntN(config.VocabSize))
		}
		var requests []Request
		for i := range 8 {
			requests = append(requests, Request{
				Prompt: append(slices.Clone(prompt), int32(i), int32(2*i)), MaxTokens: 12 + i, Seed: uint64(i),
				Sampling: sampling.Settings{Temperature: 1, TopP: 1},
			})
		}
		all(t, e, []Request{{Prompt: prompt, MaxTokens: 1, Sampling: sampling.Settings{Temperature: 1, TopP: 1}}})
		return all(t, e, requests), e.Stats()
	}
	want, stats := ask(1)
	require.Zero(t, stats.Shared)
	got, stats := ask(4)
	require.Positive(t, stats.Shared)
	likeSteps(t, want, got, 1e-4)
}
