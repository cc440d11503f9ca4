package sampling

// Shape legend: W rows, V vocabulary, R blocks of C tokens each that the vocabulary is cut into.

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Sampler draws on the device what [Sample] draws on the host: the same tokens, up to rounding. It computes in float64
// and does not sort: it finds the threshold by bisection over the bits. GoMLX cannot sort inside a loop, and on xla:cpu
// a sort of the vocabulary takes longer than the 31 passes of the search (BenchmarkSampler).
type Sampler struct {
	Uniform     *Node // [W] float64: what [Uniform] returns for the token
	Temperature *Node // [W] float64: 0 is greedy
	TopP        *Node // [W] float64: 1 is off
	TopK        *Node // [W] int32: 0 is off
	// Cuts says which of TopP and TopK a row may use: each takes some 30 passes over [W, V].
	Cuts Cuts
}

// Cuts are the ways in which rows cut the distribution off.
type Cuts struct {
	TopP bool `json:"top_p"`
	TopK bool `json:"top_k"`
}

// minTemperature is the lowest temperature above 0 of a [Sampler]: below, float64 loses precision.
const minTemperature = 1e-300

// Draw builds the draws from logprobs [W, V]: the tokens [W], int32, and their logprobs [W], float32, under the
// reshaped distribution.
func (s Sampler) Draw(logprobs *Node) (ids, sampled *Node) {
	w, v := logprobs.Shape().Dim(0), logprobs.Shape().Dim(1)
	column := func(x *Node) *Node {
		x.AssertDims(w)
		return Reshape(x, w, 1)
	}
	greedy := Equal(column(s.Temperature), ZerosLike(column(s.Temperature)))
	best := ReduceAndKeep(logprobs, ReduceMax, -1)
	likeliest := firstWhere(Equal(logprobs, BroadcastToDims(best, w, v)))

	temperature := Where(greedy, OnesLike(column(s.Temperature)), column(s.Temperature))
	weights := Exp(Div(Sub(float64s(logprobs), float64s(best)), temperature))
	weights = s.truncate(logprobs, weights, column)
	total := ReduceAndKeep(weights, ReduceSum, -1)
	drawn := firstAt(weights, Mul(column(s.Uniform), total), GreaterThan)
	ids = Where(greedy, likeliest, drawn)
	sampled = Log(Div(At(weights, ids), total))
	sampled = Where(greedy, ZerosLike(sampled), sampled)
	return Reshape(ids, w), Reshape(ConvertDType(sampled, dtypes.Float32), w)
}

// truncate sets weights outside of top-k and top-p to zero.
func (s Sampler) truncate(logprobs, weights *Node, column func(*Node) *Node) *Node {
	if s.Cuts == (Cuts{}) {
		return weights
	}
	rank := Bitcast(Abs(logprobs), dtypes.Int32) // logprobs are not positive, so likelier tokens have a smaller rank
	if s.Cuts.TopK {
		k := column(s.TopK)
		kept := shortest(rank, OnesLike(rank), k)
		weights = keep(weights, LessOrEqual(k, ZerosLike(k)), kept)
	}
	if s.Cuts.TopP {
		p := column(s.TopP)
		mass := Mul(p, ReduceAndKeep(weights, ReduceSum, -1))
		kept := shortest(rank, weights, MaxScalar(mass, minTemperature)) // keeps at least the likeliest token
		weights = keep(weights, GreaterOrEqual(p, OnesLike(p)), kept)
	}
	return weights
}

// keep sets weights [W, V] to zero where kept [W, V] is false, except in rows where all [W, 1] is true.
func keep(weights, all, kept *Node) *Node {
	dims := weights.Shape().Dimensions
	return Where(LogicalOr(BroadcastToDims(all, dims...), kept), weights, ZerosLike(weights))
}

// shortest selects in each row the shortest prefix of tokens, in order of rank [W, V] and then of id, whose x [W, V]
// sum to at least target [W, 1]; all tokens where there is none. To count, x is int32, which takes less memory than
// float64.
func shortest(rank, x, target *Node) *Node {
	dims := x.Shape().Dimensions
	sum := func(which *Node) *Node { return ReduceAndKeep(Where(which, x, ZerosLike(x)), ReduceSum, -1) }
	// the lowest rank at which the cumulative x reaches target
	limit := BroadcastToDims(ScalarZero(x.Graph(), dtypes.Int32), dims[0], 1)
	for bit := 30; bit >= 0; bit-- {
		middle := AddScalar(limit, int32(1)<<bit-1)
		short := LessThan(sum(LessOrEqual(rank, BroadcastToDims(middle, dims...))), target)
		limit = Where(short, AddScalar(middle, 1), limit)
	}
	limit = BroadcastToDims(limit, dims...)
	before, tied := LessThan(rank, limit), Equal(rank, limit)
	last := firstAt(float64s(Where(tied, x, ZerosLike(x))), float64s(Sub(target, sum(before))), GreaterOrEqual)
	inTime := LessOrEqual(iota32(x), BroadcastToDims(last, dims...))
	return LogicalOr(before, LogicalAnd(tied, inTime))
}

