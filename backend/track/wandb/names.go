package wandb

// artNames are the names of ART 0.5.23 for metrics that are the same, so that its dashboards show them. Others keep
// their names, which are ART's too where docs/coming-from-art.md says so.
var artNames = map[string]string{
	"loss/policy":                  "loss/train",
	"loss/kl_old_new":              "loss/kl_div",
	"loss/clipped_fraction":        "loss/clipped_token_fraction",
	"data/groups":                  "data/step_num_groups_submitted",
	"data/groups_trainable":        "data/step_num_groups_trainable",
	"data/trajectories":            "data/step_num_trajectories",
	"data/updates":                 "data/step_num_gradient_steps",
	"data/cum/updates":             "data/cum/num_gradient_steps",
	"data/tokens_sampled":          "data/step_rollout_tokens",
	"data/tokens_trained":          "data/step_trainable_assistant_tokens",
	"data/tokens_computed":         "data/step_executed_token_equivalents",
	"time/train_s":                 "time/step_backend_train_s",
	"throughput/train_tok_per_s":   "throughput/avg_trainer_tok_per_s",
	"throughput/rollout_tok_per_s": "throughput/avg_rollout_tok_per_s",
}

// ownNames is the inverse of artNames.
var ownNames = func() map[string]string {
	own := make(map[string]string, len(artNames))
	for name, art := range artNames {
		own[art] = name
	}
	return own
}()

// names translates metrics.
type names struct {
	own bool // keep the names of this library
}

// out returns the name in W&B.
func (n names) out(key string) string {
	if name, ok := artNames[key]; ok && !n.own {
		return name
	}
	return key
}

// in returns the name of this library.
func (n names) in(key string) string {
	if name, ok := ownNames[key]; ok && !n.own {
		return name
	}
	return key
}
