package credit_test

import (
	"fmt"

	"github.com/goart-dev/art/grpo/credit"
)

// A group of four answers, of which one is right: its tokens are made likelier, those of the others less likely.
func ExampleAdvantages() {
	advantages, _ := credit.Advantages([]float64{1, 0, 0, 0}, credit.AdvantageConfig{})
	fmt.Printf("%.2f\n", advantages)

	_, reason := credit.Advantages([]float64{1, 1, 1, 1}, credit.AdvantageConfig{})
	fmt.Println("skipped:", reason)
	// Output:
	// [1.73 -0.58 -0.58 -0.58]
	// skipped: no_variance
}
