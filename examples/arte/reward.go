package main

// maxTurns is how many messages an agent may write for a question. Three are enough.
const maxTurns = 6

// ending says how a run ended.
type ending int

const (
	working ending = iota // out of turns
	right
	wrong
	gaveUp
	noCall // a reply without a tool call that can be read
	unknownTool
	badArguments
)

// bands are the rewards of ART·E, to which partial credit is added.
var bands = map[ending]float64{working: 0, gaveUp: 0, wrong: -1, badArguments: -1.8, unknownTool: -1.9, noCall: -2}

// outcome is what an agent did.
type outcome struct {
	end                        ending
	found, opened, invalidRead bool // of the right message, and whether an id that does not exist was read
	cited                      bool // the right message among the sources
	sources, turns             int
}

// reward is ART·E's. A right answer is worth
//
//	1 + 0.3 cited + 0.1 / sources + 0.1 (1 - turns / maxTurns)
//
// and any other ending its band and a credit of 0.1 for each of: the right message was found, it was read, it was
// cited, and no id that does not exist was read. So a run that fails later is worth more.
func (o *outcome) reward() float64 {
	if o.end == right {
		return 1 + 0.3*one(o.cited) + 0.1/float64(max(1, o.sources)) + 0.1*(1-float64(o.turns)/maxTurns)
	}
	return bands[o.end] + 0.1*(one(o.found)+one(o.opened)+one(!o.invalidRead)+one(o.cited))
}

// metrics are what is measured apart from the reward. Format is whether each reply was a call that fits a tool.
func (o *outcome) metrics() map[string]float64 {
	return map[string]float64{
		"right": one(o.end == right), "found": one(o.found), "read": one(o.opened), "cited": one(o.cited),
		"format": one(o.end != noCall && o.end != unknownTool && o.end != badArguments), "turns": float64(o.turns),
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
