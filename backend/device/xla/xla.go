//go:build cgo

package xla

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	goxla "github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"
)

// Name is the prefix of the names of XLA devices, in GoMLX's registry and in local.Options.
const Name = goxla.BackendName

// go-xla registers itself under these names. This replaces it: it searches more folders, has better errors, and
// donates.
func init() {
	goxla.EnableAutoInstall(false)
	for _, name := range []string{Name, "stablehlo", "hlo", "shlo"} {
		compute.Register(name, New)
	}
}

// ErrNoPlugin is wrapped by the error of a device whose plug-in was not found.
var ErrNoPlugin = errors.New("no such PJRT plug-in was found")

// ErrVersion is wrapped by the error of a plug-in that go-xla cannot talk to.
var ErrVersion = errors.New("the PJRT plug-in is too old")

// opening is held while a plug-in is loaded or looked up: go-xla's list of them is not safe for concurrent use.
var opening sync.Mutex

// New opens a device. config is what follows "xla:" in its name, as the comment of the package says.
func New(config string) (compute.Backend, error) {
	name, rest, _ := strings.Cut(config, ",")
	own, rest, err := cutOptions(rest)
	if err != nil {
		return nil, fmt.Errorf("xla: %w", err)
	}
	f, err := resolve(name)
	if err != nil {
		return nil, fmt.Errorf("xla: %w", err)
	}
	if err := f.checkOptions(rest); err != nil {
		return nil, fmt.Errorf("xla: %w", err)
	}
	opening.Lock()
	defer opening.Unlock()
	if _, err := load(f); err != nil {
		return nil, fmt.Errorf("xla: %w", f.unusable(err))
	}
	opened, err := f.open(rest)
	if err != nil {
		return nil, fmt.Errorf("xla: %s: %w", f.path, f.unusable(err))
	}
	of, ok := opened.(*goxla.Backend)
	if !ok {
		return nil, fmt.Errorf("xla: go-xla opened a %T, want a *xla.Backend", opened)
	}
	if n := of.NumDevices(); own.device >= n {
		of.Finalize()
		return nil, fmt.Errorf("xla: %s=%d: %s has %d devices, numbered from 0", deviceOption, own.device, f.device(), n)
	}
	return &device{
		Backend: of, name: f.device(), first: compute.DeviceNum(own.device), flash: own.flash && f.name == "cuda",
	}, nil
}

// options are those of this package.
type options struct {
	flash  bool // use the device's kernel of attention
	device int  // number among those of the plug-in
}

// cutOptions takes the options of this package out of those of go-xla.
func cutOptions(list string) (own options, rest string, err error) {
	own.flash = true
	var others []string
	for option := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case flashOption:
			if own.flash, err = strconv.ParseBool(value); err != nil {
				return own, "", fmt.Errorf("option %q: want %s=true or %[2]s=false", option, flashOption)
			}
		case deviceOption:
			if own.device, err = strconv.Atoi(value); err != nil || own.device < 0 {
				return own, "", fmt.Errorf("option %q: want the number of a device, from 0", option)
			}
		default:
			others = append(others, option)
		}
	}
	return own, strings.Join(others, ","), nil
}

// resolve finds the plug-in that a name stands for.
func resolve(name string) (file, error) {
	if filepath.IsAbs(name) {
		return file{nameOf(name), name}, nil
	}
	files := search()
	wanted := []string{name}
	if name == "" {
		wanted = []string{"cpu"}
		if hasNVIDIA() {
			wanted = []string{"cuda", "cpu"}
		}
	}
	for _, name := range wanted {
		if f, ok := choose(files, name); ok {
			return f, nil
		}
	}
	return file{}, missing(wanted[0], files)
}

// install says how to get a plug-in.
var install = map[string]string{
	"cpu":  "pip install lammps-jax-pjrt-cpu",
	"cuda": `pip install "jax[cuda13]"`,
}

// missing is the error of a plug-in that was not found: which ones were, what to install, and how to name the file.
func missing(name string, files []file) error {
	there := "there is none at all"
	if len(files) > 0 {
		there = "there are " + names(files)
	}
	how := "install one"
	if command := install[name]; command != "" {
		how = fmt.Sprintf("run %q in a Python environment and activate it", command)
	}
	return fmt.Errorf("%w: %q; %s. To get it, %s; or name the file, %q, or the folders of plug-ins in %s",
		ErrNoPlugin, Name+":"+name, there, how, Name+":/path/to/plugin.so", pjrt.PJRTPluginPathsEnv)
}

