package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/server/child"
)

// keyVariable is the environment variable of the key.
const keyVariable = child.KeyVariable

// closing is the time that a child has beside that of --drain.
const closing = 5 * time.Second

// maxHeader bounds the headers of a request, in bytes.
const maxHeader = 64 << 10

func init() {
	verbs["serve"] = verb{
		summary: "serve models over HTTP, to clients of OpenAI's and Anthropic's APIs",
		args:    "[NAME=]MODEL... | --train [NAME=]MODEL,...",
		runs:    true,
		text: `
Clients ask for a model by NAME, which is by default the name of the run, folder or file. All routes
but /health and /readyz need the key: a new one is printed unless --key or $` + keyVariable + ` has one. Clients
send it as "Authorization: Bearer KEY" or "x-api-key: KEY". /metrics is for Prometheus.
A run is served with the checkpoint that is the newest at the start. docs/server.md lists the
routes. /dash/ is a page about the runs in --dir, see art help runs dash; the link to it that is
printed lets one browser in, once.

With --train it serves the Tinker API instead, without the page: programs that were written for
Tinker train adapters on the named base models, which they know by NAME. The runs are in --dir.
With --tenants each user has keys of its own, and no data of another; the operator's key, in
--operator-key or $` + operatorVariable + `, reads /metrics, /operator/usage and /operator/health only.
So do those of openpipe-art's ServerlessBackend, with base_url=http://HOST:PORT/v1.
docs/tinker.md and docs/wandb-training.md have more.

At SIGTERM and Ctrl-C /readyz fails and new requests are refused, with status 503. Those that are
being answered have the time of --drain. A second signal ends the program at once.

` + models,
		define: func(flags *flag.FlagSet) action {
			o := &serveOptions{headerTimeout: 10 * time.Second, idleTimeout: 2 * time.Minute}
			o.flags(flags)
			return o.run
		},
	}
}

// serveOptions are the verb serve with its flags.
type serveOptions struct {
	local.Options
	addr, key, cert, certKey   string
	operatorKey                string
	limits                     limits
	hosts, origins, rollouts   string
	train, tenants, root       string // root is the folder of the runs
	tokenizer, toolFormat      string
	alpha                      float64
	logprobs, child            bool
	drain                      time.Duration
	headerTimeout, idleTimeout time.Duration // of slow clients
}

