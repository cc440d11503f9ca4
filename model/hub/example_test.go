package hub_test

import (
	"fmt"

	"github.com/goart-dev/art/model/hub"
)

// A name may fix a branch, a tag or a commit, so that a run stays with the weights that it began with.
func ExampleParseName() {
	name, err := hub.ParseName("Qwen/Qwen3-0.6B@main")
	fmt.Println(name.Repo, name.Revision, err)
	// Output: Qwen/Qwen3-0.6B main <nil>
}
