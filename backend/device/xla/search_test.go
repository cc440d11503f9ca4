//go:build cgo

package xla

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine makes the environment that of an empty home, and returns the home.
func machine(t *testing.T) string {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "PATH"} {
		t.Setenv(name, "")
	}
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "") // so that it is restored
	require.NoError(t, os.Unsetenv("PJRT_PLUGIN_LIBRARY_PATH"))
	if found := search(); len(found) > 0 {
		t.Skipf("this machine has plug-ins in folders of the system: %v", found)
	}
	return home
}

// touch makes files that are named like plug-ins.
func touch(t *testing.T, paths ...string) {
	for _, path := range paths {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("not a library: "+path), 0o644))
	}
}

func TestNameOf(t *testing.T) {
	for path, want := range map[string]string{
		"/a/pjrt_c_api_cpu_plugin.so":         "cpu",
		"/a/pjrt_c_api_cpu_v0.83.1_plugin.so": "cpu",
		"/a/pjrt_c_api_cuda_plugin.dylib":     "cuda",
		"/a/pjrt-plugin-tpu.so":               "tpu",
		"/a/pjrt_plugin_rocm.so":              "rocm",
		"/cuda/xla_cuda_plugin.so":            "cuda",
		"/a/xla_cuda13_plugin.so":             "cuda",
		"/a/xla_cpu_pjrt.so":                  "cpu",
		"/a/xla_cpu_pjrt.so.txt":              "",
		"/a/libxla_cpu_pjrt.so":               "",
		"/a/pjrt_c_api.h":                     "",
		"":                                    "",
	} {
		require.Equal(t, want, nameOf(path), path)
	}
}

// TestSearch_Places: each folder is searched, in order, and a file that two paths lead to is listed once.
func TestSearch_Places(t *testing.T) {
	home := machine(t)
	venv, conda, odd := filepath.Join(home, "venv"), filepath.Join(home, "conda"), filepath.Join(home, "od[d]*?")
	wants := []file{
		{"cpu", home + "/.local/lib/go-xla/pjrt_c_api_cpu_plugin.so"},
		{"cuda", home + "/.local/lib/go-xla/nvidia/pjrt_c_api_cuda_plugin.so"},
		{"tpu", odd + "/pjrt-plugin-tpu.so"},
		{"cuda", venv + "/lib/python3.11/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so"},
		{"cpu", venv + "/lib/python3.11/site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
		{"cpu", conda + "/lib/python3.13/site-packages/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"},
		{"rocm", home + "/.local/lib/python3.12/site-packages/jax_plugins/xla_rocm7/xla_rocm_plugin.so"},
	}
	for _, f := range wants {
		touch(t, f.path)
	}
	touch(t, odd+"/libc.so", venv+"/lib/python3.11/site-packages/torch/lib/libtorch.so", venv+"/bin/python3")
	require.NoError(t, os.Symlink(venv+"/lib", venv+"/lib64"))
	t.Setenv("LD_LIBRARY_PATH", "relative:"+odd)
	t.Setenv("VIRTUAL_ENV", venv)
	t.Setenv("CONDA_PREFIX", conda)
	t.Setenv("PATH", home+"/nowhere:"+venv+"/bin")
	require.Equal(t, wants, search())
	t.Setenv("VIRTUAL_ENV", "")
	require.ElementsMatch(t, wants, search(), "the python3 in PATH is enough")

	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", odd+":"+home+"/nowhere")
	require.Equal(t, wants[2:3], search(), "the variable replaces all other folders")
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "")
	require.Empty(t, search())
}

// TestResolve_Names: a name is the first plug-in of that name, a path is itself.
func TestResolve_Names(t *testing.T) {
	home := machine(t)
	first := home + "/.local/lib/go-xla/pjrt_c_api_cpu_plugin.so"
	touch(t, first, home+"/.local/lib/gomlx/pjrt/pjrt_c_api_cpu_plugin.so")
	for name, want := range map[string]file{
		"cpu":                   {"cpu", first},
		"/x/xla_cuda_plugin.so": {"cuda", "/x/xla_cuda_plugin.so"},
		"/x/mine.so":            {"", "/x/mine.so"},
	} {
		f, err := resolve(name)
		require.NoError(t, err)
		require.Equal(t, want, f)
	}
	if !hasNVIDIA() {
		f, err := resolve("")
		require.NoError(t, err)
		require.Equal(t, first, f.path)
	}
	_, err := resolve("cuda")
	require.ErrorIs(t, err, ErrNoPlugin)
	require.ErrorContains(t, err, `"xla:cuda"; there are xla:cpu.`)
	require.ErrorContains(t, err, `pip install \"jax[cuda13]\"`)
}