// unusable adds to the error of a plug-in that was found what to do, unless the error says it.
func (f file) unusable(err error) error {
	command := install[f.name]
	if err == nil || command == "" || errors.Is(err, ErrNoPlugin) || errors.Is(err, ErrVersion) {
		return err
	}
	if command = upgrade(command); f.name == "cuda" {
		return fmt.Errorf("%w; nvidia-smi must list the GPU, and for a new plug-in with NVIDIA's libraries run %q",
			err, command)
	}
	return fmt.Errorf("%w; for a new plug-in run %q", err, command)
}

// upgrade returns the command that brings a newer version.
func upgrade(command string) string {
	return strings.Replace(command, "install", "install --upgrade", 1)
}

// open opens the file. Only for the names "cpu" and "cuda" it is known whether there is a GPU, whose memory could be
// allocated up front. A plug-in without one refuses options about that.
func (f file) open(options string) (compute.Backend, error) {
	config := f.config(options)
	opened, err := goxla.New(config)
	if without := strings.Replace(config, noPreallocation, "", 1); err != nil && f.name != "cuda" && without != config {
		return goxla.New(without)
	}
	return opened, err
}

// config is what go-xla opens the file with. It says what go-xla alone guesses from the path: whether the host can
// access the buffers of the device, and that a GPU's memory is not allocated up front. And float32 means float32, as in
// PyTorch: go-xla alone rounds what is multiplied on a GPU to TF32, with which sampler and trainer disagree.
func (f file) config(options string) string {
	config := f.path
	if !strings.Contains(options, sharedOption) {
		config += fmt.Sprintf(",%s=%t", sharedOption, f.name == "cpu")
	}
	if f.name != "cpu" && !strings.Contains(options, tf32Option) {
		config += fmt.Sprintf(",%s=false", tf32Option)
	}
	if f.name != "cpu" && !strings.Contains(options, preallocateOption) {
		config += noPreallocation
	}
	if options != "" {
		config += "," + options
	}
	return config
}

// device is the name to open the plug-in by.
func (f file) device() string { return Name + ":" + cmp.Or(f.name, f.path) }

// checkOptions returns an error for options that neither go-xla nor this package has, and for those of GPUs where the
// plug-in is for CPUs.
func (f file) checkOptions(list string) error {
	for option := range strings.SplitSeq(list, ",") {
		name, value, given := strings.Cut(option, "=")
		if !slices.Contains(theirOptions, strings.TrimPrefix(name, "no")) && name != "" {
			known := slices.Concat(theirOptions, []string{deviceOption, flashOption})
			return fmt.Errorf("option %q is not known: there are %s", option, strings.Join(known, ", "))
		}
		ofGPU := slices.Contains(theirGPUOptions, strings.TrimPrefix(name, "no"))
		if f.name == "cpu" && ofGPU && ","+option != noPreallocation {
			return fmt.Errorf("option %q is for GPUs, and %s is none: leave it out", option, f.device())
		}
		if _, err := strconv.ParseBool(value); err != nil && given && slices.Contains(theirBooleans, name) {
			return fmt.Errorf("option %q: want true or false", option)
		}
	}
	return nil
}

// theirGPUOptions are the options of go-xla that plug-ins for GPUs alone accept.
var theirGPUOptions = []string{
	preallocateOption, "memory_fraction", "allocator", "visible_devices", "use_tfrt_gpu_client",
}

// theirBooleans are the options of go-xla that are true or false, the latter also as the name after "no".
var theirBooleans = []string{sharedOption, tf32Option, preallocateOption, "use_tfrt_gpu_client"}

// theirOptions are all options of go-xla.
var theirOptions = append([]string{sharedOption, tf32Option}, theirGPUOptions...)

// Options of go-xla.
const (
	sharedOption      = "shared_buffers"
	tf32Option        = "tf32"
	preallocateOption = "preallocate"
	noPreallocation   = "," + preallocateOption + "=false"
)

// Options of this package.
const (
	flashOption  = "flash_attention"
	deviceOption = "device"
)
