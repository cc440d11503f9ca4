package access_test

import (
	"fmt"
	"net/http"

	"github.com/goart-dev/art/backend/server/access"
)

// A key that only samples, and what it used.
func Example() {
	registry, err := access.NewRegistry([]access.Tenant{{
		Name: "ann", Keys: []string{"secret"}, Prices: access.Prices{Sampled: 3},
		Scoped: []access.Key{{Name: "ci", Key: "other secret", Scopes: []access.Scope{access.Sample}}},
	}})
	if err != nil {
		panic(err)
	}
	request, err := http.NewRequest(http.MethodPost, "http://localhost/api/v1/forward", http.NoBody)
	if err != nil {
		panic(err)
	}
	request.Header.Set("X-Api-Key", "other secret")
	caller := registry.Caller(request)
	fmt.Println(caller.Needs("POST /api/v1/asample", access.Sample))
	fmt.Println(caller.Needs("POST /api/v1/forward", access.Train))
	registry.Charge(caller.Tenant, caller.Key(), access.Usage{SampledTokens: 500_000})
	fmt.Println(registry.Usage()["ann"].Keys["ci"].Cost)
	// Output:
	// <nil>
	// the key "ci" of "ann" has the scopes ["sample"]; POST /api/v1/forward needs "train"
	// 1.5
}
