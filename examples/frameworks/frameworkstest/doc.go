// Package frameworkstest checks that what the agent of a framework samples is recorded exactly, also when its tools
// fail, when the model calls tools that do not exist, and when it never comes to an end.
package frameworkstest
