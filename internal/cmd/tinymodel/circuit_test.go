package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestOrthonormal(t *testing.T) {
	rows := orthonormal(rand.New(rand.NewPCG(1, 2)), 32)
	for i := range rows {
		for j := range rows {
			sum, want := 0.0, 0.0
			for k := range rows[i] {
				sum += float64(rows[i][k]) * float64(rows[j][k])
			}
			if i == j {
				want = 1
			}
			if math.Abs(sum-want) > 1e-5 {
				t.Fatalf("rows %d and %d have the product %g", i, j, sum)
			}
		}
	}
}
