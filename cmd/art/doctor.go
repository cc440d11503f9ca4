package main

import (
	"encoding/json"
	"flag"
	"io"
	"os"
)

func init() { verbs["doctor"] = doctor(usual) }

// doctor returns the verb that says what this machine can do.
func doctor(e effort) verb {
	return verb{
		summary: "what this machine can do",
		text: `
Prints what this machine can do, and what is wrong or slow about it. It measures for 2 to 3 seconds
how fast memory is read, in 10^9 bytes a second, and how fast matrices are multiplied, in 10^9
additions and multiplications a second: with one worker, and with all. Each is the best of several.

It also loads the plug-ins for XLA that it finds, with their version and their devices. The name and
the memory of a GPU are those that nvidia-smi tells: the plug-ins' Go interface passes on neither.

The exit status is 1 when nothing can be computed.

environment:
  ART_CPU            instruction set: portable, avx2, avx512 or neon; the best one when empty
  GOMAXPROCS         number of workers
  PJRT_PLUGIN_LIBRARY_PATH
                     the only folders to look for XLA's plug-ins in; the usual ones when not set`,
		define: func(flags *flag.FlagSet) action {
			asJSON := flags.Bool("json", false, "print one JSON object")
			return func(_ []string, stdout, stderr io.Writer) error {
				return e.report(*asJSON, stdout, newProgress(stderr))
			}
		},
	}
}

// report is what the doctor says.
type report struct {
	machine
	gpus
	*speeds           // nil when nothing can be computed
	XLA     xlaReport `json:"xla"`
	Notes   []string  `json:"notes"`
}

// report examines this machine and prints what it finds. What is known is printed even where nothing can be computed.
func (e effort) report(asJSON bool, stdout io.Writer, p progress) error {
	m := inspect(os.DirFS("/"))
	r := report{machine: m, gpus: inspectGPUs(os.DirFS("/"), smi), XLA: inspectXLA(), Notes: m.notes()}
	problem := m.problem
	if problem == nil {
		r.speeds, problem = e.speeds(m, p)
	}
	if err := r.print(asJSON, stdout); err != nil {
		return err
	}
	return problem
}

func (r report) print(asJSON bool, stdout io.Writer) error {
	if asJSON {
		return writeJSON(stdout, r)
	}
	return write(stdout, r.table())
}

// writeJSON writes one indented object.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
