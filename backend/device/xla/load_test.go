//go:build cgo

package xla

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNew_NoPlugin: the error says what to install and how to point to it.
func TestNew_NoPlugin(t *testing.T) {
	machine(t)
	for _, name := range []string{"", "cpu", "cpu,tf32", "cuda"} {
		_, err := New(name)
		require.ErrorIs(t, err, ErrNoPlugin)
		for _, want := range []string{"there is none", "pip install", "PJRT_PLUGIN_LIBRARY_PATH", "xla:/path/to/plugin.so"} {
			require.ErrorContains(t, err, want)
		}
	}
	_, err := New("tpu")
	require.ErrorContains(t, err, "install one")
	_, err = New("/no/such/file.so")
	require.ErrorIs(t, err, ErrNoPlugin)
	require.ErrorContains(t, err, "/no/such/file.so")
	require.Empty(t, Plugins())
}

// TestNew_NotALibrary: a file that cannot be loaded is an error, and is listed with it.
func TestNew_NotALibrary(t *testing.T) {
	path := machine(t) + "/.local/lib/go-xla/pjrt_c_api_cpu_plugin.so"
	touch(t, path, path+"2")
	_, err := New("cpu")
	require.ErrorContains(t, err, path+" is not a PJRT plug-in that can be loaded here")
	require.ErrorContains(t, err, `run "pip install --upgrade lammps-jax-pjrt-cpu"`)
	list := Plugins()
	require.Len(t, list, 1)
	require.Equal(t, "xla:cpu", list[0].Device)
	require.Error(t, list[0].Err)
	require.Empty(t, list[0].API)
}

type version [2]int

func (v version) Version() (major, minor int) { return v[0], v[1] }

func TestCheckVersion(t *testing.T) {
	for _, good := range []version{{0, oldest}, {0, 116}} {
		require.NoError(t, checkVersion(file{"cpu", "/a.so"}, good))
	}
	for _, bad := range []version{{0, oldest - 1}, {0, 0}, {1, 0}} {
		err := checkVersion(file{"cuda", "/a.so"}, bad)
		require.ErrorIs(t, err, ErrVersion)
		require.ErrorContains(t, err, `/a.so has version`)
		require.ErrorContains(t, err, `pip install --upgrade \"jax[cuda13]\"`)
	}
}

// TestPointToCUDA: NVIDIA's files next to the plug-in are announced once, and not when the user has done it.
func TestPointToCUDA(t *testing.T) {
	home := machine(t)
	packages := home + "/lib/python3.12/site-packages"
	thirteen, twelve := packages+"/jax_plugins/xla_cuda13/xla_cuda_plugin.so",
		home+"/p/jax_plugins/xla_cuda12/xla_cuda_plugin.so"
	own, none := home+"/go-xla/nvidia/pjrt_c_api_cuda_plugin.so", home+"/q/r/s/xla_cuda_plugin.so"
	touch(t, thirteen, twelve, own, none, packages+"/nvidia/cu13/nvvm/libdevice", packages+"/nvidia/cudnn/lib/x",
		home+"/p/nvidia/cuda_nvcc/nvvm/libdevice", home+"/go-xla/nvidia/cuda_nvcc/nvvm/libdevice")
	for path, want := range map[string]string{
		thirteen: packages + "/nvidia/cu13", twelve: home + "/p/nvidia/cuda_nvcc", own: home + "/go-xla/nvidia", none: "",
	} {
		require.Equal(t, want, cudaFolder(path))
	}
	t.Setenv(cudaChecks, "1")
	t.Setenv(xlaFlags, "--xla_dump_to=/x")
	for range 2 {
		require.NoError(t, pointToCUDA(thirteen))
		require.Equal(t, "--xla_dump_to=/x --xla_gpu_cuda_data_dir="+packages+"/nvidia/cu13", os.Getenv(xlaFlags))
	}
	t.Setenv(xlaFlags, "--xla_gpu_cuda_data_dir=/mine")
	require.NoError(t, pointToCUDA(thirteen))
	require.Equal(t, "--xla_gpu_cuda_data_dir=/mine", os.Getenv(xlaFlags))
	require.Equal(t, "1", os.Getenv(cudaChecks))
}
