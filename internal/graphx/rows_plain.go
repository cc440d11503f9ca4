//go:build !(amd64 && goexperiment.simd)

package graphx

// rowStep is what the rows of a product are padded to a multiple of.
const rowStep = plainRows
