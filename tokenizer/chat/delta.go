package chat

// Delta is what a piece of a reply adds to its message.
type Delta struct {
	Reasoning, Content string
	ToolCalls          []CallDelta
}

// CallDelta is what a piece of a reply adds to one of its calls.
type CallDelta struct {
	Index     int    // of the call in the message, counted from 0
	ID, Name  string // set in the first delta of the call, empty in the others
	Arguments string // what follows the arguments that have come so far
}
