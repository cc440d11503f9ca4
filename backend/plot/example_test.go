package plot_test

import (
	"bytes"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/plot"
)

// The curve of a metric in the history of a run.
func ExampleWrite() {
	rows := []art.HistoryRow{
		{Split: "train", Step: 0, Metrics: map[string]float64{"train/reward": 0.25}},
		{Split: "train", Step: 1, Metrics: map[string]float64{"train/reward": 0.5}},
	}
	points := plot.History(rows, "train/reward")
	chart := plot.Chart{Title: "Tic-tac-toe", Y: "reward", Series: []plot.Series{{Name: "training", Points: points}}}
	var file bytes.Buffer
	err := plot.Write(&file, "svg", &chart)
	fmt.Println(len(points), points[1].Value, bytes.Contains(file.Bytes(), []byte("<svg")), err)
	// Output: 2 0.5 true <nil>
}
