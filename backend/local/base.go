package local

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

// base is a base model in memory, and its engine. Models on the same base share it.
type base struct {
	baseKey
	name      string // as [art.ModelOptions].Base says
	original  string // the checkpoint that a GGUF file says it was made from
	matrices  dtypes.DType
	config    *model.Config
	params    *model.Params
	replicas  []replica // on the other devices
	tokenizer *tokenizer.Tokenizer
	template  *chat.Template
	engine    *engine.Pool
	training  *graphx.Programs // of all models on it, on the first device
	booking   plan.Booking
	// ropeContext is what a run records as RopeContext. config has the frequencies of it.
	ropeContext int
}

// baseKey is what differs between base models that are loaded beside one another.
type baseKey struct {
	path    string // see location
	weights string // see [Options].Weights; not empty
	// activations is "int8", or empty for float32.
	activations string
	rope        int // RopeContext of the run; 0: none is recorded
}

// loading is a base model that is loaded, or being loaded. All models on it share it.
type loading struct {
	done   chan struct{} // closed when base and err are set
	base   *base
	err    error
	wait   int // callers waiting; guarded by Backend.mu
	cancel context.CancelCauseFunc
}

// base returns a base model. The first caller starts the load, the others wait for it until their ctx ends. When nobody
// waits any more, the load is cancelled.
func (b *Backend) base(ctx context.Context, name string, at baseKey) (*base, error) {
	b.mu.Lock()
	l := b.bases[at]
	if l == nil {
		l = &loading{done: make(chan struct{})}
		var life context.Context
		life, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
		b.bases[at] = l
		b.busy.Add(1)
		go b.load(life, l, name, at)
	}
	l.wait++
	b.mu.Unlock()
	defer b.leave(l, at)
	select {
	case <-l.done:
		return l.base, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// leave ends the wait for a base model.
func (b *Backend) leave(l *loading, at baseKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.wait--
	select {
	case <-l.done:
	default:
		if l.wait == 0 {
			l.cancel(context.Canceled)
			delete(b.bases, at) // the next caller starts over
		}
	}
}

// load loads a base model for all waiting callers.
func (b *Backend) load(ctx context.Context, l *loading, name string, at baseKey) {
	defer b.busy.Done()
	defer l.cancel(nil)
	s, err := b.newBase(ctx, name, at)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && b.bases[at] != l { // cancelled
		s.close(b.memory)
		s, err = nil, context.Cause(ctx)
	}
	l.base, l.err = s, err
	if err != nil && b.bases[at] == l {
		delete(b.bases, at)
	}
	close(l.done)
}

// newBase plans the memory of a base model, loads it and starts its engine.
func (b *Backend) newBase(ctx context.Context, name string, at baseKey) (s *base, err error) {
	if b.onLoad != nil {
		b.onLoad(ctx, at.path)
	}
	matrices, err := matricesOf("register", at.weights, b.device)
	if err != nil {
		return nil, err
	}
	open, err := basemodel.Open(at.path)
	if err != nil {
		return nil, baseError(name, err)
	}
	defer func() {
		if bad := open.Close(); bad != nil && err == nil {
			s.close(b.memory)
			s, err = nil, baseError(name, bad)
		}
	}()
	if n := len(open.Skipped()); n > 0 {
		b.opts.Logger.Info("only the text model is read, other parts are left alone", "base", name, "tensors", n)
	}
	if open.Int8Activations = at.activations == "int8"; open.Int8Activations && !open.KeepsQuantized(b.device, matrices) {
		return nil, invalid("register",
			`set Activations of local.Options to "float32", or use a GGUF file with quantized matrices, and Weights "stored"`,
			"Activations is %q, and the device holds no quantized matrices of %q", at.activations, name)
	}
	given, err := b.withContext(open.Config, at.rope)
	if err != nil {
		return nil, err
	}
	p, err := b.book(given, matrices, open.WeightBytes(b.device, matrices))
	if err != nil {
		return nil, err
	}
	s = &base{baseKey: at, name: name, original: open.Original, matrices: matrices, config: given,
		tokenizer: open.Tokenizer, booking: p}
	if chosen, depends := open.Config.WithContext(cmp.Or(at.rope, b.opts.Context, p.Context)); depends {
		s.config, s.ropeContext = chosen, chosen.MaxPositions
	}
	if err := s.load(ctx, open, b); err != nil {
		b.memory.GiveBack(p)
		switch {
		case isDeviceFault(err):
			err = &art.Error{Op: "register", Err: deviceError(err)}
		case ctx.Err() == nil && !errors.Is(err, art.ErrInvalid):
			err = baseError(name, err)
		}
		return nil, err
	}
	b.opts.Logger.Info("base model loaded", "base", name, "type", at.weights, "slots", p.Slots, "context", p.Context,
		"tokens", p.CacheTokens, "weights", gigabytes(p.Weights), "cache", gigabytes(p.Cache), "work", gigabytes(p.Work),
		"training", gigabytes(p.Training), "room", gigabytes(p.Room.Bytes))
	limit := given.MaxPositions
	if b.opts.Context == 0 && p.Context < limit || b.opts.Slots == 0 && p.Slots < plan.DefaultSlots {
		b.opts.Logger.Warn("slots and context are lowered to fit into memory; set them in local.Options to choose otherwise",
			"base", name, "slots", p.Slots, "context", p.Context, "limit", limit)
	}
	return s, nil
}

// withContext is the configuration by which memory is booked: that of the context of the run (0: there is none), or of
// the options, where RoPE depends on it.
func (b *Backend) withContext(c *model.Config, ofRun int) (*model.Config, error) {
	if ofRun == 0 && b.opts.Context == 0 {
		return c, nil
	}
	at, _ := c.WithContext(cmp.Or(ofRun, b.opts.Context))
	if ofRun == 0 || b.opts.Context == 0 {
		return at, nil
	}
	if now, depends := c.WithContext(b.opts.Context); depends && now.MaxPositions != ofRun {
		return nil, invalid("register",
			"leave Context of local.Options empty to continue the run, or use another model name for a new one",
			"the run was begun with the RoPE of a context of %d tokens, and Context %d has another", ofRun, b.opts.Context)
	}
	return at, nil
}

// load uploads the weights to the devices, and starts an engine on each. The host keeps no weights.
func (s *base) load(ctx context.Context, open *basemodel.Base, b *Backend) (err error) {
	if s.template, err = chat.New(s.tokenizer, ""); err != nil {
		return err
	}
	if s.params, err = open.ParamsContext(ctx, b.device, s.matrices); err != nil {
		return err
	}
	s.training = graphx.NewPrograms(b.device, plan.TrainingPrograms(s.config))
	for _, device := range b.replicas {
		params, err := open.ParamsContext(ctx, device, s.matrices)
		if err != nil {
			return err
		}
		s.replicas = append(s.replicas, replica{device, params, graphx.NewPrograms(device, plan.TrainingPrograms(s.config))})
	}
	engines := make([]*engine.Engine, 1+len(s.replicas))
	if engines[0], err = s.start(b, b.device, s.params); err != nil {
		return err
	}
	for i, r := range s.replicas {
		if engines[i+1], err = s.start(b, r.device, r.params); err != nil {
			engine.NewPool(engines[:i+1]...).Close()
			return err
		}
	}
	s.engine = engine.NewPool(engines...)
	return nil
}

// start starts the engine of a device.
func (s *base) start(b *Backend, device compute.Backend, params *model.Params) (*engine.Engine, error) {
	profile := graphx.ProfileOf(device)
	e, err := engine.New(engine.Options{
		Device: device, Config: s.config, Params: params,
		Slots: s.booking.Slots, Context: s.booking.Context, CacheTokens: s.booking.CacheTokens,
		ProgramBytes: int64(s.booking.Programs / float64(b.memory.Devices)),
		CacheType:    s.booking.CacheType, Queue: b.opts.Queue,
		FewShapes: profile.SlowCompile, DecodeSteps: profile.TokensPerCall,
	})
	if err != nil && !isDeviceFault(err) {
		return nil, invalid("register", "lower Slots, Context or CacheTokens of local.Options", "%w", err)
	}
	return e, err
}

// close stops the engine and releases its memory.
func (s *base) close(m *plan.Device) {
	s.engine.Close()
	m.GiveBack(s.booking)
}

// replica is a base model on one of the devices beside the first one.
type replica struct {
	device   compute.Backend
	params   *model.Params
	training *graphx.Programs // of all models on it
}

// engines returns what the engines of the base models do, in the order of their names; those of one that is held in two
// ways are added up. Those of a closed backend do nothing.
func (b *Backend) engines() (list []server.EngineStats) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	byName := map[string]server.EngineStats{}
	for _, l := range b.bases {
		if b.closed || l.base == nil { // it is being loaded
			continue
		}
		s, sum := l.base.engine.Stats(), byName[l.base.name]
		byName[l.base.name] = server.EngineStats{
			Base: l.base.name, Running: sum.Running + s.Running, Waiting: sum.Waiting + s.Waiting,
			Blocks: sum.Blocks + s.Blocks, Used: sum.Used + s.Blocks - s.Free - s.Cached, Cached: sum.Cached + s.Cached,
			Prefilled: sum.Prefilled + s.Prefilled, Sampled: sum.Sampled + s.Sampled, Reused: sum.Reused + s.Reused,
			Preempted: sum.Preempted + s.Preempted, Evicted: sum.Evicted + s.Evicted,
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}

// glance is how often a training that pauses looks whether requests are still being answered.
const glance = 5 * time.Millisecond

// pause returns what a training does after each micro-batch, nil for nothing.
func (b *Backend) pause() trainer.Pause {
	share := b.opts.TrainShare
	if share == 0 || share == 1 {
		return nil
	}
	return func(ctx context.Context, worked time.Duration) {
		rest(ctx, time.Duration(float64(worked)*(1-share)/share), b.answering)
	}
}

// rest waits for so long, but not longer than others are busy, or until ctx ends.
func rest(ctx context.Context, long time.Duration, busy func() bool) {
	for end := time.Now().Add(long); busy(); {
		left := min(time.Until(end), glance)
		if left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		}
	}
}

// answering reports whether an engine has requests.
func (b *Backend) answering() bool {
	for _, s := range b.engines() {
		if s.Running+s.Waiting > 0 {
			return true
		}
	}
	return false
}
