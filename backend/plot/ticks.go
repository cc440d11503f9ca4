package plot

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
)

// percent marks shares from 0 to 1 as percents.
type percent struct{}

// Ticks implements [plot.Ticker].
func (percent) Ticks(low, high float64) []plot.Tick {
	apart := distance((high - low) * 20)
	var ticks []plot.Tick
	for p := math.Ceil(100*low/apart) * apart; p <= 100*high+1e-9; p += apart {
		ticks = append(ticks, plot.Tick{Value: p / 100, Label: fmt.Sprint(p)})
	}
	return ticks
}

// wholeSteps marks some 5 steps: 0, 50, 100.
type wholeSteps struct{}

// Ticks implements [plot.Ticker].
func (wholeSteps) Ticks(low, high float64) []plot.Tick {
	apart := distance((high - low) / 5)
	var ticks []plot.Tick
	for step := math.Ceil(low/apart) * apart; step <= high; step += apart {
		ticks = append(ticks, plot.Tick{Value: step, Label: fmt.Sprint(step)})
	}
	return ticks
}

// distance is the smallest of 1, 2, 5, 10, 20, 50... that is not below x.
func distance(x float64) float64 {
	for d := 1.0; ; d *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			if digit*d >= x {
				return digit * d
			}
		}
	}
}
