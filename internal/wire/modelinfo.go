package wire

import "github.com/goart-dev/art"

// ModelInfo is an entry of the list of models.
type ModelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`   // "model"
	Created int64  `json:"created"`  // always 0: it is not known
	OwnedBy string `json:"owned_by"` // "art"
	Step    int    `json:"step"`     // the policy step that answers now
}

// ModelList is the body of GET /v1/models.
type ModelList struct {
	Object string      `json:"object"` // "list"
	Data   []ModelInfo `json:"data"`
}

// NewModelInfo describes a model as it is now.
func NewModelInfo(m *art.Model) ModelInfo {
	return ModelInfo{ID: m.Name(), Object: "model", OwnedBy: "art", Step: m.Step()}
}

// NewModelList describes models as they are now.
func NewModelList(models []*art.Model) ModelList {
	list := ModelList{Object: "list", Data: []ModelInfo{}}
	for _, m := range models {
		list.Data = append(list.Data, NewModelInfo(m))
	}
	return list
}
