package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// standIn replaces this program in tests of gpu.sh: parity fails as long as there is a file called broken.
const standIn = `#!/usr/bin/env bash
case "${!#}" in
parity) [ ! -e broken ] ;;
*.jsonl) cat "${@:2}" ;;
*) echo "{\"job\": \"${!#}\"} of $*, programs in $ART_XLA_CACHE" ;;
esac
`

// script makes a folder with gpu.sh and the replacement. It returns a function that runs slices.
func script(t *testing.T) (folder string, run func(slices ...string) (output string, status int)) {
	if _, err := exec.LookPath("bash"); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no bash")
	}
	folder = t.TempDir()
	text, err := os.ReadFile("../gpu.sh")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "gpu.sh"), text, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "gpu"), []byte(standIn), 0o700)) //nolint:gosec // it is run
	return folder, func(slices ...string) (string, int) {
		c := exec.CommandContext(t.Context(), "bash", append([]string{filepath.Join(folder, "gpu.sh")}, slices...)...)
		c.Env = append(os.Environ(), "VIRTUAL_ENV="+folder, "OUT="+folder, "DEVICE=xla:cpu", "GPUS=1")
		output, err := c.Output()
		if err != nil {
			require.IsType(t, &exec.ExitError{}, err)
		}
		return string(output), c.ProcessState.ExitCode()
	}
}

// TestScript_Failed: a slice that fails makes the exit status 1, the next ones run, and the table shows the failure
// until the slice has passed.
func TestScript_Failed(t *testing.T) {
	folder, run := script(t)
	broken := filepath.Join(folder, "broken")
	require.NoError(t, os.WriteFile(broken, nil, 0o600))
	output, status := run("parity", "tiny")
	require.Equal(t, 1, status)
	require.Contains(t, output, `"job": "prefill"`, "the next slice")
	output, status = run("table")
	require.Zero(t, status, "the table is not what failed")
	require.Contains(t, output, `"job": "prefill"`)
	require.Contains(t, output, "FAILED: parity: ./gpu -device xla:cpu parity")

	require.NoError(t, os.Remove(broken))
	_, status = run("parity")
	require.Zero(t, status)
	output, status = run("table")
	require.Zero(t, status)
	require.NotContains(t, output, "FAILED")

	_, status = run("nonsense", "parity")
	require.Equal(t, 1, status)
}

// TestScript_Gap: a slice measures each bucket with its setting, and programs are kept beside the script.
func TestScript_Gap(t *testing.T) {
	folder, run := script(t)
	for slice, setting := range map[string]string{
		"gap": "-device xla:cpu -card", "gap-plain": "-device xla:cpu,flash_attention=false",
		"gap-cache":   "flash_attention=false -card  -shape qwen3-0.6b -budget 20s",
		"gap-float32": "-weights float32 -cache float32",
	} {
		output, status := run(slice)
		require.Zero(t, status)
		require.Equal(t, 4, strings.Count(output, `"job": "gap"`), output)
		require.Equal(t, 4, strings.Count(output, setting), output)
		require.Equal(t, 4, strings.Count(output, "programs in "+filepath.Join(folder, "programs")), output)
		for _, tokens := range []string{"64", "256", "1024", "4096"} {
			require.Contains(t, output, "-tokens "+tokens+" ")
		}
	}
}

// TestScript_Several: a slice for several GPUs fails where there is one.
func TestScript_Several(t *testing.T) {
	_, run := script(t)
	output, status := run("several")
	require.Equal(t, 1, status)
	require.Empty(t, output)
	output, _ = run("table")
	require.Contains(t, output, "FAILED: several: several needs 2 GPUs, and there are 1")
}

// TestScript_LargeModel: jobs of a model of which the weights of three do not fit on the GPU run one after the other.
func TestScript_LargeModel(t *testing.T) {
	folder, run := script(t)
	for name, text := range map[string]string{
		"nvidia-smi": "#!/usr/bin/env bash\n[[ $* != *gpu=memory.total* ]] || echo 81559\n",
		"gpu": "#!/usr/bin/env bash\nmkdir running || { echo beside another; exit; }\n" +
			"sleep 0.05\nrmdir running\necho alone\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700)) //nolint:gosec // it is run
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, status := run("14b")
	require.Zero(t, status)
	require.Equal(t, strings.Repeat("alone\n", 9), output)
}
