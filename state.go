package art

import "context"

// StateKeeper is a [Backend] that stores user state with a run.
type StateKeeper interface {
	// SaveState merges patch into the state of m and stores it, see [Model.SaveState].
	SaveState(ctx context.Context, m *Model, patch any) error
	// LoadState reads the state of m into v, a pointer. It returns false when there is none.
	LoadState(ctx context.Context, m *Model, v any) (found bool, err error)
}

// SaveState stores user state with the run, such as the position in a dataset. It merges the JSON of patch into the
// stored state (RFC 7396): objects are merged key by key, at any depth; null deletes a key; any other value replaces.
// The state is on disk when it returns. It belongs to the run and not to a step: save it after [Model.Train].
//
// It returns [ErrNotRegistered], [ErrUnsupported] when the backend is no [StateKeeper], and [ErrInvalid] for what has
// no JSON.
func (m *Model) SaveState(ctx context.Context, patch any) error {
	keeper, err := capability[StateKeeper](m, "save state", "art.StateKeeper, such as backend/local")
	if err != nil {
		return err
	}
	return keeper.SaveState(ctx, m, patch)
}

// LoadState reads what [Model.SaveState] has stored into v, a pointer, as [json.Unmarshal] does. It returns false, and
// does not change v, when there is none.
func (m *Model) LoadState(ctx context.Context, v any) (found bool, err error) {
	keeper, err := capability[StateKeeper](m, "load state", "art.StateKeeper, such as backend/local")
	if err != nil {
		return false, err
	}
	return keeper.LoadState(ctx, m, v)
}
