package machine

import (
	"strings"
	"testing"
)

// TestGPUs_Device: numbers are those of CUDA, by the environment; where nvidia-smi does not tell, the error says why.
func TestGPUs_Device(t *testing.T) {
	gpu := func(name, uuid string) GPU { return GPU{Name: name, UUID: uuid, Total: 80 << 30, Free: 70 << 30} }
	same := GPUs{List: []GPU{gpu("H100", "GPU-aa1"), gpu("H100", "GPU-aa2"), gpu("H100", "GPU-b3")}}
	mixed := GPUs{List: []GPU{gpu("T4", "GPU-a"), gpu("H100", "GPU-b")}}
	divided := GPUs{List: []GPU{{Name: "H100", Total: 80 << 30, Free: 70 << 30, Parts: true}}}
	env := func(pairs ...string) map[string]string {
		return map[string]string{"CUDA_VISIBLE_DEVICES": pairs[0], "CUDA_DEVICE_ORDER": strings.Join(pairs[1:], "")}
	}
	for name, c := range map[string]struct {
		gpus   GPUs
		env    map[string]string
		number int
		want   string // UUID
		err    string
	}{
		"all":              {gpus: same, number: 2, want: "GPU-b3"},
		"beyond":           {gpus: same, number: 3, err: "3 GPUs that this process may use, and none of number 3"},
		"none":             {err: "there is no GPU"},
		"chosen":           {gpus: same, env: env("2, 0"), number: 1, want: "GPU-aa1"},
		"not chosen":       {gpus: same, env: env("2,0"), number: 2, err: "none of number 2"},
		"up to an error":   {gpus: same, env: env("2,7,0"), number: 1, err: "none of number 1"},
		"up to -1":         {gpus: same, env: env("2,-1,0"), number: 1, err: "none of number 1"},
		"UUID":             {gpus: same, env: env("GPU-aa2,GPU-b"), number: 1, want: "GPU-b3"},
		"several UUIDs":    {gpus: same, env: env("GPU-aa"), err: "several UUIDs begin"},
		"part":             {gpus: same, env: env("MIG-1"), err: "the part MIG-1 of a GPU"},
		"divided":          {gpus: divided, err: "H100 is divided (MIG)"},
		"unknown order":    {gpus: mixed, err: "set CUDA_DEVICE_ORDER=PCI_BUS_ID"},
		"unknown numbers":  {gpus: mixed, env: env("1"), err: "set CUDA_DEVICE_ORDER=PCI_BUS_ID"},
		"order of PCI":     {gpus: mixed, env: env("1", "PCI_BUS_ID"), want: "GPU-b"},
		"mixed, by UUID":   {gpus: mixed, env: env("GPU-b"), want: "GPU-b"},
		"no memory":        {gpus: GPUs{List: []GPU{{Name: "GB10"}}}, err: "no memory of GB10"},
		"nvidia-smi fails": {gpus: GPUs{Problem: "exit status 9"}, err: "exit status 9"},
	} {
		got, err := c.gpus.Device(c.number, func(key string) string { return c.env[key] })
		switch {
		case c.err == "" && (err != nil || got.UUID != c.want):
			t.Errorf("%s: %+v, %v, want %s", name, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %+v, %v, want the error %q", name, got, err, c.err)
		}
	}
}

// TestGPU_Usable: what is free, and no more than the part of the whole that the process may take.
func TestGPU_Usable(t *testing.T) {
	g := GPU{Total: 80 << 30, Free: 70 << 30}
	for fraction, want := range map[float64]int64{0.75: 60 << 30, 0.5: 40 << 30, 1: 70 << 30} {
		if got := g.Usable(fraction); got != want {
			t.Errorf("%v: %d bytes, want %d", fraction, got, want)
		}
	}
}
