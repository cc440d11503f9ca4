// Package graphx holds helpers around GoMLX graphs that several packages need.
//
// Code that builds graphs panics; everything else returns errors. [Try] is the bridge between the two.
package graphx
