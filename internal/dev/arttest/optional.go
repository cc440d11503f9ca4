package arttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
)

var (
	_ driver.CheckpointRestorer = (*Backend)(nil)
	_ driver.StateKeeper        = (*Backend)(nil)
	_ driver.Tokenizer          = (*Backend)(nil)
	_ driver.Sampler            = (*Backend)(nil)
	_ driver.Pinner             = (*Backend)(nil)
	_ driver.StepPinner         = (*Backend)(nil)
)

// pinKey is the context key of the step that answers for a model.
type pinKey struct{ m *art.Model }

// Pin implements [driver.Pinner].
func (b *Backend) Pin(m *art.Model) (pinned func(context.Context) context.Context, step int, err error) {
	step, err = b.step(context.Background(), "pin", m)
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, pinKey{m}, step) }, step, err
}

// PinStep implements [driver.StepPinner].
func (b *Backend) PinStep(
	ctx context.Context, m *art.Model, step int,
) (pinned func(context.Context) context.Context, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "pin step", m)
	if err == nil && step != 0 && !slices.Contains(r.checkpoints, step) {
		err = invalid("pin step", fmt.Sprintf("step %d has no checkpoint", step))
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, pinKey{m}, step) }, nil
}

// Restore implements [driver.CheckpointRestorer].
func (b *Backend) Restore(ctx context.Context, m *art.Model, step int) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "restore", m)
	if err == nil && r.unpublished {
		err = invalid("restore", "the training state is not published")
	}
	if err != nil {
		return 0, err
	}
	if step != 0 && !slices.Contains(r.checkpoints, step) {
		err := fmt.Errorf("%w: step %d has no checkpoint", art.ErrInvalid, step)
		return 0, &art.Error{Op: "restore", Err: err, Hint: "take a stored step"}
	}
	r.log("train", r.step, nil, map[string]float64{"train/restored_step": float64(step)})
	r.step++
	r.checkpoints = append(r.checkpoints, r.step)
	return r.step, nil
}

// SaveState implements [driver.StateKeeper]: it merges objects key by key.
func (b *Backend) SaveState(ctx context.Context, m *art.Model, patch any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "save state", m)
	if err != nil {
		return err
	}
	content, err := json.Marshal(patch)
	if err != nil {
		return &art.Error{Op: "save state", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: "give what has a JSON form"}
	}
	var change any
	if err := json.Unmarshal(content, &change); err != nil {
		return err
	}
	r.state = merge(r.state, change)
	return nil
}

// merge is the merge patch of RFC 7396.
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(object, key)
		} else {
			object[key] = merge(object[key], value)
		}
	}
	return object
}

// LoadState implements [driver.StateKeeper].
func (b *Backend) LoadState(ctx context.Context, m *art.Model, v any) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.run(ctx, "load state", m)
	if err != nil || r.state == nil {
		return false, err
	}
	content, err := json.Marshal(r.state)
	if err == nil {
		err = json.Unmarshal(content, v)
	}
	return true, err
}

// Tokenize implements [driver.Tokenizer].
func (b *Backend) Tokenize(ctx context.Context, m *art.Model, req *art.ChatRequest, reply *art.Message) (ids,
	replyIDs []int32, err error) {
	if _, err := b.step(ctx, "tokenize", m); err != nil {
		return nil, nil, err
	}
	if reply != nil {
		replyIDs = tokens(reply.Content)
	}
	return tokens(prompt(req)), replyIDs, nil
}

// Logprobs implements [driver.Sampler].
func (b *Backend) Logprobs(ctx context.Context, m *art.Model, ids []int32) ([]float32, int, error) {
	step, err := b.step(ctx, "logprobs", m)
	if err != nil {
		return nil, 0, err
	}
	return logprobs(ids[1:]), step, nil
}
