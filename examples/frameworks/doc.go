// Package frameworks is what the examples of agent frameworks have in common: the order desk of a shop, whose tools
// fail at random; scenarios with an exact checker; and a program that trains an agent and measures, in pairs, how much
// more the trained model solves.
//
// Each folder below is a program whose agent is written with one framework, as its users write them: it gets an HTTP
// client or a base URL, and nothing of it knows that it is trained. Those with dependencies of their own are modules:
//
//	go run -C examples/frameworks/eino . -steps 40 -seed 1
//	go run ./examples/frameworks/langgraph -python venv/bin/python -steps 40 -seed 1
package frameworks
