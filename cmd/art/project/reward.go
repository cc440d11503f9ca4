package project

// score is the reward: how good a reply is. Only differences between replies to the same question count. Give partial
// credit for what comes close: a model learns nothing from replies that all get the same.
func score(_, reply string) float64 {
	return map[string]float64{"yes": 0.5, "no": 0.75, "maybe": 1}[reply]
}
