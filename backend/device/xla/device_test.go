//go:build cgo

package xla_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/backend/device/xla"
	"github.com/goart-dev/art/internal/graphx"
)

// required is the environment variable that makes tests fail which need a plug-in and find none.
const required = "ART_REQUIRE_XLA"

// configs are the two kinds of devices: those whose buffers the host can access, as on CPUs, and those that copy them,
// as GPUs do.
var configs = []string{"cpu", "cpu,noshared_buffers"}

var opened = map[string]func() (compute.Backend, error){
	configs[0]: sync.OnceValues(func() (compute.Backend, error) { return xla.New(configs[0]) }),
	configs[1]: sync.OnceValues(func() (compute.Backend, error) { return xla.New(configs[1]) }),
}

// device returns the XLA device of one of configs, one for all tests. Without a plug-in it ends the test.
func device(t testing.TB, config string) compute.Backend {
	t.Helper()
	d, err := opened[config]()
	if err != nil {
		if os.Getenv(required) != "" {
			t.Fatalf("%s is set: %v", required, err)
		}
		t.Skipf("NOT TESTED ON XLA: %v", err)
	}
	return d
}

// TestNew_AnyName: a plug-in whose file has another name opens, though it refuses what is said to GPUs.
func TestNew_AnyName(t *testing.T) {
	device(t, "cpu")
	list := xla.Plugins()
	at := slices.IndexFunc(list, func(p xla.Plugin) bool { return p.Device == "xla:cpu" })
	path := filepath.Join(t.TempDir(), "accelerator.so")
	require.NoError(t, os.Symlink(list[at].Path, path))
	d, err := xla.New(path)
	require.NoError(t, err)
	d.Finalize()
	_, err = xla.New(path + ",preallocate=true")
	require.ErrorContains(t, err, "preallocate")
}

// TestNew_EachName: the names that go-xla registers open this package's device, with donation and the profile of XLA.
func TestNew_EachName(t *testing.T) {
	device(t, "cpu")
	for _, name := range []string{"xla:cpu", "stablehlo:cpu", "hlo:cpu", "shlo:cpu,device=0"} {
		d, err := compute.NewWithConfig(name)
		require.NoError(t, err)
		require.Equal(t, graphx.NamedProfile("xla:cpu"), graphx.ProfileOf(d), name)
		d.Finalize()
	}
}
