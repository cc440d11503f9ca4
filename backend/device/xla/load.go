//go:build cgo

package xla

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomlx/go-xla/pjrt"
)

// oldest is the first version of the PJRT C API, 0.x, with everything that go-xla v0.4.5 reads: it needs the peak of
// the memory statistics after each compilation.
const oldest = 72

// CacheEnv is the environment variable that names the folder where compiled programs are kept between processes. See
// the comment of the package.
const CacheEnv = "ART_XLA_CACHE"

// load opens the shared library. It stays open. The caller holds [opening].
func load(f file) (*pjrt.Plugin, error) {
	if f.name == "cuda" {
		if err := pointToCUDA(f.path); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(f.path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPlugin, err)
	}
	folder := os.Getenv(CacheEnv)
	if err := interpose(f, folder); err != nil && folder != "" {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	} // without a folder go-xla says what is wrong, or works without
	plugin, err := pjrt.GetPlugin(f.path)
	if err != nil {
		return nil, fmt.Errorf("%s is not a PJRT plug-in that can be loaded here: %w", f.path, err)
	}
	return plugin, checkVersion(f, plugin)
}

// versioned is what a plug-in reports about itself.
type versioned interface{ Version() (major, minor int) }

func checkVersion(f file, plugin versioned) error {
	major, minor := plugin.Version()
	if major == 0 && minor >= oldest {
		return nil
	}
	how := "install a newer one"
	if command := install[f.name]; command != "" {
		how = fmt.Sprintf("run %q", upgrade(command))
	}
	return fmt.Errorf("%w: %s has version %d.%d of the PJRT C API, this program needs 0.%d or a later 0.x; %s",
		ErrVersion, f.path, major, minor, oldest, how)
}

const (
	xlaFlags = "XLA_FLAGS"
	cudaFlag = "--xla_gpu_cuda_data_dir"
	// cudaChecks set to "0" stops go-xla from doing the same for its own layout of files only, with a warning.
	cudaChecks = "GOPJRT_CUDA_CHECKS"
)

// pointToCUDA tells XLA where the programs and the bitcode are that it compiles with. XLA reads the environment once,
// when the plug-in is loaded. Values that the user has set stay.
func pointToCUDA(path string) error {
	flags := os.Getenv(xlaFlags)
	if folder := cudaFolder(path); folder != "" && !strings.Contains(flags, cudaFlag) {
		if err := os.Setenv(xlaFlags, strings.TrimSpace(flags+" "+cudaFlag+"="+folder)); err != nil {
			return err
		}
	}
	if _, ok := os.LookupEnv(cudaChecks); ok {
		return nil
	}
	return os.Setenv(cudaChecks, "0")
}

// cudaFolder returns the folder of the CUDA compiler that was installed with a plug-in, "" if there is none:
// packages/nvidia/cu13 for packages/jax_plugins/xla_cuda13/plugin.so, or go-xla/nvidia for go-xla/nvidia/plugin.so.
func cudaFolder(path string) string {
	folder := filepath.Dir(path)
	candidates := []string{folder}
	for _, pattern := range []string{"nvidia/cu[0-9]*", "nvidia/cuda_nvcc"} {
		candidates = append(candidates, glob(filepath.Dir(filepath.Dir(folder)), pattern)...)
	}
	for _, c := range candidates {
		if len(glob(c, "nvvm")) > 0 || len(glob(c, "cuda_nvcc")) > 0 {
			return c
		}
	}
	return ""
}
