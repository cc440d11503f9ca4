package access_test

import (
	"fmt"

	"github.com/goart-dev/art/backend/server/access"
)

// A key that only samples the runs of a project, and what the other keys of its tenant have cost.
func Example() {
	key := access.Key{
		Name: "ci", Key: "a secret", Scopes: []access.Scope{access.Sample}, Projects: []string{"games"},
	}
	report := access.Report{ // as a server counts it
		Usage: access.Usage{SampledTokens: 700_000, Cost: 2.25},
		Keys:  map[string]access.Usage{key.Name: {SampledTokens: 500_000, Cost: 1.5}},
	}
	fmt.Println(report.Cost - report.Keys[key.Name].Cost)
	// Output: 0.75
}
