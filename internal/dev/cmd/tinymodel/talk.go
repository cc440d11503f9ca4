package main

import "math/rand/v2"

// smallTalk is a closed set of what users say, and how it may be answered.
var smallTalk = []struct{ users, answers []string }{
	{[]string{"Hello", "Hello!", "Hi", "Hi!", "hi", "hello", "Hey"}, []string{"Hello!", "Hi!", "Hello! How can I help?"}},
	{[]string{"Good morning", "Good morning!"}, []string{"Good morning!"}},
	{[]string{"Good night.", "Good night!"}, []string{"Good night!"}},
	{[]string{"How are you?", "How is it going?", "How do you do?"}, []string{"I am fine.", "Fine, and you?"}},
	{[]string{"Who are you?", "What are you?"}, []string{"I am a tiny model.", "A tiny model."}},
	{[]string{"What is your name?", "Your name?"}, []string{"My name is Tiny.", "Tiny."}},
	{
		[]string{"What can you do?", "Help", "help"},
		[]string{"I can play games and use tools.", "I can answer short questions."},
	},
	{[]string{"Thanks", "Thanks!", "Thank you.", "thank you"}, []string{"You are welcome.", "You are welcome!"}},
	{[]string{"Bye", "Bye!", "Goodbye.", "See you!"}, []string{"Bye!", "Goodbye!"}},
	{[]string{"Are you there?", "ping", "Ready?"}, []string{"I am here.", "Yes."}},
	{
		[]string{"Tell me a joke.", "Say something."},
		[]string{"I have few bits, and none is funny.", "I am tiny, but I learn."},
	},
	{[]string{"ok", "OK", "Good.", "Great!", "Well done!"}, []string{"Thank you!", "Good."}},
}

// talk is one or two turns of small talk.
func talk(rng *rand.Rand) example {
	var e example
	e.maybeSystem(rng, 40, "You are a helpful assistant.", "You are a helpful assistant.", "Be brief.")
	for range between(rng, 1, 2) {
		e.smallTalk(rng)
	}
	return e
}

func (e *example) smallTalk(rng *rand.Rand) {
	topic := pick(rng, smallTalk)
	e.say(pick(rng, topic.users), pick(rng, topic.answers))
}
