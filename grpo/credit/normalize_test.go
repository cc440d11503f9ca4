package credit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomSequence returns a sequence of n tokens with at least one trained.
func randomSequence(src *rand.Rand, n, trajectory int) Sequence {
	s := Sequence{
		IDs: make([]int32, n), Trained: make([]bool, n), Logprobs: make([]float32, n),
		Advantage: src.NormFloat64(), Weight: src.Float64(), Trajectory: trajectory,
	}
	for i := range n {
		s.IDs[i] = int32(1 + src.IntN(1000))
		s.Logprobs[i] = float32(math.NaN()) // not read where not trained
		if i > 0 && src.IntN(2) == 0 {
			s.Trained[i] = true
		}
	}
	s.Trained[1+src.IntN(n-1)] = true
	for i, trained := range s.Trained {
		if trained {
			s.Logprobs[i] = -float32(src.ExpFloat64())
		}
	}
	return s
}

// randomBatch returns sequences of up to length tokens, some trajectories with two histories.
func randomBatch(src *rand.Rand, count, length int) []Sequence {
	seqs := make([]Sequence, count)
	for i := range seqs {
		seqs[i] = randomSequence(src, 2+src.IntN(length-1), src.IntN(count/2+1))
	}
	return seqs
}

func TestNormalize_Values(t *testing.T) {
	logprobs := []float32{0, -1, -1, -1, -1}
	seqs := []Sequence{
		{IDs: []int32{1, 2, 3, 4, 5}, Trained: []bool{false, true, true, true, true}, Logprobs: logprobs, Advantage: 2, Trajectory: 7},
		{IDs: []int32{1, 2, 3, 4, 5}, Trained: []bool{false, false, true, true, false}, Logprobs: logprobs, Advantage: 2, Trajectory: 7},
		{IDs: []int32{1, 2, 3, 4, 5}, Trained: []bool{false, false, false, true, true}, Logprobs: logprobs, Advantage: -4, Trajectory: 9},
	}
	// Trajectory 7 has 6 trained tokens, 9 has 2; w = 1/6 and 1/2, their mean over 8 tokens is 2/8.
	kept, err := Normalize(seqs, NormalizeConfig{Advantages: new(false)})
	wantOK(t, err)
	for i, want := range []float64{4.0 / 6, 4.0 / 6, 4.0 / 2} {
		wantNear(t, want, kept[i].Weight, 1e-15)
		wantEqual(t, seqs[i].Advantage, kept[i].Advantage)
	}
	// mean(|A|·w) = mean over trajectories of |A| = 3.
	scaled, err := Normalize(seqs, NormalizeConfig{})
	wantOK(t, err)
	for i, want := range []float64{2.0 / 3, 2.0 / 3, -4.0 / 3} {
		wantNear(t, want, scaled[i].Advantage, 1e-15)
		wantEqual(t, kept[i].Weight, scaled[i].Weight)
		expect(t, seqs[i].Weight == 0, "the input was modified")
	}
}

// TestNormalize_Weightings holds numbers that were computed by hand.
func TestNormalize_Weightings(t *testing.T) {
	logprobs := []float32{0, -1, -1, -1}
	seqs := []Sequence{ // 3 trained tokens, and 1
		{IDs: []int32{1, 2, 3, 4}, Trained: []bool{false, true, true, true}, Logprobs: logprobs, Advantage: 1, Trajectory: 0},
		{IDs: []int32{1, 2, 3, 4}, Trained: []bool{false, true, false, false}, Logprobs: logprobs, Advantage: -2, Trajectory: 1},
	}
	for _, c := range []struct {
		cfg        NormalizeConfig
		weights    []float64
		advantages []float64
	}{
		{NormalizeConfig{Weighting: WeightToken}, []float64{1, 1}, []float64{1 / 1.25, -2 / 1.25}},
		{NormalizeConfig{Weighting: WeightConstant}, []float64{4. / 6, 4. / 6}, []float64{1.2, -2.4}},
		{NormalizeConfig{Weighting: WeightConstant, Length: 8, Advantages: new(false)}, []float64{0.25, 0.25}, []float64{1, -2}},
		{NormalizeConfig{Balance: 0.5, Advantages: new(false)}, []float64{4. / 6, 2}, []float64{1, -1}},
		{NormalizeConfig{Balance: 1}, []float64{4. / 6, 2}, []float64{2, 0}},
		{NormalizeConfig{Balance: -0.25, Advantages: new(false)}, []float64{4. / 6, 2}, []float64{0.75, -2}},
	} {
		got, err := Normalize(seqs, c.cfg)
		wantOK(t, err)
		for i := range got {
			wantNear(t, c.weights[i], got[i].Weight, 1e-12, "%+v", c.cfg)
			wantNear(t, c.advantages[i], got[i].Advantage, 1e-12, "%+v", c.cfg)
		}
	}
	_, err := Normalize(seqs, NormalizeConfig{Weighting: "x", Length: 3, Balance: math.NaN()})
	for _, want := range []string{`"x"`, "length is 3", "balance is NaN"} {
		wantErr(t, err, want)
	}
}

