// Package devicebench measures the CPU device: operations of a transformer at fixed shapes, and what a machine reaches,
// memory bandwidth and a square matmul. The verbs bench and doctor of the command art print its results.
package devicebench