func (o *serveOptions) flags(flags *flag.FlagSet) {
	flags.StringVar(&o.addr, "addr", "127.0.0.1:8000", "`address` to listen on; port 0 is any that is free")
	flags.StringVar(&o.key, "key", "", "`key` that clients must send; default: $"+keyVariable+", or a new one")
	flags.StringVar(&o.operatorKey, "operator-key", "", "`key` of the operator: metrics and usage, no data; default:\n"+
		"$"+operatorVariable+", or a new one with --tenants")
	flags.Var(&o.limits.body, "max-body", "`bytes` of the body of a request; default: 32MiB, with --train 64MiB")
	flags.IntVar(&o.limits.requests, "max-requests", 0,
		"`number` of requests at once; 0: 1024. With --tenants half is shared equally")
	flags.Var(&o.limits.queue, "max-queue", "`bytes` of requests of a tenant of --train that wait; default: 256MiB")
	flags.Var(&o.limits.results, "max-results", "`bytes` of results of a tenant of --train that are kept; default: 256MiB")
	flags.Var(&o.limits.metadata, "max-metadata", "`bytes` of metadata of a session or run of --train; default: 64KiB")
	flags.Var(&o.limits.storage, "max-storage", "`bytes` of saved weights and data of a tenant of --train; default: 20GiB")
	flags.StringVar(&o.cert, "tls-cert", "", "`file` of a certificate in PEM, for HTTPS")
	flags.StringVar(&o.certKey, "tls-key", "", "`file` of its private key")
	flags.StringVar(&o.hosts, "hosts", "", "`names` of this server beside localhost, with commas; * is any")
	flags.StringVar(&o.origins, "origins", "", "`origins` of web pages that may call it, with commas; * is any")
	flags.StringVar(&o.Device, "device", "", deviceUsage)
	flags.Func("replica", "a further `device` of the same kind, xla:cuda,device=1; may be repeated",
		func(name string) error {
			o.Replicas = append(o.Replicas, name)
			return nil
		})
	flags.BoolVar(&o.WarmUp, "warm-up", false, "compile all programs before the first request: minutes on a device of XLA")
	flags.StringVar(&o.Weights, "weights", "", weightsUsage)
	flags.StringVar(&o.Activations, "activations", "", activationsUsage)
	flags.StringVar(&o.toolFormat, "tool-format", "", toolFormatUsage)
	flags.IntVar(&o.Context, "context", 0, "`tokens` of prompt and reply; 0: those of the model, if they fit into memory")
	flags.IntVar(&o.Slots, "slots", 0, "`number` of replies at once, of each base; 0: 32, if they fit into memory")
	flags.IntVar(&o.CacheTokens, "cache-tokens", 0,
		"`tokens` in the KV cache of each base; 0: 2048 for each slot, if they fit")
	flags.StringVar(&o.CacheType, "cache-type", "",
		"`type` of the KV cache, bfloat16 or float32; default: float32, on GPUs as weights")
	flags.IntVar(&o.Queue, "queue", 0,
		"`number` of requests of a base that may wait; others get status 429; 0: no limit")
	flags.BoolVar(&o.logprobs, "logprobs", false, "give replies of base models logprobs and token ids; slower")
	flags.StringVar(&o.rollouts, "rollouts", "", "record rollouts, and append complete groups to a `file` of JSONL")
	flags.StringVar(&o.train, "train", "", "`bases` that clients train, [NAME=]MODEL, with commas")
	flags.StringVar(&o.tenants, "tenants", "", "JSON `file` of tenants of --train: [{\"name\", \"keys\", ...}]")
	flags.StringVar(&o.tokenizer, "tokenizer", "", "`name` of the tokenizer that clients of --train load; default: NAME")
	flags.Float64Var(&o.alpha, "alpha", 32, "alpha of the adapters of --train, as a `number`")
	flags.BoolVar(&o.child, "child", false, "for a parent program: print JSON when ready, end with standard input")
	flags.DurationVar(&o.drain, "drain", 30*time.Second, "`time` for replies to end when the program is told to")
}

// run serves until a signal arrives, or the parent ends.
func (o *serveOptions) run(args []string, stdout, stderr io.Writer) error {
	parent, signals := context.Background(), []os.Signal{os.Interrupt, syscall.SIGTERM}
	if o.child {
		parent, signals = child.Parent(parent, o.drain+closing), signals[1:]
	}
	ctx, stop := signal.NotifyContext(parent, signals...)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // the next signal has its usual effect
	return o.serve(ctx, args, stdout, stderr)
}

// serve serves until ctx ends. It listens before models are loaded, so that probes are answered meanwhile.
func (o *serveOptions) serve(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o.root = runsRoot()
	if o.drain < 0 {
		return badUsage("--drain %v: want 0 or more", o.drain)
	}
	served, err := o.arguments(args)
	if err != nil {
		return err
	}
	certificate, err := o.certificate()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("%w; choose another address with --addr, such as 127.0.0.1:0 for any free port", err)
	}
	defer listener.Close() // again, if it was served
	generated, newOperator, err := o.chooseKeys()
	if err != nil {
		return err
	}
	h, err := o.open(stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	ended := make(chan error, 1)
	go func() { ended <- h.listen(listener, certificate) }()
	names, err := h.load(ctx, served, o)
	if err != nil {
		return errors.Join(err, h.http.Close())
	}
	s := start{address: listener.Addr(), certificate: certificate, file: o.cert, models: names, generated: generated,
		tinker: o.train != "", tenants: o.tenants != ""}
	if newOperator {
		s.operator = o.operatorKey
	}
	if h.page != nil {
		s.page = h.page.Link(s.root() + dashPath)
	}
	if o.child {
		err = child.Ready(stdout, s.root(), s.models)
	} else {
		err = write(stdout, s.text(o.key))
	}
	if err != nil {
		return errors.Join(err, h.http.Close())
	}
	select {
	case <-ctx.Done():
	case err = <-h.failed:
	case err = <-ended:
	}
	return errors.Join(err, h.drain(o.drain, stderr))
}