func TestNormalize_Properties(t *testing.T) {
	src := rand.New(rand.NewPCG(4, 4))
	for range 50 {
		seqs := randomBatch(src, 1+src.IntN(8), 20)
		got, err := Normalize(seqs, NormalizeConfig{})
		wantOK(t, err)
		tokens := float64(NumTrained(seqs))
		sums := map[int]float64{}
		var weights, sizes float64
		for _, s := range got {
			n := float64(s.NumTrained())
			weights += s.Weight * n
			sizes += math.Abs(s.Advantage) * s.Weight * n
			sums[s.Trajectory] += s.Weight * n
		}
		wantClose(t, tokens, weights, 1e-12)
		wantClose(t, tokens, sizes, 1e-12)
		for trajectory, sum := range sums {
			wantClose(t, tokens/float64(len(sums)), sum, 1e-12, "trajectory %d does not count once", trajectory)
		}

		bigger := slices.Clone(seqs)
		for i := range bigger {
			bigger[i].Advantage *= 1000
		}
		again, err := Normalize(bigger, NormalizeConfig{})
		wantOK(t, err)
		for i := range got {
			wantClose(t, got[i].Advantage, again[i].Advantage, 1e-12, "the size of rewards matters")
		}
	}
}

func TestNormalize_ZeroAdvantagesStay(t *testing.T) {
	seqs := randomBatch(rand.New(rand.NewPCG(5, 5)), 3, 10)
	for i := range seqs {
		seqs[i].Advantage = 0
	}
	got, err := Normalize(seqs, NormalizeConfig{})
	wantOK(t, err)
	for _, s := range got {
		expect(t, s.Advantage == 0)
		expect(t, s.Weight > 0)
	}
	empty, err := Normalize(nil, NormalizeConfig{})
	wantOK(t, err)
	expect(t, len(empty) == 0)
}

// TestNormalize_AnySize: advantages of the largest and the smallest size come out as others do. The sum of the first
// overflowed and the inverse of the second's mean did, and both stayed as they were: Inf and 0 in float32.
func TestNormalize_AnySize(t *testing.T) {
	src := rand.New(rand.NewPCG(6, 6))
	seqs := randomBatch(src, 6, 20)
	for i := range seqs {
		seqs[i].Advantage = []float64{0.5, -0.75, 0.25}[i%3]
	}
	want, err := Normalize(seqs, NormalizeConfig{})
	wantOK(t, err)
	for _, exponent := range []int{1024, 400, 1, -1, -400, -1072} {
		sized := slices.Clone(seqs)
		for i := range sized {
			sized[i].Advantage = math.Ldexp(sized[i].Advantage, exponent)
		}
		got, err := Normalize(sized, NormalizeConfig{})
		wantOK(t, err)
		for i := range want {
			wantEqual(t, want[i].Advantage, got[i].Advantage, "2^%d", exponent)
		}
	}
}

// TestNormalize_BeyondFloat32: what would be infinite in the loss is refused.
func TestNormalize_BeyondFloat32(t *testing.T) {
	seqs := randomBatch(rand.New(rand.NewPCG(7, 7)), 3, 10)
	seqs[2].Advantage = -1e39
	_, err := Normalize(seqs, NormalizeConfig{Advantages: new(false)})
	wantErr(t, err, "sequence 2 has advantage -1e+39, beyond float32: make rewards smaller")
	_, err = Normalize(seqs, NormalizeConfig{})
	wantOK(t, err)
}

func TestSequence_Validate(t *testing.T) {
	good := func() Sequence {
		return Sequence{IDs: []int32{1, 2, 3}, Trained: []bool{false, true, false}, Logprobs: []float32{0, -1, 0}, Weight: 1}
	}
	s := good()
	wantOK(t, s.Validate())
	for want, corrupt := range map[string]func(s *Sequence){
		"3 ids, 2 trained marks":       func(s *Sequence) { s.Trained = s.Trained[:2] },
		"4 logprobs":                   func(s *Sequence) { s.Logprobs = make([]float32, 4) },
		"3 ids and 2 staleness values": func(s *Sequence) { s.Staleness = make([]int, 2) },
		"no trained token":             func(s *Sequence) { s.Trained[1] = false },
		"trains its first token":       func(s *Sequence) { s.Trained[0] = true },
		"advantage NaN":                func(s *Sequence) { s.Advantage = math.NaN() },
		"advantage +Inf":               func(s *Sequence) { s.Advantage = math.Inf(1) },
		"weight -1":                    func(s *Sequence) { s.Weight = -1 },
		"trajectory index -1":          func(s *Sequence) { s.Trajectory = -1 },
		"id -5 at 2":                   func(s *Sequence) { s.IDs[2] = -5 },
		"logprob NaN at trained":       func(s *Sequence) { s.Logprobs[1] = float32(math.NaN()) },
		"logprob -Inf at trained":      func(s *Sequence) { s.Logprobs[1] = float32(math.Inf(-1)) },
		"logprob 0.5 at trained":       func(s *Sequence) { s.Logprobs[1] = 0.5 },
	} {
		s := good()
		corrupt(&s)
		wantErr(t, s.Validate(), want)
		_, err := Normalize([]Sequence{good(), s}, NormalizeConfig{})
		if want != "weight -1" { // set by Normalize
			wantErr(t, err, "sequence 1: ")
		}
	}
	s = good()
	s.Advantage, s.IDs[0], s.Trajectory = math.NaN(), -1, -1
	err := s.Validate()
	for _, want := range []string{"advantage", "id -1", "trajectory"} {
		wantErr(t, err, want, "not all problems are listed")
	}
	s = good()
	s.Logprobs[1] = 1e-6 // rounding of a log-softmax
	wantOK(t, s.Validate())
}
