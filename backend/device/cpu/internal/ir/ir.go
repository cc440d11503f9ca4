// Package ir has the data that a compilation of the CPU device is made of: the nodes of a graph, the views and tensors
// that their values are, and the plan that comes of them, a list of steps. Nothing here computes: package compile makes
// plans, and package exec runs them.
package ir
