// Package graphx holds what several packages need around GoMLX graphs.
//
// Code that builds graphs panics; everything else returns errors. [Try] is the bridge between the two.
package graphx
