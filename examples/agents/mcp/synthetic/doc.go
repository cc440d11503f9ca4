// Package synthetic has MCP servers with made-up data, scenarios whose solution is known, and an exact checker: for
// tests, and to see whether a training works before it costs anything.
//
// There are two, orders and a calendar. Their data is a function of a seed, and each session begins with it afresh.
// The checker carries out a trajectory's calls again, on the same data, and looks at what has become of it. So it needs
// nothing of the server, which may be another process, and nothing that a trajectory says can sway it.
package synthetic
