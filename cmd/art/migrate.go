package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art/internal/migrate"
	"github.com/goart-dev/art/internal/quantity"
)

func init() {
	verbs["runs migrate"] = verb{
		summary: "read a run of OpenPipe's ART, 0.3 to 0.5",
		args:    "FOLDER",
		runs:    true,
		text: `
Copies a run of OpenPipe's ART into a run of this library: metrics, trajectories (JSONL or Parquet)
and adapters. FOLDER is ART's folder of the model, .art/PROJECT/models/NAME; it is not changed. The
run is called as there, in --dir, unless --project and --name say otherwise.

The copy is for reading, with show, plot and runs, and to begin with: an adapter of it is one for
ModelOptions.Adapter. It cannot be trained on again, because ART does not keep the tokens of
prompts.`,
		define: func(flags *flag.FlagSet) action {
			m := migrateVerb{}
			flags.StringVar(&m.project, "project", "", "`project` of the copy")
			flags.StringVar(&m.name, "name", "", "`name` of the copy")
			flags.BoolVar(&m.dry, "dry-run", false, "read everything, and write nothing")
			return m.run
		},
	}
}

// migrateVerb is the verb runs migrate with its flags.
type migrateVerb struct {
	project, name string
	dry           bool
}

func (m *migrateVerb) run(args []string, stdout, _ io.Writer) error {
	if len(args) != 1 {
		return badUsage("want the FOLDER of a model of ART")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	name := cmp.Or(m.name, filepath.Base(dir))
	project := cmp.Or(m.project, filepath.Base(filepath.Dir(filepath.Dir(dir))))
	r, err := migrate.Run(dir, runsRoot(), project, name, m.dry)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s/%s: %s of metrics, %s in %s of %s", r.Project, r.Name, quantity.Of(r.Rows, "row"),
		quantity.Of(r.Trajectories, "trajectory"), quantity.Of(r.Groups, "group"), quantity.Of(r.Files, "file"))
	if m.dry {
		text += "; nothing was written"
	} else {
		text += fmt.Sprintf(", %s, %d of them with an adapter", quantity.Of(r.Steps, "step"), r.Adapters)
	}
	if n := len(r.Problems); n > 0 {
		text += fmt.Sprintf("\nleft out %d:\n  %s", n, strings.Join(r.Problems, "\n  "))
	}
	return write(stdout, text+"\n")
}