// arguments reads the models; with --train there are none.
func (o *serveOptions) arguments(args []string) ([]servedModel, error) {
	switch {
	case o.train == "" && o.tenants != "":
		return nil, badUsage("--tenants is for --train")
	case o.train == "" && o.limits.given() != "":
		return nil, badUsage("%s is for --train", o.limits.given())
	case o.train == "":
		return parseServed(args)
	case len(args) > 0 || o.rollouts != "" || o.logprobs:
		return nil, badUsage("--train has the models; serve others, or with --rollouts and --logprobs, by another process")
	}
	return nil, nil
}

// certificate loads the certificate; it is nil when there is none.
func (o *serveOptions) certificate() (*tls.Certificate, error) {
	switch {
	case o.cert == "" && o.certKey == "":
		return nil, nil
	case o.cert == "" || o.certKey == "":
		return nil, badUsage("--tls-cert and --tls-key belong together: give both or neither")
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.certKey)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", o.cert, o.certKey, err)
	}
	return &pair, nil
}

// chooseKeys sets the keys of clients and of the operator, and tells which are new ones. The prefix is what SDKs of
// Tinker want. With tenants the server has no key of its own, which would be one of theirs, and the operator has one.
func (o *serveOptions) chooseKeys() (generated, newOperator bool, err error) {
	o.key = cmp.Or(o.key, os.Getenv(keyVariable))
	o.operatorKey = cmp.Or(o.operatorKey, os.Getenv(operatorVariable))
	generated, newOperator = o.key == "" && o.tenants == "", o.operatorKey == "" && o.tenants != ""
	if generated {
		o.key = "tml-" + rand.Text()
	}
	if newOperator {
		o.operatorKey = rand.Text()
	}
	switch {
	case o.tenants != "" && (o.key != "" || o.child):
		err = badUsage("with --tenants the keys of clients are in the file: give no --key, unset $%s, and use "+
			"--operator-key for /metrics; --child has one user", keyVariable)
	case o.operatorKey != "" && o.operatorKey == o.key:
		err = badUsage("--operator-key is --key: the operator needs another one")
	case generated && o.child:
		err = badUsage("--child needs the key in $%s: the parent has to know it", keyVariable)
	}
	return generated, newOperator, err
}

// handlerOptions say who may call.
func (o *serveOptions) handlerOptions() *art.HandlerOptions {
	opts := &art.HandlerOptions{Hosts: splitList(o.hosts), Origins: splitList(o.origins), MaxBody: int64(o.limits.body),
		MaxRequests: o.limits.requests}
	if o.key != "" {
		opts.Keys = []string{o.key}
	}
	return opts
}

// splitList splits at commas; an empty text is an empty list.
func splitList(text string) []string {
	if text == "" {
		return nil
	}
	list := strings.Split(text, ",")
	for i, item := range list {
		list[i] = strings.TrimSpace(item)
	}
	return list
}

// servedModel is a model and the name that clients know it by.
type servedModel struct {
	name   string
	source source
}

// parseServed reads arguments of the form [NAME=]MODEL.
func parseServed(args []string) (list []servedModel, err error) {
	if len(args) == 0 {
		return nil, badUsage("want at least one MODEL")
	}
	seen := map[string]string{}
	for _, arg := range args {
		name, model, named := strings.Cut(arg, "=")
		if !named || exists(arg) {
			name, model = "", arg
		}
		s := servedModel{name: name}
		if s.source, err = find(model); err != nil {
			return nil, err
		}
		if s.name == "" {
			s.name = s.source.served(model)
		}
		if other, taken := seen[s.name]; taken {
			return nil, badUsage("%s and %s would both be served as %q: give one another name, NAME=%s", other, arg, s.name,
				model)
		}
		seen[s.name] = arg
		list = append(list, s)
	}
	return list, nil
}

// served is the name that a model is served as by default: that of the run, or the last element of a path without what
// the names of models cannot have.
func (s source) served(model string) string {
	name := model
	if s.run != "" {
		name = s.run
	}
	if full, err := filepath.Abs(name); err == nil { // of "."
		name = full
	}
	name, _, _ = strings.Cut(filepath.Base(name), "@") // the revision
	return strings.TrimPrefix(strings.TrimSuffix(name, ".gguf"), ".")
}
