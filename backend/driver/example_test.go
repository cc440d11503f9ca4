package driver_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// printing stores metrics by printing them: that is all that Model.Log needs of a backend.
type printing struct{ art.Backend }

var _ driver.Logger = printing{}

func (printing) Log(
	_ context.Context, m *art.Model, split string, step int, _ []*art.TrajectoryGroup, metrics map[string]float64,
) error {
	fmt.Println(m.Name(), split, step, metrics)
	return nil
}

// A backend of one's own with one of the optional interfaces.
func Example() {
	model := art.NewModel("mine", nil)
	if err := model.Register(context.Background(), printing{&arttest.Backend{}}); err != nil {
		log.Fatal(err)
	}
	if err := model.Log(context.Background(), "val", nil, map[string]float64{"accuracy": 0.5}); err != nil {
		log.Fatal(err)
	}
	// Output: mine val 0 map[val/accuracy:0.5]
}
