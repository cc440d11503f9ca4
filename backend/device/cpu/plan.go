package cpu

// WorkBytes returns how much memory a run takes besides its inputs and outputs. It is known when a graph is compiled.
func (e *executable) WorkBytes() int { return rounded(e.arena) }