// TestConfig: what go-xla would guess from the path is said, whatever that is: whether buffers are shared, and where
// there may be a GPU that no memory is allocated up front. There float32 is float32. Options may say else.
func TestConfig(t *testing.T) {
	gpu, cpu := file{"cuda", "/cpu/xla_cuda_plugin.so"}, file{"cpu", "/a.so"}
	require.Equal(t, gpu.path+",shared_buffers=false,tf32=false,preallocate=false", gpu.config(""))
	require.Equal(t, gpu.path+",shared_buffers=false,preallocate=false,tf32", gpu.config("tf32"))
	require.Equal(t, gpu.path+",tf32=false,preallocate=false,noshared_buffers", gpu.config("noshared_buffers"))
	require.Equal(t, gpu.path+",shared_buffers=false,tf32=false,preallocate=true", gpu.config("preallocate=true"))
	require.Equal(t, gpu.path+",shared_buffers=false,tf32=false,nopreallocate", gpu.config("nopreallocate"))
	require.Equal(t, cpu.path+",shared_buffers=true", cpu.config(""))
	require.Equal(t, cpu.path+",noshared_buffers", cpu.config("noshared_buffers"))
	for _, path := range []string{"/a.so", "/nvidia/cuda.so"} {
		for _, name := range []string{"", "cuda13", "cuda"} {
			require.Contains(t, file{name, path}.config("memory_fraction=0.5"), ",preallocate=false,memory_fraction=0.5")
		}
	}
}

// TestCutOptions: the options of this package are not passed on, and a value that one cannot have is an error.
func TestCutOptions(t *testing.T) {
	for in, want := range map[string]struct {
		rest string
		own  options
	}{
		"":                               {"", options{flash: true}},
		"tf32=true":                      {"tf32=true", options{flash: true}},
		"flash_attention=false":          {"", options{}},
		"a=1,flash_attention=false,tf32": {"a=1,tf32", options{}},
		"flash_attention=true":           {"", options{flash: true}},
		"device=3,tf32=true":             {"tf32=true", options{flash: true, device: 3}},
	} {
		own, rest, err := cutOptions(in)
		require.NoError(t, err)
		require.Equal(t, want.rest, rest)
		require.Equal(t, want.own, own)
	}
	_, _, err := cutOptions("flash_attention=maybe")
	require.ErrorContains(t, err, "want flash_attention=true or flash_attention=false")
	for _, bad := range []string{"device=-1", "device=", "device=one"} {
		_, _, err = cutOptions(bad)
		require.ErrorContains(t, err, "want the number of a device, from 0")
	}
}

// TestCheckOptions: an option that nobody has, or that a CPU does not have, is an error that says so. A plug-in of
// another name may be one of a GPU.
func TestCheckOptions(t *testing.T) {
	gpu, cpu, other := file{"cuda", "/a.so"}, file{"cpu", "/b.so"}, file{"", "/c.so"}
	for _, good := range []string{"", "tf32", "notf32", "tf32=true,noshared_buffers", "preallocate=false"} {
		for _, f := range []file{gpu, cpu, other} {
			require.NoError(t, f.checkOptions(good))
		}
	}
	for _, ofGPU := range []string{"preallocate=true", "memory_fraction=0.9", "visible_devices=0;1"} {
		require.NoError(t, gpu.checkOptions(ofGPU))
		require.NoError(t, other.checkOptions(ofGPU))
		require.ErrorContains(t, cpu.checkOptions("tf32,"+ofGPU), `option "`+ofGPU+`" is for GPUs, and xla:cpu is none`)
	}
	for _, f := range []file{gpu, cpu, other} {
		err := f.checkOptions("tf32,memory=0.9")
		require.ErrorContains(t, err, `option "memory=0.9" is not known`)
		require.ErrorContains(t, err, "memory_fraction")
		require.ErrorContains(t, err, "device")
		require.ErrorContains(t, f.checkOptions("tf32=maybe"), `option "tf32=maybe": want true or false`)
	}
}

// TestPlugins_CUDAWanted: with an NVIDIA GPU and no plug-in for it, the missing plug-in is listed with what to install.
func TestPlugins_CUDAWanted(t *testing.T) {
	require.Empty(t, plugins(nil, false))
	list := plugins(nil, true)
	require.Len(t, list, 1)
	require.Equal(t, "xla:cuda", list[0].Device)
	require.Empty(t, list[0].Path)
	require.ErrorIs(t, list[0].Err, ErrNoPlugin)
	require.ErrorContains(t, list[0].Err, "jax[cuda13]")
}
