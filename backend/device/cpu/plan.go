package cpu

// WorkBytes returns how much memory a run takes besides its inputs and outputs. It is known when a graph is compiled.
func (e *executable) WorkBytes() int {
	most := 0
	for _, s := range e.steps {
		if k, ok := s.(*chain); ok {
			most = max(most, k.workBytes(e.device.pool.Workers()))
		}
	}
	return rounded(e.arena) + most
}

// workBytes is the memory of the tiles that so many workers use at once.
func (k *chain) workBytes(workers int) int {
	if k.wide {
		return 0 // it lies in the arena
	}
	return workers * k.tiles() * rounded(4*k.tile*k.width)
}
