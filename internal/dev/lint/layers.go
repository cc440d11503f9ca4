package lint

import (
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// layer says what a package may import besides the standard library.
type layer struct {
	own   []string // packages of this module, relative to the root, which is ""; "x/..." is x and all below it
	mods  []string // packages of other modules, by prefix
	any   bool     // a program: it may import everything
	light bool     // the rule holds for _test.go files too, so that go mod tidy of a user fetches nothing for them
}

var (
	compute = "github.com/gomlx/compute"
	gomlx   = []string{"github.com/gomlx/gomlx", compute}
)

// cpuKernels are the packages below the phases of the CPU device, and cpuPhase is what a phase may import: compile and
// exec not one another.
var (
	cpuKernels = []string{
		"backend/device/cpu/internal/cpuid", "backend/device/cpu/internal/deltarule",
		"backend/device/cpu/internal/fma", "backend/device/cpu/internal/gemm",
		"backend/device/cpu/internal/pages", "backend/device/cpu/internal/pool", "backend/device/cpu/internal/vec",
	}
	cpuPhase = append([]string{"backend/device/cpu/internal/ir", "backend/device/cpu/internal/memory"}, cpuKernels...)
)

// layers has an entry for each package. A new package or dependency is a change to this table, made in the same commit.
// A key that ends in "/..." stands for the package and all below.
var layers = map[string]layer{
	"":             {own: []string{"grpo/credit"}, light: true},
	"ruler":        {own: []string{"", "internal/quantity"}, light: true},
	"ruler/reward": {own: []string{""}, light: true},
	"ruler/reward/schema": {own: []string{"ruler/reward"},
		mods: []string{"github.com/google/jsonschema-go"}, light: true},
	"tokenizer": {own: []string{"internal/onig"},
		mods: []string{"golang.org/x/text", "github.com/rivo/uniseg"}, light: true},
	"tokenizer/chat": {own: []string{
		"", "internal/callid", "internal/jinja", "internal/jsonschema", "tokenizer",
	}, light: true},
	"grpo": {own: []string{"grpo/credit", "internal/graphx"},
		mods: append([]string{"gonum.org/v1/gonum"}, gomlx...)},
	"grpo/credit": {light: true},
	"lora": {own: []string{"internal/brief", "internal/graphx", "internal/safetensors"},
		mods: append([]string{"github.com/dlclark/regexp2/v2"}, gomlx...)}, // patterns in PEFT's configuration
	"tokenizer/openai":  {own: []string{"tokenizer"}, mods: []string{"github.com/tiktoken-go/tokenizer"}, light: true},
	"internal/sampling": {mods: append([]string{"golang.org/x/sys/cpu"}, gomlx...)},
	"model": {
		own: []string{"internal/brief", "internal/ggml", "internal/graphx", "internal/safetensors",
			"internal/gguf"},
		mods: gomlx,
	},
	"model/hub": {own: []string{"internal/brief", "internal/safetensors", "internal/secret"}, mods: []string{
		"github.com/gomlx/go-huggingface/hub", "github.com/gofrs/flock",
	}}, // constants of the hub's protocol; locks shared with Python
	"model/tiny":        {own: []string{"model"}},
	"backend":           {},
	"backend/driver":    {own: []string{""}, light: true},
	"backend/loop":      {own: []string{"", "backend/driver", "internal/problems"}, light: true},
	"grpo/dataset":      {own: []string{"", "internal/problems"}, light: true},
	"internal/interval": {light: true},
	"internal/problems": {own: []string{""}, light: true},
	"backend/anthropic": {own: []string{"", "backend/hosted"},
		mods: []string{"github.com/anthropics/anthropic-sdk-go"}}, // a module of its own
	"backend/gemini": {own: []string{"", "backend/hosted"},
		mods: []string{"google.golang.org/genai"}}, // a module of its own
	"backend/backendtest": {own: []string{"", "backend/driver", "backend/loop"}, light: true},
	"backend/local": {
		own: []string{
			"", "backend/device/cpu", "backend/driver", "backend/loop", "backend/rundir", "backend/server", "grpo",
			"grpo/credit", "internal/basemodel", "internal/engine", "internal/grammar", "internal/graphx", "internal/jinja",
			"internal/machine", "internal/pack", "internal/plan", "internal/quantity", "internal/runs", "internal/safetensors",
			"internal/sampling",
			"internal/trainer", "internal/trainset", "lora", "model", "model/hub", "model/tiny", "tokenizer", "tokenizer/chat",
		},
		mods: append(slices.Clone(gomlx), "github.com/schollz/progressbar/v3",
			"golang.org/x/term"), // progress bars, silent without a terminal
	},
	"backend/hosted": {own: []string{
		"", "backend/driver", "backend/rundir", "backend/server", "internal/callid", "internal/runs",
		"internal/secret",
	}},
	"backend/openai": {own: []string{"", "backend/hosted", "internal/wire", "tokenizer/openai"}},
	"backend/plot": {own: []string{"", "internal/interval", "internal/pack", "internal/quantity"},
		mods: []string{"gonum.org/v1/gonum", "gonum.org/v1/plot"}},
	"backend/publish":       {own: []string{"", "backend/driver", "internal/runs", "internal/secret"}},
	"backend/rundir":        {own: []string{"", "internal/runs"}},
	"backend/server":        {own: []string{"", "backend/driver", "internal/wire", "grpo/dataset"}, light: true},
	"backend/server/access": {light: true},
	"backend/server/child":  {own: []string{""}, light: true},
	"backend/server/metrics": {
		own: []string{"", "backend/server"}, mods: []string{"github.com/prometheus/client_golang"},
	},
	"backend/server/internal/jsoncount": {light: true},
	"backend/server/internal/tenancy":   {own: []string{"", "backend/server/access", "internal/stable"}, light: true},
	"backend/server/wandb": {own: []string{
		"", "backend/driver", "backend/server", "backend/server/access", "backend/server/internal/jsoncount",
		"backend/server/internal/tenancy", "internal/stable", "internal/wandbwire", "internal/wire",
	}, light: true},
	"backend/server/tinker": {own: []string{
		"", "backend/driver", "backend/loop", "backend/server", "backend/server/access",
		"backend/server/internal/jsoncount", "backend/server/internal/tenancy", "internal/stable",
		"internal/tinkerwire",
	}},
	"backend/tinker": {own: []string{
		"", "backend/driver", "backend/loop", "backend/rundir", "backend/server", "grpo/credit", "internal/client",
		"internal/runs", "internal/secret", "internal/tinkerwire", "internal/trainset", "tokenizer",
		"tokenizer/chat",
	}},
	"backend/wandb": {own: []string{
		"", "backend/driver", "backend/rundir", "backend/server", "internal/callid", "internal/client",
		"internal/runs", "internal/secret", "internal/trainset", "internal/wandbwire",
	}},
	"backend/track/terminal": {own: []string{""}, mods: []string{"golang.org/x/term"}},
	"backend/track/mlflow":   {own: []string{"", "internal/secret", "internal/track"}},
	"backend/track/openpipe": {own: []string{"", "internal/secret", "internal/track"}},
	"backend/track/otel": {own: []string{"", "internal/protofield", "internal/secret", "internal/track"},
		mods: []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"}},
	"backend/dash": {own: []string{
		"", "backend/driver", "backend/rundir", "backend/server", "internal/quantity", "internal/runs", "grpo/dataset",
	}},
	"backend/track/prometheus": {own: []string{""},
		mods: []string{"github.com/prometheus/client_golang"}},
	"backend/track/tensorboard": {own: []string{"", "internal/protofield", "internal/track"},
		mods: []string{"google.golang.org/protobuf/encoding/protowire"}},
	"backend/track/wandb": {own: []string{"", "internal/protofield", "internal/secret", "internal/track"},
		mods: []string{"google.golang.org/protobuf/encoding/protowire"}},
	"backend/device/cpu": {own: []string{"backend/device/cpu/...", "internal/ggml"}, mods: []string{compute}},
	"backend/device/cpu/internal/...": {own: cpuKernels, mods: []string{
		"golang.org/x/sys/cpu", "github.com/klauspost/cpuid/v2",
	}},
	"backend/device/cpu/internal/gemm": {own: append([]string{"internal/float16", "internal/ggml"}, cpuKernels...),
		mods: []string{"golang.org/x/sys"}},
	"backend/device/cpu/internal/memory": {own: append([]string{"internal/machine"}, cpuKernels...)},
	"backend/device/cpu/internal/ir": {own: append([]string{"backend/device/cpu/internal/memory"}, cpuKernels...),
		mods: []string{compute}},
	"backend/device/cpu/internal/compile": {own: cpuPhase, mods: []string{compute}},
	"backend/device/cpu/internal/exec":    {own: cpuPhase, mods: []string{compute}},
	"backend/device/xla": {
		mods: append([]string{"github.com/gomlx/go-xla", "github.com/klauspost/cpuid/v2"}, gomlx...),
	},
	"internal/dev/arttest": {own: []string{"", "backend/driver", "backend/loop"}, light: true},
	"internal/brief":       {},
	"internal/basemodel": {own: []string{
		"lora", "model", "model/tiny", "tokenizer", "internal/float16", "internal/ggml", "internal/gguf",
	}},
	"internal/dev/bench/...":                {any: true},
	"internal/dev/cmd/...":                  {any: true},
	"internal/dev/conformance/transformers": {},
	"internal/dev/learning":                 {own: []string{"", "backend/driver", "backend/local"}},
	"internal/engine": {own: []string{
		"internal/engine/schedule", "internal/graphx", "internal/machine", "internal/plan", "internal/sampling", "lora",
		"model",
	}, mods: gomlx},
	"internal/engine/schedule": {},
	"internal/dev/fixtures":    {own: []string{"internal/safetensors"}},
	"internal/float16":         {light: true},
	"internal/client":          {own: []string{""}, light: true},
	"internal/ggml":            {own: []string{"internal/float16"}},
	"internal/gguf":            {own: []string{"internal/ggml", "internal/mapped"}},
	"internal/callid":          {own: []string{""}, light: true},
	"internal/grammar":         {own: []string{"internal/jsonschema"}},
	"internal/quantity":        {light: true},
	"internal/jsonschema":      {light: true},
	"internal/dev/gguftest":    {own: []string{"internal/ggml", "internal/gguf", "internal/safetensors"}},
	"internal/dev/hubtest":     {light: true},
	"internal/graphx":          {own: []string{"internal/ggml", "internal/machine"}, mods: gomlx},
	"internal/graphx/graphtest": {
		own: []string{"backend/device/cpu", "backend/device/xla", "internal/dev/race"}, mods: gomlx,
	},
	"internal/jinja":             {mods: []string{"golang.org/x/text"}, light: true},
	"internal/dev/race":          {light: true},
	"internal/dev/lint":          {light: true},
	"internal/dev/servertest":    {own: []string{"", "backend/server"}, light: true},
	"internal/onig":              {mods: []string{"github.com/dlclark/regexp2/v2"}, light: true},
	"internal/secret":            {},
	"internal/secret/secrettest": {light: true},
	"internal/runs": {own: []string{"", "internal/stable"}, mods: []string{
		"github.com/parquet-go/parquet-go", "golang.org/x/sys/windows",
	}},
	"internal/stable":  {mods: []string{"github.com/gofrs/flock", "golang.org/x/sys/windows"}, light: true},
	"internal/machine": {mods: []string{"golang.org/x/sys/unix"}, light: true},
	"internal/mapped":  {light: true},
	"internal/pack":    {own: []string{"grpo/credit"}},
	"internal/plan": {own: []string{
		"lora", "model", "internal/engine/schedule", "internal/graphx", "internal/machine", "internal/pack",
	}, mods: []string{compute}},
	"internal/migrate": {
		own: []string{"", "internal/runs"}, mods: []string{"github.com/parquet-go/parquet-go", "go.yaml.in/yaml"},
	},
	"internal/safetensors": {own: []string{"internal/float16", "internal/mapped"}},
	"internal/trainer": {own: []string{"grpo", "grpo/credit", "lora", "model", "internal/graphx", "internal/machine",
		"internal/pack", "internal/plan", "internal/safetensors"}, mods: gomlx},
	"internal/trainset": {own: []string{"", "grpo/credit", "internal/runs", "tokenizer/chat"}},
	"internal/tinkerwire": {mods: []string{"google.golang.org/protobuf/encoding/protowire"},
		light: true},
	"internal/protofield":    {mods: []string{"google.golang.org/protobuf/encoding/protowire"}},
	"internal/dev/tokentest": {light: true},
	"internal/track":         {own: []string{"", "internal/secret"}},
	"internal/wandbwire":     {own: []string{"", "internal/wire"}, light: true},
	"internal/wire":          {own: []string{""}, light: true},
	"internal/wire/wiretest": {light: true},
	"cmd/art":                {any: true},
	"cmd/art/project":        {own: []string{""}},
	"examples/...":           {any: true},
}

// testOnly may be imported by the tests of every package.
var testOnly = []string{
	"backend/backendtest", "backend/driver", "backend/loop", "grpo/dataset", "internal/dev/arttest", "internal/dev/race",
	"internal/secret/secrettest", "internal/dev/tokentest",
	"internal/wire/wiretest",
}

// checkImports returns the imports of a file that the table does not allow.
func checkImports(file source) []string {
	rule, ok := findLayer(file.pkg())
	if !ok {
		return []string{
			fmt.Sprintf("%s: package %q is not in the table of internal/dev/lint/layers.go; add it with what it may import",
				file.path, file.pkg()),
		}
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file.path, file.data, parser.ImportsOnly)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !rule.allows(imported, file) {
			problems = append(problems,
				fmt.Sprintf("%s: package %q may not import %s; see internal/dev/lint/layers.go", file.path, file.pkg(), imported))
		}
	}
	return problems
}

// findLayer returns the rule of a package. An exact entry takes precedence over a family.
func findLayer(pkg string) (layer, bool) {
	if rule, ok := layers[pkg]; ok {
		return rule, true
	}
	for key, rule := range layers {
		if isFamily(key) && matches(key, pkg) {
			return rule, true
		}
	}
	return layer{}, false
}

// isFamily reports whether an entry stands for a package and all below.
func isFamily(entry string) bool { return strings.HasSuffix(entry, "/...") }

// matches reports whether an entry names a package.
func matches(entry, pkg string) bool {
	top, family := strings.CutSuffix(entry, "/...")
	return pkg == top || family && strings.HasPrefix(pkg, top+"/")
}

// allows reports whether a file of this layer may import a package.
func (l layer) allows(imported string, file source) bool {
	switch {
	case imported == "C":
		return file.pkg() == "backend/device/xla" // the one package that is empty without cgo
	case l.any, file.isTest() && !l.light:
		return true
	case imported == module, strings.HasPrefix(imported, module+"/"):
		rel := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
		return l.allowsOwn(rel, file)
	case !strings.Contains(firstElement(imported), "."):
		return true // standard library
	}
	return slices.ContainsFunc(l.mods, func(m string) bool { return matches(path.Join(m, "..."), imported) })
}

// allowsOwn reports whether a file may import a package of this module. Tests may import their own package, and those
// of testOnly.
func (l layer) allowsOwn(rel string, file source) bool {
	if rel == "grpo/credit" && slices.Contains(l.own, "") { // the vocabulary of losses belongs to the domain
		return true
	}
	named := func(entry string) bool { return matches(entry, rel) }
	if slices.ContainsFunc(l.own, named) {
		return true
	}
	return file.isTest() && (rel == file.pkg() || slices.Contains(testOnly, rel))
}

// firstElement returns an import path up to its first slash. For another module it is a host, with a dot.
func firstElement(imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	return first
}
