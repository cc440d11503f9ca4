// Package xla makes XLA devices available to programs that import it: the same graphs, compiled for CPUs and GPUs by a
// PJRT plug-in.
//
//	import _ "github.com/goart-dev/art/backend/device/xla"
//
//	backend, err := local.Open(ctx, &local.Options{Device: "xla:cuda"})
//
// It uses go-xla, the successor of gopjrt, and needs cgo: without it, the package is empty. A plug-in is a shared
// library (Linux, macOS) that this package searches for and never downloads. The simplest way to get one is a Python
// package, in any virtual environment:
//
//	pip install lammps-jax-pjrt-cpu   # xla:cpu
//	pip install "jax[cuda13]"         # xla:cuda, with NVIDIA's libraries
//
// # Names
//
//	xla:cpu, xla:cuda     the first plug-in of that name
//	xla:/path/plugin.so   this file
//	xla                   CUDA where there is an NVIDIA GPU and a plug-in for it, otherwise CPU
//
// Options may follow, separated by commas: "xla:cuda,memory_fraction=0.9". Beside those of go-xla there are
// flash_attention and device, the number of a GPU, from 0: "xla:cuda,device=1" is the second one of this host. Devices
// of several numbers can be open at once. On a GPU:
//
//	tf32=true              multiplies float32 in TF32: faster, but sampler and trainer then differ by up to 0.01 nats
//	memory_fraction=0.9    takes up to that part of the whole memory, in place of 0.75
//	preallocate=true       takes it at once, in place of what is needed
//	flash_attention=false  does without cuDNN's kernel of attention, with which models of bfloat16 matrices are trained
//
// # Numbers
//
// Programs of other shapes round in other ways. So the logprobs of a request, and at times what a seed samples, depend
// on which requests are computed with it. On the CPU device they do not.
//
// # Donation
//
// Inputs that a call donates, as engine and trainer donate caches and states, are overwritten by results of the same
// shape. Programs with such inputs are compiled at their first call, once for each set of inputs that is donated. The
// memory of inputs that were donated to a program which then fails is freed.
//
// # Programs that are kept
//
// ART_XLA_CACHE names a folder where compiled programs are kept, so that a later process reads in milliseconds what
// takes seconds to compile. A file is named for a hash of the program, its options, the plug-in, the devices, the CPU
// and XLA_FLAGS: a program of another machine or version is not found, and so a folder may be shared. It holds machine
// code: let nobody write to it who may not change the program. It grows; remove it to begin again. The variable is read
// when a plug-in is loaded. A program that the plug-in cannot store, or that cannot be written, is compiled again by
// the next process. It was tried with xla:cpu only.
//
// # Errors
//
// A program that does not compile, memory that does not suffice, and a device that is lost are an [Error] of the kind
// [ErrCompile], [ErrMemory] or [ErrLost]. After the first two a device computes on. Of backend/local these errors are
// art.ErrDevice too; it keeps its runs at their newest step, and another backend can go on with them on another device.
//
// # Where plug-ins are searched for
//
// If PJRT_PLUGIN_LIBRARY_PATH is set, in the folders that it lists, and nowhere else. Otherwise in
//
//   - ~/.local/lib/go-xla, ~/.local/lib/gomlx/pjrt, /usr/local/lib/go-xla, /usr/local/lib/gomlx/pjrt, the folder nvidia
//     in each, and the folders in LD_LIBRARY_PATH;
//   - Python's package folders below VIRTUAL_ENV, CONDA_PREFIX, the python3 in PATH, ~/.local, /usr/local and /usr, for
//     what the packages jax-cuda12-pjrt, jax-cuda13-pjrt, xla-cpu-pjrt and lammps-jax-pjrt-cpu install.
package xla