// blockSize is the number of tokens of a block. The sums have two levels, which are balanced for large vocabularies:
// one of 152,000 tokens has 297 blocks of 512.
const blockSize = 512

// firstAt returns the first index [W, 1] of a positive x [W, V] whose cumulative sum meets target, or the last.
func firstAt(x, target *Node, meets func(sum, target *Node) *Node) *Node {
	w, v := x.Shape().Dim(0), x.Shape().Dim(1)
	c := min(blockSize, v)
	r := (v + c - 1) / c
	x = Pad(x, ScalarZero(x.Graph(), x.DType()), compute.PadAxis{}, compute.PadAxis{End: r*c - v})
	blocks := Reshape(x, w, r, c)
	sums := ReduceSum(blocks, -1)
	block := firstOf(sums, meets(cumulativeSum(sums), target)) // [W, 1]

	number := iota32(sums)
	here := BroadcastToDims(block, w, r)
	before := ReduceAndKeep(Where(LessThan(number, here), sums, ZerosLike(sums)), ReduceSum, -1)
	chosen := BroadcastToDims(Reshape(Equal(number, here), w, r, 1), w, r, c)
	inside := ReduceSum(Where(chosen, blocks, ZerosLike(blocks)), 1) // [W, C]
	return Add(MulScalar(block, c), firstOf(inside, meets(Add(before, cumulativeSum(inside)), target)))
}

// firstOf returns the first index [W, 1] of a positive x [W, N] where met is true, or the last positive one.
func firstOf(x, met *Node) *Node {
	positive := GreaterThan(x, ZerosLike(x))
	first := firstWhere(LogicalAnd(positive, met))
	number := iota32(x)
	last := ReduceAndKeep(Where(positive, number, ZerosLike(number)), ReduceMax, -1)
	return Where(Equal(first, filled(first, x.Shape().Dim(1))), last, first)
}

// firstWhere returns the first index [W, 1] at which mask [W, N] is true, or N when there is none.
func firstWhere(mask *Node) *Node {
	number := iota32(mask)
	return ReduceAndKeep(Where(mask, number, filled(number, mask.Shape().Dim(1))), ReduceMin, -1)
}

// cumulativeSum builds the inclusive cumulative sums of x [W, N].
func cumulativeSum(x *Node) *Node {
	n := x.Shape().Dim(1)
	square := shapes.Make(dtypes.Int32, n, n)
	upTo := LessOrEqual(Iota(x.Graph(), square, 0), Iota(x.Graph(), square, 1))
	return Dot(x, ConvertDType(upTo, x.DType())).Product()
}

// At returns the elements [W, 1] of x [W, N] at index [W, 1].
func At(x, index *Node) *Node {
	chosen := Equal(iota32(x), BroadcastToDims(index, x.Shape().Dimensions...))
	return ReduceAndKeep(Where(chosen, x, ZerosLike(x)), ReduceSum, -1)
}

// iota32 numbers the columns of a matrix [W, N]. One row is computed, and repeated: a device keeps what depends on no
// input for as long as it keeps the graph.
func iota32(like *Node) *Node {
	w, n := like.Shape().Dim(0), like.Shape().Dim(1)
	return BroadcastToDims(Iota(like.Graph(), shapes.Make(dtypes.Int32, 1, n), 1), w, n)
}

func filled(like *Node, n int) *Node { return FillScalar(like.Graph(), like.Shape(), float64(n)) }

func float64s(x *Node) *Node { return ConvertDType(x, dtypes.Float64) }

// Inputs returns the settings of rows as the inputs of a [Sampler]. A row that draws nothing has zero
// Settings.
func Inputs(rows []Settings) (temperature, topP []float64, topK []int32, cuts Cuts) {
	for _, s := range rows {
		if s.Temperature > 0 {
			s.Temperature = math.Max(s.Temperature, minTemperature)
			cuts.TopK, cuts.TopP = cuts.TopK || s.TopK > 0, cuts.TopP || s.TopP < 1
		}
		temperature, topP = append(temperature, s.Temperature), append(topP, s.TopP)
		topK = append(topK, int32(min(s.TopK, math.MaxInt32)))
	}
	return temperature, topP, topK, cuts
}
